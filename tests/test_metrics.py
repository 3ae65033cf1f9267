"""Bytes, times, links, phases, barriers and rounds of traces whose numbers can be worked out by hand.

The builder's costs: 10 ns to issue, 1 µs latency, 1000 bytes a µs, vector instructions eight times as fast,
100 ns per update of a signal line.
"""

from types import SimpleNamespace

import pytest
from built_traces import NS, US, Builder, info, mesh, ring, two_phase
from hypothesis import given, settings
from hypothesis import strategies as st
from running import calls_of

from a2a3sim.trace.measures import link_uses, measure
from a2a3sim.trace.phases import phase_spans
from a2a3sim.trace.rounds import round_count
from a2a3sim.trace.table import Table


def run(builder, **changes):
    return measure(builder.trace(), info(builder.ranks, **changes))


# ---- bytes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_mesh_reads_every_peers_slice(ranks):
    n = 1024
    result = run(mesh(ranks, n))
    assert [u.remote_read_bytes for u in result.per_rank] == [(ranks - 1) * n] * ranks
    assert [u.remote_write_bytes for u in result.per_rank] == [0] * ranks
    assert [(p.src, p.dst, p.bytes) for p in result.pairs] == [
        (src, dst, n) for src in range(ranks) for dst in range(ranks) if src != dst
    ]


