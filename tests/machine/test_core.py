"""Cores and pipes against times worked out by hand.

On ``ideal``: link 25 GB/s, 1 us one way, one move in flight, everything else free. 1024 B take 40.96 ns on
a link, so a remote load of 256 fp32 is 2 us + 40.96 ns = 2,040,960 ps.
"""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .programs import NS, US, add, me, run, wait

READ = 2 * US + 40_960


def load(data, peer, at=0, size=256):
    return pld.tile.remote_load(data, peer, [0, at], [1, size])


def test_remote_loads_of_one_core_follow_each_other_with_one_move_in_flight():
    def body(x, y, data, signal):
        if me(data) == 0:
            load(data, 1)
            load(data, 1)

    assert run(body).log(0, "remote_load") == [("remote_load", 0, READ), ("remote_load", READ, 2 * READ)]


def test_two_moves_in_flight_overlap_their_latencies_and_share_the_link():
    # Both flow from 1 us on at half the rate, so the bytes of both are through after 81,920 ps.
    def body(x, y, data, signal):
        if me(data) == 0:
            load(data, 1)
            load(data, 1)

    ran = run(body, config={"platform_overrides": {"pipe.moves_in_flight": "2"}})
    both = 2 * US + 81_920
    assert ran.log(0, "remote_load") == [("remote_load", 0, both), ("remote_load", 0, both)]


def test_a_third_move_starts_when_the_first_slot_is_free():
    def body(x, y, data, signal):
        if me(data) == 0:
            for size in (64, 256, 64):
                load(data, 1, size=size)

    ran = run(body, config={"platform_overrides": {"pipe.moves_in_flight": "2"}})
    # 256 B and 1024 B share until the short one is through: 2*256 B at 25 GB/s = 20,480 ps.
    first = 2 * US + 20_480
    assert [s for _, s, _ in ran.log(0, "remote_load")] == [0, 0, first]


def test_a_store_holds_its_pipe_while_bytes_leave_and_is_acknowledged_after_a_round_trip():
    def body(x, y, data, signal):
        if me(data) == 0:
            pld.tile.remote_store(pl.load(x, [0, 0], [1, 256]), data, 1, [0, 0])

    op = run(body).ops(0, "remote_store")[0]
    assert (op.drained - op.start, op.visible - op.start, op.end - op.start) == (40_960, US + 40_960, READ)


def test_the_scalar_pipe_stands_until_a_remote_store_is_acknowledged():
    def body(x, y, data, signal):
        if me(data) == 0:
            tile = pl.load(x, [0, 0], [1, 256])
            pld.tile.remote_store(tile, data, 1, [0, 0])
            pld.tile.remote_store(tile, data, 1, [0, 0])

    assert [s for _, s, _ in run(body).log(0, "remote_store")] == [0, READ]


@pytest.mark.parametrize(
    ("fences", "second"), [("statement", READ), ("notify", 40_960), ("explicit", 40_960)]
)
def test_without_statement_fences_the_next_store_starts_when_the_pipe_is_free(fences, second):
    def body(x, y, data, signal):
        if me(data) == 0:
            tile = pl.load(x, [0, 0], [1, 256])
            pld.tile.remote_store(tile, data, 1, [0, 0])
            pld.tile.remote_store(tile, data, 1, [0, 0])

    # To the same bytes of the same slice, so the second keeps program order: visible after the first.
    starts = [s for _, s, _ in run(body, config={"fences": fences}).log(0, "remote_store")]
    assert starts == [0, second if fences == "statement" else US + 40_960]


def test_stores_to_different_bytes_only_wait_for_the_pipe():
    def body(x, y, data, signal):
        if me(data) == 0:
            tile = pl.load(x, [0, 0], [1, 128])
            pld.tile.remote_store(tile, data, 1, [0, 0])
            pld.tile.remote_store(tile, data, 1, [0, 128])

    assert [s for _, s, _ in run(body, config={"fences": "explicit"}).log(0, "remote_store")] == [0, 20_480]


@pytest.mark.parametrize(
    ("fences", "leaves"), [("statement", READ), ("notify", US + 40_960), ("explicit", 0)]
)
def test_when_a_notify_leaves(fences, leaves):
    # statement: the store has been acknowledged; notify: it is visible; explicit: at once.
    def body(x, y, data, signal):
        if me(data) == 0:
            pld.tile.remote_store(pl.load(x, [0, 0], [1, 256]), data, 1, [0, 0])
            add(signal, 1)

    ran = run(body, config={"fences": fences})
    assert ran.log(0, "notify") == [("notify", leaves, leaves + US)]


