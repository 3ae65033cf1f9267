"""Signal memory: order and time of updates, polling, self-notifies, wrapping."""

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .programs import NS, US, add, me, run, wait


def test_a_notify_takes_one_latency_and_wakes_the_wait():
    def body(x, y, data, signal):
        if me(data) == 0:
            add(signal, 1)
        else:
            wait(signal, 1)

    ran = run(body)
    assert ran.log(1, "wait") == [("wait", 0, US)]
    assert ran.ops(1, "wait")[0].by is ran.ops(0, "notify")[0]


def test_updates_of_one_line_are_applied_one_at_a_time():
    # Three notifies arrive together at 1 us; cells 0 and 1 share a line, row 8 begins another.
    def body(x, y, data, signal):
        if me(data) == 0:
            add(signal, 1, 0, 0)
            add(signal, 1, 0, 1)
        elif me(data) == 2:
            add(signal, 1, 8, 0)

    ran = run(body, ranks=3, rows=16, config={"platform_overrides": {"signal.atomic": "20ns"}})
    assert [op.applied for op in ran.ops(0, "notify")] == [US + 20 * NS, US + 40 * NS]
    assert [op.applied for op in ran.ops(2, "notify")] == [US + 20 * NS]
    assert ran.ops(0, "notify")[1].by is ran.ops(0, "notify")[0]


def test_a_busy_line_holds_back_what_its_core_sent_to_another_line_later():
    # The line of row 0 is busy with three updates until 1060 ns; the last is of rank 3, whose update of row 8
    # must not be applied before it.
    def body(x, y, data, signal):
        if me(data) != 0:
            add(signal, 0, 0, me(data))
            if me(data) == 3:
                add(signal, 0, 8, 0)

    ran = run(body, ranks=4, rows=16, config={"platform_overrides": {"signal.atomic": "20ns"}})
    first, second = ran.ops(3, "notify")
    assert (first.applied, second.applied) == (US + 60 * NS, US + 60 * NS)
    assert first.order < second.order


def test_simultaneous_arrivals_are_applied_by_rank():
    def body(x, y, data, signal):
        if me(data) != 0:
            add(signal, 0)

    ran = run(body, ranks=4, config={"platform_overrides": {"signal.atomic": "20ns"}})
    assert [ran.ops(r, "notify")[0].order for r in (1, 2, 3)] == [0, 1, 2]


def test_a_seed_shuffles_simultaneous_arrivals_reproducibly():
    def body(x, y, data, signal):
        if me(data) != 0:
            add(signal, 0)

    orders = set()
    for seed in range(1, 9):
        runs = [run(body, ranks=5, config={"seed": seed}) for _ in range(2)]
        first, again = ([r.ops(rank, "notify")[0].order for rank in range(1, 5)] for r in runs)
        assert first == again
        orders.add(tuple(first))
    assert len(orders) > 3


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_notifies_of_one_core_to_one_rank_keep_program_order(seed):
    def body(x, y, data, signal):
        if me(data) == 0:
            for value in range(5):
                pld.system.notify(signal, 1, [0, 0], value, op=pld.NotifyOp.Set)

    ran = run(body, config={"seed": seed})
    assert [op.order for op in ran.ops(0, "notify")] == [0, 1, 2, 3, 4]
    assert ran.ops(0, "notify")[-1].seen == 4


def test_a_wait_sees_an_update_at_its_next_poll():
    # The wait begins at 0 and polls every 300 ns; the update at 1 us is seen at 1.2 us.
    def body(x, y, data, signal):
        if me(data) == 0:
            add(signal, 1)
        else:
            wait(signal, 1)

    ran = run(body, config={"platform_overrides": {"signal.poll": "300ns"}})
    assert ran.log(1, "wait") == [("wait", 0, 1200 * NS)]


def test_a_poll_at_the_instant_of_an_update_sees_it():
    def body(x, y, data, signal):
        if me(data) == 0:
            add(signal, 1)
        else:
            wait(signal, 1)

    ran = run(body, config={"platform_overrides": {"signal.poll": "250ns"}})
    assert ran.log(1, "wait") == [("wait", 0, US)]


def test_a_satisfied_wait_takes_no_time_and_leaves_the_cell_alone():
    def body(x, y, data, signal):
        rank = me(data)
        add(signal, rank)
        wait(signal, 1)
        wait(signal, 1)

    ran = run(body)
    assert ran.result.kernel_ps == 0
    assert ran.result.cost.switches <= 4


def test_a_notify_to_oneself_costs_the_atomic_only_and_comes_before_later_waits():
    def body(x, y, data, signal):
        add(signal, me(data), value=2)
        wait(signal, 2)

    ran = run(body, config={"platform_overrides": {"signal.atomic": "20ns"}})
    assert ran.log(0, "notify", "wait") == [("notify", 0, 20 * NS), ("wait", 20 * NS, 20 * NS)]


