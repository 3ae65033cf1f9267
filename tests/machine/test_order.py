"""What must come before what on one core: fences, acknowledgements, notifies behind accesses; by hand.

On ``ideal``: 1024 B take 40,960 ps on a link, one way takes 1 us, so a remote load takes 2,040,960 ps.
"""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.models.gate import Gate
from a2a3sim.models.operation import Move
from a2a3sim.models.pipe import constrained_start

from .programs import NS, US, add, me, run, wait

READ = 2 * US + 40_960


def load(data, peer, at=0, size=256):
    return pld.tile.remote_load(data, peer, [0, at], [1, size])


def test_a_put_is_over_when_all_its_chunks_are_acknowledged():
    # Chunks of 192 and 64 elements start together on one link: the small one is through after 2 x 256 B,
    # the large one after 1024 B, and its acknowledgement comes 2 us later.
    def body(x, y, data, signal):
        if me(data) == 0:
            pld.tensor.put(data, 1, x, chunk_rows=1, chunk_cols=192, pipeline=True)
            pl.load(x, [0, 0], [1, 8])

    ran = run(body, config={"platform_overrides": {"pipe.moves_in_flight": "2"}})
    large, small = [op for op in ran.ops(0, "put") if op.pipe == "MTE3"]
    assert (small.drained, large.drained) == (20_480, 40_960)
    assert ran.ops(0, "load")[0].begun == large.end == READ


def test_a_drain_waits_until_loads_have_arrived():
    def body(x, y, data, signal):
        if me(data) == 0:
            load(data, 1)
            pl.system.drain()
            add(signal, 1)

    ran = run(body, config={"fences": "explicit"})
    assert ran.ops(0, "drain")[0].end == READ
    assert ran.log(0, "notify") == [("notify", READ, READ + US)]


def test_a_drain_that_waits_for_a_vector_instruction_says_so():
    def body(x, y, data, signal):
        if me(data) == 0:
            tile = pl.tile.full([1, 256], pl.FP32, 1.0)
            pl.system.drain()
            pl.store(tile, [0, 0], y)

    ran = run(
        body,
        config={"fences": "explicit", "platform_overrides": {"vector.default.default.startup": "10cycles"}},
    )
    assert ran.ops(0, "store")[0].after == ("fence", ran.ops(0, "fill")[0])
    assert {s.spent_on for s in ran.result.critical_path} == {"vector"}


def test_each_notify_leaves_behind_the_accesses_before_it_only():
    # Loads end one after the other; the notify between them does not wait for the second.
    def body(x, y, data, signal):
        if me(data) == 0:
            load(data, 1)
            add(signal, 1)
            load(data, 1)
            add(signal, 1)
            add(signal, 1)

    starts = [op.start for op in run(body).ops(0, "notify")]
    assert starts == [READ, 2 * READ, 2 * READ]


def test_a_notify_behind_a_short_access_also_waits_for_the_long_one_before():
    def body(x, y, data, signal):
        if me(data) == 0:
            load(data, 1)
            add(signal, 1)
            pl.load(x, [0, 0], [1, 8])
            add(signal, 1)

    ran = run(body, config={"platform_overrides": {"pipe.moves_in_flight": "2"}})
    assert ran.ops(0, "load")[0].end == 0
    assert [(op.start, op.cause) for op in ran.ops(0, "notify")] == [
        (READ, ("fence", ran.ops(0, "remote_load")[0]))
    ] * 2


def test_notifies_behind_many_unfinished_accesses_cost_no_more_each(monkeypatch):
    count, known, told = 2000, Gate.known, []
    monkeypatch.setattr(Gate, "known", lambda gate, op: (told.append(op), known(gate, op)))

    def body(x, y, data, signal):
        if me(data) == 0:
            for k in range(count):
                load(data, 1, 8 * (k % 32), 8)
                add(signal, 1)

    ran = run(body, config={"timing_only": True})
    assert [op.start for op in ran.ops(0, "notify")] == [op.end for op in ran.ops(0, "remote_load")]
    assert len(told) == count