@pytest.mark.parametrize("fences", ["statement", "notify"])
def test_a_notify_leaves_only_when_earlier_loads_have_their_bytes(fences):
    def body(x, y, data, signal):
        if me(data) == 0:
            load(data, 1)
            add(signal, 1)

    assert run(body, config={"fences": fences}).log(0, "notify") == [("notify", READ, READ + US)]


@pytest.mark.parametrize(("fence", "until"), [(pl.system.fence, US + 40_960), (pl.system.drain, 40_960)])
def test_explicit_fences_tell_drained_from_visible(fence, until):
    def body(x, y, data, signal):
        if me(data) == 0:
            pld.tile.remote_store(pl.load(x, [0, 0], [1, 256]), data, 1, [0, 0])
            fence()
            add(signal, 1)

    assert run(body, config={"fences": "explicit"}).log(0, "notify")[0][1] == until


def test_vector_cost_is_startup_plus_slope_per_256_bytes():
    def body(x, y, data, signal):
        tile = pl.load(x, [0, 0], [1, 256])
        pl.add(tile, tile)

    overrides = {"vector.add.fp32.startup": "24cycles", "vector.add.fp32.slope": "2cycles"}
    # 1024 B are 4 repeats: 24 + 8 cycles of 1 ns.
    assert run(body, config={"platform_overrides": overrides}).log(0, "add") == [("add", 0, 32 * NS)]


def test_a_vector_operation_waits_for_both_operands_and_its_predecessor():
    def body(x, y, data, signal):
        if me(data) == 0:
            a = load(data, 1)
            b = load(data, 1)
            c = pl.add(a, a)
            pl.add(c, b)

    overrides = {"vector.default.default.startup": "10cycles"}
    ran = run(body, config={"platform_overrides": overrides})
    assert ran.log(0, "add") == [("add", READ, READ + 10 * NS), ("add", 2 * READ, 2 * READ + 10 * NS)]


def test_issue_costs_pass_on_the_scalar_pipe_before_an_operation_can_start():
    def body(x, y, data, signal):
        for _ in range(3):
            pl.load(x, [0, 0], [1, 8])

    ran = run(body, config={"platform_overrides": {"core.issue": "5cycles"}})
    assert ran.log(0, "load") == [
        ("load", 5 * NS, 5 * NS),
        ("load", 10 * NS, 10 * NS),
        ("load", 15 * NS, 15 * NS),
    ]


def test_a_full_queue_holds_the_scalar_pipe():
    # Depth 1: the third load can be issued when the second has started, at READ.
    def body(x, y, data, signal):
        if me(data) == 0:
            for _ in range(3):
                load(data, 1)
            add(signal, 1)

    ran = run(body, config={"platform_overrides": {"pipe.queue": "1"}})
    assert [op.begun for op in ran.ops(0, "remote_load")] == [0, 0, READ]


def test_the_wait_for_space_ends_when_unfinished_operations_release_it():
    # UB of 2 KiB holds two tiles of 1 KiB. Nobody uses the first after it has arrived.
    def body(x, y, data, signal):
        if me(data) == 0:
            for _ in range(3):
                load(data, 1)

    overrides = {"ub.size": "2KiB", "pipe.moves_in_flight": "3"}
    ran = run(body, config={"platform_overrides": overrides})
    begun = [op.begun for op in ran.ops(0, "remote_load")]
    assert begun[:2] == [0, 0]
    assert begun[2] == ran.ops(0, "remote_load")[0].end
    assert ran.ops(0, "remote_load")[2].after[0] == "space"


def test_a_local_load_takes_the_memory_latency_and_its_share_of_hbm():
    def body(x, y, data, signal):
        pl.load(x, [0, 0], [1, 256])
        pl.load(x, [0, 0], [1, 256])

    overrides = {"hbm.latency": "300ns", "hbm.bandwidth": "10GB/s"}
    one = 300 * NS + 102_400
    ran = run(body, config={"platform_overrides": overrides})
    assert ran.log(0, "load") == [("load", 0, one), ("load", one, 2 * one)]


def test_the_pipe_rate_bounds_a_move():
    def body(x, y, data, signal):
        if me(data) == 0:
            load(data, 1)

    ran = run(body, config={"platform_overrides": {"pipe.rate": "5GB/s"}})
    assert ran.log(0, "remote_load") == [("remote_load", 0, 2 * US + 204_800)]