def test_an_exact_wait_can_miss_a_value_that_passes_between_polls():
    # 1 at 1 us, 2 at 1.02 us; polls at 0, 0.75, 1.5 us: the value 1 is never seen.
    def body(x, y, data, signal):
        if me(data) == 0:
            add(signal, 1)
            add(signal, 1)
        else:
            pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Eq)

    overrides = {"signal.poll": "750ns", "signal.atomic": "20ns"}
    ran = run(body, raises=True, config={"platform_overrides": overrides})
    assert "passed the awaited one" in str(ran.error)


def test_cells_wrap_as_int32():
    def body(x, y, data, signal):
        if me(data) == 0:
            pld.system.notify(signal, 1, [0, 0], 2**31 - 1, op=pld.NotifyOp.Set)
            add(signal, 1)

    assert run(body).ops(0, "notify")[-1].seen == -(2**31)


def test_a_plain_store_to_a_cell_wakes_a_wait():
    def body(x, y, data, signal):
        if me(data) == 0:
            tile = pl.tile.full([1, 16], dtype=pl.INT32, value=3)
            pld.tile.remote_store(tile, signal, 1, [0, 0])
        else:
            wait(signal, 3)

    # 64 B on the link and one latency: visible at 1 us + 2,560 ps.
    assert run(body).log(1, "wait") == [("wait", 0, US + 2_560)]


def test_negative_values_and_set():
    def body(x, y, data, signal):
        rank = me(data)
        add(signal, rank, value=5)
        add(signal, rank, value=-7)
        pld.system.wait(signal, [0, 0], -2, cmp=pld.WaitCmp.Eq)
        pld.system.notify(signal, rank, [0, 0], 9, op=pld.NotifyOp.Set)
        pld.system.wait(signal, [0, 0], 9, cmp=pld.WaitCmp.Ge)

    assert run(body).ops(0, "wait")[-1].seen == 9


def test_the_update_that_ended_a_wait_is_the_one_that_made_it_hold_for_good():
    # +1 at 1.1 us, -1 at 1.2 us, +1 at 1.3 us; the wait looks at 0, 0.7 and 1.4 us.
    def body(x, y, data, signal):
        if me(data) == 0:
            for value in (1, -1, 1):
                add(signal, 1, value=value)
        else:
            wait(signal, 1)

    overrides = {"signal.poll": "700ns", "signal.issue": "100cycles"}
    ran = run(body, config={"platform_overrides": overrides})
    assert ran.log(1, "wait") == [("wait", 0, 1400 * NS)]
    assert ran.ops(1, "wait")[0].by is ran.ops(0, "notify")[2]


def test_a_value_that_is_gone_at_the_poll_does_not_end_a_wait():
    def body(x, y, data, signal):
        if me(data) == 0:
            add(signal, 1)
            add(signal, 1, value=-1)
            pld.tile.remote_load(data, 1, [0, 0], [1, 8])
            add(signal, 1)
        else:
            wait(signal, 1)

    # The cell holds 1 only from 1.1 to 1.2 us, and again when the load of 2,001,280 ps that begins at 0.2 us
    # has been announced: at 3,201,280 ps. The wait looks every 700 ns.
    ran = run(body, config={"platform_overrides": {"signal.poll": "700ns", "signal.issue": "100cycles"}})
    assert ran.ops(0, "notify")[2].applied == 3_201_280
    assert ran.log(1, "wait") == [("wait", 0, 3500 * NS)]
    assert ran.ops(1, "wait")[0].by is ran.ops(0, "notify")[2]


@pytest.mark.parametrize("timing_only", [False, True])
def test_a_scalar_write_sets_a_cell(timing_only):
    def body(x, y, data, signal):
        if me(data) == 0:
            pl.write(signal, [2, 3], 5)
            wait(signal, 5, 2, 3)
            assert pl.read(signal, [2, 3]) == 5

    ran = run(body, config={"timing_only": timing_only, "platform_overrides": {"hbm.latency": "100ns"}})
    assert ran.log(0, "wait", "read") == [("wait", 100 * NS, 100 * NS), ("read", 100 * NS, 200 * NS)]


@pytest.mark.parametrize("early", [False, True])
def test_a_tile_in_signal_cells_has_no_value_in_a_run_without_bytes(early):
    # The wait comes after the store, or before.
    def body(x, y, data, signal):
        if me(data) == 0:
            tile = pl.tile.full([1, 16], pl.INT32, 3)
            pld.tile.remote_store(tile, signal, 1, [0, 0])
        elif early:
            wait(signal, 3)
        else:
            pld.tile.remote_load(data, 0, [0, 0], [1, 256])
            pl.system.fence()
            wait(signal, 3)

    ran = run(body, raises=True, config={"timing_only": True})
    assert "a timing-only run keeps no bytes of signal_buf, but a tile" in str(ran.error)


def test_tiles_and_signal_cells_may_lie_in_one_window_in_a_run_without_bytes():
    def body(x, y, data, signal):
        if me(data) == 0:
            pld.tile.remote_store(pl.tile.full([1, 8], pl.INT32, 3), signal, 1, [1, 8])
            add(signal, 1, 1, 0)
        else:
            wait(signal, 1, 1, 0)

    assert run(body, config={"timing_only": True}).ops(1, "wait")[0].seen == 1
