"""The critical path: segments that abut, add up to kernel_ps and name what the time was spent on.

The builder's costs: 10 ns to issue, 1 µs latency, 1000 bytes a µs, 100 ns per update of a signal line.
"""

from itertools import pairwise

from built_traces import NS, US, Builder, info, mesh, ring, two_phase
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a3sim.trace.critical_path import GROUPS, group_of, summary, walk
from a2a3sim.trace.measures import measure


def path(builder):
    """(rank, what, cause, spent on, start, end) in ns, checked to cover the run."""
    result = measure(builder.trace(), info(builder.ranks))
    segments = result.critical_path
    assert sum(s.end_ps - s.start_ps for s in segments) == result.kernel_ps
    assert segments[0].start_ps == min(u.start_ps for u in result.per_rank)
    for before, after in pairwise(segments):
        assert before.end_ps == after.start_ps
    assert all(s.start_ps < s.end_ps for s in segments)
    return [(s.rank, s.what, s.cause, s.spent_on, s.start_ps / NS, s.end_ps / NS) for s in segments]


def test_a_load_an_add_and_a_store():
    b = Builder(2)
    lane = b.lane(0)
    tile = b.load(lane, 2000, peer=1)
    b.store(lane, 2000, b.vector(lane, "add", 800, tile), window=False)
    assert path(b) == [
        (0, "remote_load", "start", "issue", 0, 10),
        (0, "remote_load from rank 1", "issue", "latency", 10, 1010),
        (0, "remote_load from rank 1", "issue", "bandwidth:link 1-0", 1010, 3010),
        (0, "remote_load from rank 1", "issue", "latency", 3010, 4010),
        (0, "add", "operand", "vector", 4010, 4110),
        (0, "store", "operand", "bandwidth:hbm0", 4110, 6110),
    ]


def test_a_transfer_is_cut_where_its_bottleneck_changed():
    b = Builder(2)
    op = b.load(b.lane(0), 2000, peer=1)
    op.flow.cuts = [(1010 * NS, "pipe"), (1500 * NS, "egress1"), (2000 * NS, "link 1-0")]
    assert path(b)[2:5] == [
        (0, "remote_load from rank 1", "issue", "bandwidth:pipe", 1010, 1500),
        (0, "remote_load from rank 1", "issue", "bandwidth:egress1", 1500, 2000),
        (0, "remote_load from rank 1", "issue", "bandwidth:link 1-0", 2000, 3010),
    ]


def test_a_wait_leads_to_the_notify_that_ended_it():
    # Rank 1 loads [10, 3010]; its notify is issued at 20 and leaves when the load is complete.
    b = Builder(2)
    b.load(b.lane(1), 3000)
    b.notify(b.lane(1), 0)
    b.wait(b.lane(0), 1)
    b.load(b.lane(0), 500)
    assert path(b) == [
        (1, "load", "start", "issue", 0, 10),
        (1, "load", "issue", "bandwidth:hbm1", 10, 3010),
        (1, "notify to rank 0", "fence", "latency", 3010, 4010),
        (1, "notify to rank 0", "fence", "atomic", 4010, 4110),
        (0, "load", "signal", "issue", 4110, 4120),
        (0, "load", "issue", "bandwidth:hbm0", 4120, 4620),
    ]


def test_the_time_until_the_next_poll_is_a_wait():
    b = Builder(2)
    b.notify(b.lane(1), 0)
    wait = b.wait(b.lane(0), 1)  # applied at 1110
    wait.end += 40 * NS
    b.state[b.lane(0)].time = wait.end
    b.load(b.lane(0), 500)
    assert path(b)[-3:] == [
        (0, "wait", "signal", "wait", 1110, 1150),
        (0, "load", "signal", "issue", 1150, 1160),
        (0, "load", "issue", "bandwidth:hbm0", 1160, 1660),
    ]


def test_a_busy_signal_line_leads_to_the_update_ahead():
    # Ranks 1 and 2 notify rank 0 at the same time; the second update waits for the first.
    b = Builder(3)
    b.notify(b.lane(1), 0)
    b.notify(b.lane(2), 0)
    b.wait(b.lane(0), 1)
    b.wait(b.lane(0), 2)
    assert path(b) == [
        (1, "notify", "start", "issue", 0, 10),
        (1, "notify to rank 0", "issue", "latency", 10, 1010),
        (1, "notify to rank 0", "issue", "atomic", 1010, 1110),
        (2, "notify to rank 0", "line", "atomic", 1110, 1210),
    ]


def test_a_store_that_holds_the_scalar_pipe():
    # Injected [10, 1010], visible 2010, acknowledged 3010; only then the next instruction is issued.
    b = Builder(2)
    b.store(b.lane(0), 1000, peer=1)
    b.vector(b.lane(0), "add", 80)
    assert path(b) == [
        (0, "remote_store", "start", "issue", 0, 10),
        (0, "remote_store to rank 1", "issue", "bandwidth:link 0-1", 10, 1010),
        (0, "remote_store to rank 1", "issue", "latency", 1010, 3010),
        (0, "add", "fence", "issue", 3010, 3020),
        (0, "add", "issue", "vector", 3020, 3030),
    ]