def test_a_chain_of_operations_without_any_time_is_as_long_as_it_likes():
    # Everything waits for the remote load; then 3 x 500 dependent operations happen in one instant.
    def body(x, y, data, signal):
        if me(data) == 0:
            tile = load(data, 1)
            for _ in range(500):
                tile = pl.add(tile, tile)
                pl.store(tile, [0, 0], y)
                tile = pl.load(y, [0, 0], [1, 256])

    assert run(body).result.kernel_ps == READ


@pytest.mark.parametrize("slots", ["8", "unlimited"])
def test_moves_that_end_at_once_leave_every_slot_of_their_pipe(slots):
    def body(x, y, data, signal):
        for k in range(8):
            pl.store(pl.load(x, [0, 32 * k], [1, 32]), [0, 32 * k], y)

    ran = run(body, config={"platform_overrides": {"pipe.moves_in_flight": slots}})
    assert np.array_equal(ran.x, ran.y)


def test_without_a_limit_all_moves_are_in_flight_together():
    def body(x, y, data, signal):
        if me(data) == 0:
            for k in range(20):
                load(data, 1, 8 * k, 8)

    ran = run(body, config={"platform_overrides": {"pipe.moves_in_flight": "unlimited"}})
    # 20 x 32 B share the link.
    assert ran.log(0, "remote_load") == [("remote_load", 0, 2 * US + 25_600)] * 20


@pytest.mark.parametrize(
    ("operand", "space", "start", "cause"),
    [(5, 5, 5, "operand"), (5, 7, 7, "space"), (7, 5, 7, "operand"), (0, 3, 3, "space"), (0, 1, 3, "issue")],
)
def test_of_causes_at_one_instant_an_operand_comes_before_space_and_space_before_issue(
    operand, space, start, cause
):
    def over(at):
        op = Move(None, "load", "MTE2", None)
        op.drained = op.visible = op.end = at
        return op

    op = Move(None, "get", "MTE2", None)
    op.issued, op.deps, op.staged = 3, (over(operand),), over(space)
    assert constrained_start(op, None) == start
    assert op.cause[0] == cause


def test_a_run_without_bytes_does_everything_in_the_same_order():
    # The load is over at 1 us, just when the notify of rank 1 arrives at the line of row 1. The own
    # notify that follows comes to the line in that instant too, and is first as that of the lower rank.
    def body(x, y, data, signal):
        if me(data) == 0:
            add(signal, 0, 0)
            pl.load(x, [0, 0], [1, 8])
            pl.system.fence()
            wait(signal, 1, 0)
            add(signal, 0, 1)
        else:
            add(signal, 0, 1)

    overrides = {"hbm.latency": "1us", "signal.atomic": "20ns"}
    for timing_only in (False, True):
        ran = run(body, config={"platform_overrides": overrides, "timing_only": timing_only})
        assert ran.ops(0, "notify")[1].applied == US + 20 * NS
        assert ran.ops(1, "notify")[0].applied == US + 40 * NS


def test_a_self_notify_that_was_applied_long_ago_is_not_what_a_wait_began_after():
    # Applied at 20 ns of the clock, but the core has issued until 1 us before it waits.
    def body(x, y, data, signal):
        if me(data) == 0:
            add(signal, 0)
            pl.load(x, [0, 0], [1, 8])
            wait(signal, 1)

    ran = run(body, config={"platform_overrides": {"core.issue": "1000cycles", "signal.atomic": "20ns"}})
    assert ran.ops(0, "wait")[0].after is None and ran.ops(0, "wait")[0].seq == ran.ops(0, "load")[0].seq + 1
    assert [(s.what, s.spent_on) for s in ran.result.critical_path] == [("load", "issue")]