@pytest.mark.parametrize("make", [two_phase, ring])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_two_phase_and_ring_move_two_shares(make, ranks):
    n = 1024
    result = run(make(ranks, n))
    assert [u.remote_bytes for u in result.per_rank] == [2 * (ranks - 1) * n // ranks] * ranks


def test_a_put_is_a_local_read_and_a_remote_write_and_a_get_the_reverse():
    b = Builder(3)
    lane = b.lane(0)
    b.store(lane, 100, b.load(lane, 100, kind="put"), peer=1, kind="put")
    b.store(lane, 30, b.load(lane, 30, peer=2, kind="get"), kind="get")
    result = run(b)
    use = result.per_rank[0]
    assert (use.local_read_bytes, use.remote_write_bytes) == (100, 100)
    assert (use.remote_read_bytes, use.local_write_bytes) == (30, 30)
    # Payload goes from memory to memory, whoever asked.
    assert [(p.src, p.dst, p.bytes) for p in result.pairs] == [(0, 1, 100), (2, 0, 30)]


def test_own_rank_as_peer_is_local():
    b = Builder(2)
    lane = b.lane(1)
    b.store(lane, 8, b.load(lane, 16, peer=1), peer=1)
    result = run(b)
    use = result.per_rank[1]
    assert (use.local_read_bytes, use.local_write_bytes, use.remote_bytes) == (16, 8, 0)
    assert result.pairs == []


def test_scalar_accesses_are_local_and_signals_carry_nothing():
    b = Builder(2)
    lane = b.lane(0)
    for kind in ("read", "read", "write"):
        op = b._new(lane, kind, "S", 4)
        op.start, op.end, op.cause = op.issued, op.issued, ("issue", None)
    b.notify(lane, 1)
    use = run(b).per_rank[0]
    assert (use.local_read_bytes, use.local_write_bytes, use.notifies) == (8, 4, 1)


# ---- times -----------------------------------------------------------------------------------------


def test_times_of_a_run_count_from_the_launch():
    # Rank 0: load issued at 3 us + 10 ns, 1000 bytes take 1 us.  Rank 1 starts 2 us later and does the same.
    b = Builder(2, starts=[3 * US, 5 * US])
    for rank in range(2):
        b.load(b.lane(rank), 1000)
    result = run(b, origin_ps=1 * US)
    assert [(u.start_ps, u.end_ps) for u in result.per_rank] == [
        (2_000_000, 3_010_000),
        (4_000_000, 5_010_000),
    ]
    assert (result.kernel_ps, result.sync_ps, result.total_ps) == (3_010_000, 1_010_000, 5_010_000)
    assert [(d.index, d.rank, d.cores, d.start_ps, d.end_ps) for d in result.dispatches] == [
        (0, 0, 1, 2_000_000, 3_010_000),
        (1, 1, 1, 4_000_000, 5_010_000),
    ]


def test_a_rank_without_a_kernel_has_no_times():
    b = Builder(2)
    b.lanes.pop()
    b.load(b.lane(0), 1000)
    result = run(b)
    assert (result.per_rank[1].start_ps, result.per_rank[1].end_ps) == (None, None)
    assert result.kernel_ps == 1_010_000


def test_waits_and_busy_pipes():
    # Rank 1: load [10, 2010] ns, store [2010, 4010], fence; notify issued 4020, applied 5120.
    # Rank 0: wait issued at 10 ns, over at 5120; add of 800 bytes, 100 ns.
    b = Builder(2)
    one, zero = b.lane(1), b.lane(0)
    b.store(one, 2000, b.load(one, 2000))
    b.notify(one, 0)
    b.wait(zero, 1)
    b.vector(zero, "add", 800)
    result = run(b)
    assert result.per_rank[0].wait_ps == 5_110 * NS
    assert (result.per_rank[0].waits, result.per_rank[1].notifies) == (1, 1)
    busy = result.per_rank[0].pipe_busy_ps
    assert (busy.S, busy.MTE2, busy.V, busy.MTE3, busy.SDMA) == (20 * NS, 0, 100 * NS, 0, 0)
    busy = result.per_rank[1].pipe_busy_ps
    assert (busy.S, busy.MTE2, busy.V, busy.MTE3) == (30 * NS, 2000 * NS, 0, 2000 * NS)


def test_overlapping_loads_are_busy_time_once_and_cores_add_up():
    b = Builder(1, cores=2)
    for core, spans in enumerate([[(0, 10), (4, 12), (20, 25)], [(0, 7)]]):
        lane = b.lane(0, core)
        for start, end in spans:
            op = b.load(lane, 8)
            op.start, op.drained, op.end = start, end, end
    assert run(b).per_rank[0].pipe_busy_ps.MTE2 == 12 + 5 + 7


def test_ub_peak_is_that_of_the_fullest_core():
    b = Builder(1, cores=2)
    for core, peak in enumerate([4096, 1024]):
        b.load(b.lane(0, core), 8)
        b.lane(0, core).ub_peak_bytes = peak
    assert run(b).per_rank[0].ub_peak_bytes == 4096


def test_links_leave_out_hbm_and_compare_payload_with_what_was_possible():
    capacities = [
        SimpleNamespace(name="hbm0", kind="hbm", rate=10**12, bytes=5.0, busy_ps=1, peak_flows=1),
        # 3000 bytes in 1 us, at 6 GB/s: half of what the link could carry.
        SimpleNamespace(
            name="link0-1", kind="link", rate=6 * 10**9, bytes=3000.0, busy_ps=700_000, peak_flows=2
        ),
    ]
    assert link_uses(capacities, US) == [
        {"name": "link0-1", "bytes": 3000, "busy_ps": 700_000, "utilisation": 0.5, "peak_flows": 2}
    ]


# ---- phases and barriers ---------------------------------------------------------------------------


def test_phases_lie_between_barriers():
    # 1000 bytes: load [10, 1010], store [1010, 2010] ns on both ranks; then the barrier.
    result = run(mesh(2, 1000))
    assert [(p.name, p.remote_bytes) for p in result.phases] == [("phase 1", 0), ("phase 2", 2000)]
    # Notify issued at 2020, at the peer at 3020, applied 3120: phase 2 begins there.
    # Local load [3130, 4130], remote [4130, 7130], add 125, store 1000.
    assert [(p.start_ps, p.end_ps) for p in result.phases] == [(0, 2_010_000), (3_120_000, 8_255_000)]
    assert result.barriers == 1


def test_named_phases_keep_their_names_over_ranks_and_cores():
    result = run(two_phase(4, 4096, cores=2, names=True))
    assert [p.name for p in result.phases] == ["stage", "reduce-scatter", "all-gather"]
    assert [p.remote_bytes for p in result.phases] == [0, 4 * 3 * 1024, 4 * 3 * 1024]
    assert result.barriers == 2
    for before, after in zip(result.phases, result.phases[1:], strict=False):
        assert before.start_ps < before.end_ps <= after.start_ps


def test_cores_that_only_meet_at_a_device_barrier_stay_in_step():
    b = Builder(2, cores=2)
    for rank in range(2):
        for core in range(2):
            lane = b.lane(rank, core)
            b.store(lane, 8, b.load(lane, 8))
            sync_all(b, lane)
    b.barrier()  # core 0 only
    for rank in range(2):
        for core in range(2):
            sync_all(b, b.lane(rank, core))
            b.load(b.lane(rank, core), 8, peer=1 - rank)
    trace = b.trace()
    assert [(s.rank, s.name) for s in phase_spans(Table(trace.lanes))[0]] == [
        (rank, f"phase {k}") for rank in range(2) for _ in range(2) for k in (1, 2)
    ]
    assert run(b).barriers == 1


def sync_all(b, lane):
    op = b._new(lane, "sync_all", "S")
    op.start = op.end = op.issued
    op.cause = ("issue", None)


@pytest.mark.parametrize(
    ("make", "ranks", "barriers"), [(mesh, 4, 1), (two_phase, 4, 2), (ring, 4, 6), (ring, 3, 4)]
)
def test_barriers_are_runs_of_waits(make, ranks, barriers):
    assert run(make(ranks, 1024 * ranks)).barriers == barriers


# ---- rounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_rounds_of_the_all_reduces(ranks):
    assert run(mesh(ranks, 24 * ranks)).rounds == 1
    assert run(two_phase(ranks, 24 * ranks)).rounds == 2
    assert run(ring(ranks, 24 * ranks)).rounds == 2 * (ranks - 1)


def test_cores_do_not_add_rounds():
    assert run(two_phase(4, 4096, cores=2)).rounds == 2


@pytest.mark.parametrize("store", [False, True])
def test_what_merely_comes_later_is_no_round(store):
    b = Builder(2)
    for _ in range(5):
        b.store(b.lane(0), 8, peer=1) if store else b.load(b.lane(0), 8, peer=1)
    assert round_count(Table(b.trace().lanes)) == 1


def test_a_chain_runs_through_the_cores_own_memory_where_bytes_overlap():
    # A relay: read from 1, park in the own window, read it back, write to 2.
    for offset, rounds in ((0, 2), (4, 2), (8, 1)):
        b = Builder(3)
        lane = b.lane(0)
        b.store(lane, 8, b.load(lane, 8, peer=1))
        again = b.load(lane, 8)
        again.reads = (again.reads[0]._replace(offset=offset),)
        b.store(lane, 8, again, peer=2)
        assert round_count(Table(b.trace().lanes)) == rounds


def test_a_chain_runs_through_tiles_signals_and_relays():
    # Rank 0 writes to 1; 1 sees the flag, reads it back from 0 and tells 2; 2 reads from 1.
    b = Builder(3)
    b.store(b.lane(0), 8, peer=1)
    b.notify(b.lane(0), 1)
    b.wait(b.lane(1), 0)
    b.load(b.lane(1), 8, peer=0)
    b.notify(b.lane(1), 2)
    b.wait(b.lane(2), 1)
    b.load(b.lane(2), 8, peer=1)
    assert round_count(Table(b.trace().lanes)) == 3


def test_a_device_barrier_passes_the_depth_of_all_cores():
    b = Builder(2, cores=2)
    b.load(b.lane(0, 1), 8, peer=1)
    for core in range(2):
        sync_all(b, b.lane(0, core))
    b.load(b.lane(0, 0), 8, peer=1)
    assert round_count(Table(b.trace().lanes)) == 2


def test_a_later_dispatch_depends_on_the_earlier():
    b = Builder(2)
    b.load(b.lane(0), 8, peer=1)
    b.load(b.redispatch(0, US), 8, peer=1)
    assert round_count(Table(b.trace().lanes)) == 2


# ---- everything ------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    ranks=st.integers(1, 5),
    steps=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 500), st.booleans()), max_size=20
    ),
)
def test_pairs_links_and_ranks_agree(ranks, steps):
    b = Builder(ranks)
    for rank, peer, nbytes, store in steps:
        lane = b.lane(rank % ranks)
        where = None if peer % ranks == lane.rank else peer % ranks
        b.store(lane, nbytes, peer=where) if store else b.load(lane, nbytes, peer=where)
    result = run(b)
    remote = sum(u.remote_bytes for u in result.per_rank)
    assert sum(p.bytes for p in result.pairs) == remote == sum(link.bytes for link in result.links)
    assert sum(p.remote_bytes for p in result.phases) == remote
    assert all(0 <= link.utilisation <= 1 for link in result.links)
    assert all(result.kernel_ps >= u.pipe_busy_ps.MTE2 for u in result.per_rank)


def test_a_partial_trace_is_measured_up_to_what_is_known():
    # Rank 0 waits for ever, rank 1 has a load that never arrived.
    b = Builder(2)
    wait = b._new(b.lane(0), "wait", "S")
    wait.start, wait.cell, wait.cause = wait.issued, (b.memories[0], 0), ("issue", None)
    b.load(b.lane(1), 1000, peer=0)
    lost = b.load(b.lane(1), 1000, peer=0)
    lost.start = lost.drained = lost.visible = lost.end = -1
    trace = b.trace()
    for lane in trace.lanes:
        lane.end = -1
    result = measure(trace, info(2))
    assert result.per_rank[1].remote_read_bytes == 1000
    assert (result.per_rank[0].waits, result.per_rank[0].wait_ps) == (1, 0)
    assert result.kernel_ps == 3_010_000  # request, 1 us of bytes, answer
    assert result.critical_path == []
    assert result.rounds == 1


def test_measuring_a_mesh_of_64_ranks_takes_few_steps_an_operation():
    trace, about = mesh(64, 65536).trace(), info(64)
    count = sum(len(lane.operations) for lane in trace.lanes)
    assert calls_of(lambda: measure(trace, about)) < 20 * count