def test_a_pipe_that_is_full_leads_to_the_move_before():
    b = Builder(2)
    b.load(b.lane(0), 1000)
    b.load(b.lane(0), 2000)
    assert path(b) == [
        (0, "load", "start", "issue", 0, 10),
        (0, "load", "issue", "bandwidth:hbm0", 10, 1010),
        (0, "load", "pipe", "bandwidth:hbm0", 1010, 3010),
    ]


def test_a_chain_of_issues_ends_at_the_kernels_start():
    b = Builder(2)
    for _ in range(5):
        b.vector(b.lane(0), "add", 8)  # 1 ns each, so the pipe is never full
    # The first issue is why the kernel began to do anything, the others follow from it.
    assert path(b) == [
        (0, "add", "start", "issue", 0, 10),
        (0, "add", "issue", "issue", 10, 50),
        (0, "add", "issue", "vector", 50, 51),
    ]


def test_a_chain_that_starts_late_is_closed_by_a_launch_segment():
    b = Builder(2, starts=[0, 3 * US])
    b.load(b.lane(0), 500)
    b.load(b.lane(1), 500)
    assert path(b) == [
        (1, "launch kernel", "start", "launch", 0, 3000),
        (1, "load", "start", "issue", 3000, 3010),
        (1, "load", "issue", "bandwidth:hbm1", 3010, 3510),
    ]


def test_a_later_dispatch_is_reached_through_its_launch():
    b = Builder(1)
    b.load(b.lane(0), 500)
    b.load(b.redispatch(0, 2 * US), 500)
    assert path(b) == [
        (0, "load", "start", "issue", 0, 10),
        (0, "load", "issue", "bandwidth:hbm0", 10, 510),
        (0, "launch second", "dispatch", "launch", 510, 2510),
        (0, "load", "dispatch", "issue", 2510, 2520),
        (0, "load", "issue", "bandwidth:hbm0", 2520, 3020),
    ]


def test_a_device_barrier_leads_to_the_access_of_the_core_that_came_last():
    # Core 1 comes at 1020 ns, but its load [1010, 3010] holds it; the barrier itself costs 100 ns.
    b = Builder(1, cores=2)
    early, late = b.lane(0, 0), b.lane(0, 1)
    first = b._new(early, "sync_all", "S")
    b.state[late].time = US  # some scalar work
    b.load(late, 2000)
    last = b._new(late, "sync_all", "S")
    first.by = last
    for op in (first, last):
        op.start, op.cause, op.end = op.issued, ("issue", None), 3110 * NS
        b.state[op.lane].time, b.state[op.lane].after = op.end, ("signal", op)
    b.load(early, 500)
    assert path(b) == [
        (0, "load", "start", "issue", 0, 1010),
        (0, "load", "issue", "bandwidth:hbm0", 1010, 3010),
        (0, "sync_all", "fence", "wait", 3010, 3110),
        (0, "load", "signal", "issue", 3110, 3120),
        (0, "load", "issue", "bandwidth:hbm0", 3120, 3620),
    ]


@settings(max_examples=30)
@given(
    ranks=st.integers(2, 4),
    cores=st.integers(1, 2),
    make=st.sampled_from([mesh, two_phase, ring]),
    starts=st.lists(st.integers(0, 5 * US), min_size=4, max_size=4),
    latency=st.integers(0, 3 * US),
    atomic=st.integers(0, US),
    issue=st.integers(1, 50 * NS),
)
def test_any_collective_is_covered_from_end_to_end(ranks, cores, make, **costs):
    if make is not ring:
        costs["cores"] = cores
    path(make(ranks, 96 * ranks, **costs))


def test_records_that_contradict_each_other_do_not_hang_the_walk():
    b = Builder(1)
    one, two = b.load(b.lane(0), 500), b.load(b.lane(0), 500)
    one.cause, two.cause = ("operand", two), ("operand", one)
    one.start = two.start = one.end = two.end
    one.flow = two.flow = None
    steps = walk(b.trace())
    assert (steps[0].start, steps[-1].end) == (0, b.lane(0).end)


def test_the_summary_groups_what_the_time_was_spent_on():
    spent = ("bandwidth:link0-1", "bandwidth:hbm3", "bandwidth:pipe", "atomic", "wait")
    assert [group_of(s) for s in spent] == ["link bandwidth", "HBM", "pipe rate", "atomics", "waits"]
    result = measure(mesh(4, 4096).trace(), info(4))
    shares = summary(result)
    assert shares == summary(result.critical_path)
    assert set(shares) <= set(GROUPS)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert abs(sum(shares.values()) - 100) < 1e-9
    assert summary([]) == {}