def test_own_accesses_to_the_same_bytes_keep_program_order():
    # y is private: the store is asynchronous, but the load of the same bytes follows it.
    def body(x, y, data, signal):
        if me(data) == 0:
            pl.store(load(data, 1), [0, 0], y)
            pl.load(y, [0, 128], [1, 64])

    ran = run(body)
    assert ran.log(0, "store", "load") == [("store", READ, READ), ("load", READ, READ)]


def test_a_put_loads_a_chunk_only_when_the_one_before_has_left_the_tile():
    def body(x, y, data, signal):
        if me(data) == 0:
            pld.tensor.put(data, 1, x, chunk_rows=1, chunk_cols=128)

    ran = run(body, config={"platform_overrides": {"hbm.latency": "100ns"}})
    halves = [(op.pipe, op.start, op.drained) for op in ran.ops(0, "put")]
    assert halves == [
        ("MTE2", 0, 100 * NS),
        ("MTE3", 100 * NS, 120_480),
        ("MTE2", 120_480, 220_480),
        ("MTE3", 220_480, 240_960),
    ]


def test_a_pipelined_put_overlaps_the_next_load_with_the_store():
    def body(x, y, data, signal):
        if me(data) == 0:
            pld.tensor.put(data, 1, x, chunk_rows=1, chunk_cols=128, pipeline=True)

    ran = run(body, config={"platform_overrides": {"hbm.latency": "100ns"}})
    assert [op.start for op in ran.ops(0, "put") if op.pipe == "MTE2"] == [0, 100 * NS]


def test_only_the_last_chunk_of_a_put_is_waited_for():
    def body(x, y, data, signal):
        if me(data) == 0:
            pld.tensor.put(data, 1, x, chunk_rows=1, chunk_cols=128)
            add(signal, 1)

    ran = run(body)
    last = ran.ops(0, "put")[-1]
    assert ran.ops(0, "notify")[0].begun == last.end == 2 * 20_480 + 2 * US


def test_a_get_moves_the_bytes_the_other_way():
    def body(x, y, data, signal):
        pl.store(pl.load(x, [0, 0], [1, 256]), [0, 0], data)
        add(signal, 1 - me(data))
        wait(signal, 1)
        pld.tensor.get(y, 1 - me(data), data)

    ran = run(body)
    assert np.array_equal(ran.y, ran.x[::-1])
    assert [r.remote_read_bytes for r in ran.result.per_rank] == [1024, 1024]
    assert [r.local_write_bytes for r in ran.result.per_rank] == [2048, 2048]


def test_a_transfer_to_oneself_touches_no_link_and_counts_as_local():
    def body(x, y, data, signal):
        rank = me(data)
        pld.tile.remote_store(pl.load(x, [0, 0], [1, 256]), data, rank, [0, 0])
        pl.store(load(data, rank), [0, 0], y)

    ran = run(body)
    assert ran.result.kernel_ps == 0
    assert all(r.remote_read_bytes == r.remote_write_bytes == 0 for r in ran.result.per_rank)
    assert np.array_equal(ran.x, ran.y)


def test_blocks_run_on_their_own_cores_and_meet_at_the_barrier():
    def body(x, y, data, signal):
        block = pl.get_block_idx()
        assert pl.get_block_num() == 2
        if block == 1 and me(data) == 0:
            load(data, 1)
        pl.system.sync_all()
        pl.store(pl.load(x, [0, 128 * block], [1, 128]), [0, 128 * block], y)

    ran = run(body, blocks=2, config={"platform_overrides": {"core.sync": "50ns"}})
    assert [op.end for core in (0, 1) for op in ran.ops(0, "sync_all", core)] == [READ + 50 * NS] * 2
    assert [op.end for core in (0, 1) for op in ran.ops(1, "sync_all", core)] == [50 * NS] * 2
    assert np.array_equal(ran.x, ran.y)


def test_a_scalar_read_blocks_and_a_scalar_write_is_seen_by_it():
    def body(x, y, data, signal):
        pl.write(data, [0, 3], 7.0)
        value = pl.read(data, [0, 3])
        pl.store(pl.mul(pl.load(x, [0, 0], [1, 256]), value), [0, 0], y)

    ran = run(body, config={"platform_overrides": {"hbm.latency": "100ns"}})
    assert np.array_equal(ran.y, ran.x * 7)
    assert [(s, e) for _, s, e in ran.log(0, "write", "read")] == [(0, 100 * NS), (100 * NS, 200 * NS)]


def test_an_inner_phase_gives_the_outer_one_back():
    def body(x, y, data, signal):
        with pl.phase("outer"):
            with pl.phase("inner"):
                pass
            pl.load(x, [0, 0], [1, 8])

    assert [op.value for op in run(body).ops(0, "phase")] == ["outer", "inner", "outer", None]
