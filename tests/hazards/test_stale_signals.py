"""B01 - B09: signals that are stale, reused, shared or worn out."""

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .harness import ADD, EQ, GE, SET, everywhere, found, kinds, me, others, results

ROW = [1, 64]


def put(data, peer, x, at=0, size=64):
    pld.tensor.put(data, peer, x, [0, at], [0, 0], [1, size])  # (put)


# ---- B01: a barrier that works once -----------------------------------------------------------------


def flag_barrier(rounds, fresh_value):
    def body(x, y, data, signal, e):
        for k in range(rounds):
            acc = pl.load(x, [0, 0], ROW)
            pl.store(acc, [0, 0], data)  # (stage)
            value = k + 1 if fresh_value else 1
            for p in others(data):
                pld.system.notify(signal, p, [me(data), 0], value, op=SET)  # (raise)
            for p in others(data):
                pld.system.wait(signal, [p, 0], value, cmp=GE)  # (wait)
            for p in others(data):
                acc = pl.add(acc, pld.tile.remote_load(data, p, [0, 0], ROW))  # (get)
            pl.store(acc, [0, 0], y)
            if fresh_value and k < rounds - 1:
                for p in others(data):
                    pld.system.notify(signal, p, [me(data), 16], 1, op=ADD)
                for p in others(data):
                    pld.system.wait(signal, [p, 16], k + 1, cmp=GE)

    return body


EARLY = {("early-release", "error", ("wait", "raise")), ("race", "error", ("stage", "get"))}


def test_B01_flags_that_stay_raised():
    for ranks in (2, 3, 4):
        assert found(flag_barrier(2, False), ranks=ranks) == EARLY


def test_B01_every_rank_is_named():
    (early,) = [v for v in everywhere(flag_barrier(2, False), ranks=3)[0] if v.kind == "early-release"]
    assert early.ranks == (0, 1, 2)


def test_B01_shows_without_skew_too():
    assert found(flag_barrier(2, False), ranks=3, config={"skew": "none"}) == EARLY


def test_B01_twin_values_that_grow_and_an_exit_barrier():
    assert found(flag_barrier(3, True), ranks=3, cells=(4, 32)) == set()


def test_B01_over_calls_of_a_worker_the_cells_are_residue():
    calls = everywhere(flag_barrier(1, False), ranks=3, calls=2)
    assert {v[:3] for v in calls[0]} == {("residue", "note", ("raise",))}
    assert {v[:3] for v in calls[1]} == {
        *EARLY,
        ("residue", "warning", ("raise",)),
        ("residue", "note", ("raise",)),
    }


# ---- B02: epochs that restart -----------------------------------------------------------------------


def exchange(first, clear):
    """Each rank puts into two slots of its neighbour in turn, with credits; ``first``: epoch of a launch's first step."""

    def body(x, y, data, signal, e):
        peer = (me(data) + 1) % 2
        steps = 4
        base = first(e, steps)
        for k in range(steps):
            if k >= 2 or base:
                pld.system.wait(signal, [1, 0], base + k - 1, cmp=GE)  # (free)
            put(data, peer, x, at=64 * (k % 2))
            pld.system.notify(signal, peer, [0, 0], 1, op=ADD)  # (full)
            pld.system.wait(signal, [0, 0], base + k + 1, cmp=GE)  # (arrived)
            pl.store(pl.load(data, [0, 64 * (k % 2)], ROW), [0, 0], y)  # (take)
            pld.system.notify(signal, peer, [1, 0], 1, op=ADD)  # (consumed)
        if clear == "subtract":
            pld.system.wait(signal, [1, 0], base + steps, cmp=GE)
            pld.system.notify(signal, me(data), [0, 0], -steps, op=ADD)
            pld.system.notify(signal, me(data), [1, 0], -steps, op=ADD)
        if clear == "zero":
            pld.system.notify(signal, me(data), [0, 0], 0, op=SET)  # (clear full)
            pld.system.notify(signal, me(data), [1, 0], 0, op=SET)  # (clear free)

    return body


def restart(e, steps):
    return 0


def go_on(e, steps):
    return e * steps


SLOTS = {"size": 128, "tensor": (1, 64), "ranks": 2}


def test_B02_epochs_that_restart_in_each_launch():
    told = found(exchange(restart, None), launches=3, **SLOTS)
    assert ("early-release", "error", ("arrived", "full")) in told
    assert ("race", "error", ("put", "take")) in told
    assert ("residue", "warning", ("full",)) in told
    assert {kind for kind, _, _ in told} == {"early-release", "race", "residue"}


def test_B02_over_calls_of_a_worker():
    told = [{v[:3] for v in call} for call in everywhere(exchange(restart, None), calls=2, **SLOTS)]
    assert ("early-release", "error", ("arrived", "full")) not in told[0]
    assert {("early-release", "error", ("arrived", "full")), ("race", "error", ("put", "take"))} <= told[1]


def test_B02_twin_epochs_as_an_argument():
    assert found(exchange(go_on, None), launches=3, **SLOTS) == set()


def test_B02_twin_credits_taken_off():
    assert found(exchange(restart, "subtract"), launches=3, **SLOTS) == set()
    calls = everywhere(exchange(restart, "subtract"), calls=3, **SLOTS)
    assert calls == [set()] * 3


def test_B02_clearing_to_zero_loses_credits():
    told = found(exchange(restart, "zero"), launches=2, **SLOTS)
    assert any(kind == "lost-credit" and "clear full" in marks for kind, _, marks in told)


# ---- B03: a constant ready value --------------------------------------------------------------------


def tile_locks(value):
    def body(x, y, data, signal, e):
        tiles = 3
        if me(data) == 0:
            for t in range(tiles):
                put(data, 1, x, at=64 * t)
                pld.system.notify(signal, 1, [t, 0], value(e), op=SET)  # (ready)
        else:
            for t in range(tiles):
                pld.system.wait(signal, [t, 0], value(e), cmp=EQ)  # (wait)
                pl.store(pl.load(data, [0, 64 * t], ROW), [0, 0], y)  # (take)
        # Both ranks meet before the next launch.
        pld.system.notify(signal, 1 - me(data), [3, 0], 1, op=ADD)
        pld.system.wait(signal, [3, 0], e + 1, cmp=GE)

    return body


TILES = {"size": 192, "tensor": (1, 64), "ranks": 2}


def test_B03_locks_with_a_constant_ready_value():
    told = found(tile_locks(lambda e: 1), launches=2, **TILES)
    assert {("early-release", "error", ("wait", "ready")), ("race", "error", ("put", "take"))} <= told


def test_B03_twin_the_number_of_the_call_as_value():
    assert found(tile_locks(lambda e: e + 1), launches=3, **TILES) == set()


# ---- B04: two buffers, and cleaning of the next one --------------------------------------------------


def two_buffers(clean_first, ops=4):
    def body(x, y, data, signal, e):
        peer = 1 - me(data)
        for k in range(ops):
            this, following = k % 2, (k + 1) % 2
            if clean_first:
                pld.system.notify(signal, me(data), [following, 0], 0, op=SET)  # (clean)
            put(data, peer, x, at=64 * this)
            pld.system.notify(signal, peer, [this, 0], 1, op=SET)  # (flag)
            if not clean_first:
                pld.system.notify(signal, me(data), [following, 0], 0, op=SET)  # (clean late)
            pld.system.wait(signal, [this, 0], 1, cmp=GE)  # (wait)
            pl.store(pl.load(data, [0, 64 * this], ROW), [0, 0], y)  # (take)

    return body


def test_B04_the_next_flag_is_cleaned_too_late():
    told = kinds(two_buffers(False), **SLOTS)
    assert "lost-credit" in told


def test_B04_twin_cleaned_before_the_notify():
    assert found(two_buffers(True), **SLOTS) == set()


def two_lanes(x, y, data, signal, e):
    """Operations k and k + 1 run at once; each cleans the flag of the other."""
    peer, k = 1 - me(data), pl.get_block_idx()
    put(data, peer, x, at=64 * k)
    pld.system.notify(signal, peer, [k, 0], 1, op=SET)  # (flag)
    pld.system.notify(signal, me(data), [1 - k, 0], 0, op=SET)  # (clean)
    pld.system.wait(signal, [k, 0], 1, cmp=GE)  # (wait)
    pl.store(pl.load(data, [0, 64 * k], ROW), [0, 0], y)


def test_B04_two_operations_at_once_clean_each_others_flags():
    for seed in range(3):
        (run,) = results(two_lanes, seed=seed, blocks=2, **SLOTS)
        assert any(f.kind == "lost-credit" for f in run.findings)


# ---- B05: flags behind data of varying size ----------------------------------------------------------


def moving_flags(apart):
    def body(x, y, data, signal, e):
        # The window is INT32: payload from cell 0 on, flags right behind it.
        peer = 1 - me(data)
        for k, size in enumerate((64, 48)):
            flag = 112 + 16 * k if apart else size
            pld.tensor.put(signal, peer, x, [0, 0], [0, 0], [1, size])  # (payload)
            pld.system.notify(signal, peer, [0, flag], 1, op=ADD)  # (flag)
            pld.system.wait(signal, [0, flag], 1, cmp=GE)  # (wait)
            pl.store(pl.load(signal, [0, 0], [1, 32]), [0, 0], y)  # (take)
            pld.system.notify(signal, peer, [0, 80 + 16 * k], 1, op=ADD)
            pld.system.wait(signal, [0, 80 + 16 * k], 1, cmp=GE)

    return body


MOVING = {"dtype": pl.INT32, "cells": (1, 160), "tensor": (1, 64), "ranks": 2}


def test_B05_bytes_that_are_payload_in_one_call_and_flags_in_the_next():
    told = found(moving_flags(False), **MOVING)
    assert any(kind in ("race", "lost-credit") and "payload" in marks for kind, _, marks in told)


def test_B05_twin_flags_in_a_region_of_their_own():
    assert found(moving_flags(True), **MOVING) == set()


# ---- B06: a flag value fixed at capture ---------------------------------------------------------------


def captured(x, y, data, signal, e):
    peer = 1 - me(data)
    put(data, peer, x)
    pld.system.notify(signal, peer, [0, 0], e, op=SET)  # (flag)
    pld.system.wait(signal, [0, 0], e, cmp=EQ)  # (wait)
    pl.store(pl.load(data, [0, 0], ROW), [0, 0], y)  # (take)
    pld.system.notify(signal, peer, [1, 0], 1, op=ADD)
    pld.system.wait(signal, [1, 0], e, cmp=GE)


def test_B06_the_same_number_on_every_replay():
    told = found(captured, ranks=2, launches=3, arg=lambda launch: 1)
    assert {("early-release", "error", ("wait", "flag")), ("race", "error", ("put", "take"))} <= told
    (run,) = results(captured, launches=3, arg=lambda launch: 1)
    early = next(f for f in run.findings if f.kind == "early-release")
    assert "argument" in early.fix


def test_B06_twin_the_number_goes_on():
    assert found(captured, ranks=2, launches=3, arg=lambda launch: launch + 1) == set()


# ---- B07: two groups on the same rows ------------------------------------------------------------------


def groups(apart):
    """All four ranks meet, and ranks 0 and 1 meet among themselves, on rows that take no notice of the group."""

    def body(x, y, data, signal, e):
        rank = me(data)

        def meet(members, row, stage, read):
            stage()
            for p in members:
                if p != rank:
                    pld.system.notify(signal, p, [row, 16 * rank], 1, op=ADD)  # (notify)
            for p in members:
                if p != rank:
                    pld.system.wait(signal, [row, 16 * p], 1, cmp=GE)  # (wait)
            for p in members:
                if p != rank:
                    read(p)

        if rank < 2:
            meet(
                [0, 1],
                1 if apart else 0,
                lambda: put(data, rank, x),
                lambda p: pld.tile.remote_load(data, p, [0, 0], ROW),
            )
        meet(
            [0, 1, 2, 3],
            0,
            lambda: put(data, rank, x, at=64),  # (stage)
            lambda p: pld.tile.remote_load(data, p, [0, 64], ROW),  # (get)
        )

    return body


def test_B07_a_signal_of_one_group_completes_a_wait_of_the_other():
    told = found(groups(False), ranks=4, size=128, tensor=(1, 64), cells=(2, 64))
    assert {kind for kind, _, _ in told} == {"early-release", "race"}
    (early,) = [
        v
        for v in everywhere(groups(False), ranks=4, size=128, tensor=(1, 64), cells=(2, 64))[0]
        if v.kind == "early-release"
    ]
    assert early.ranks == (0, 1)  # only they belong to both groups


def test_B07_twin_each_group_has_rows_of_its_own():
    assert found(groups(True), ranks=4, size=128, tensor=(1, 64), cells=(2, 64)) == set()


# ---- B08: a fast rank laps a one-counter barrier --------------------------------------------------------


def one_counter(x, y, data, signal, e):
    for _ in range(3):
        for p in others(data):
            pld.system.notify(signal, p, [0, 0], 1, op=ADD)  # (arrive)
        pld.system.wait(signal, [0, 0], 2, cmp=EQ)  # (wait)
        pld.system.notify(signal, me(data), [0, 0], 0, op=SET)  # (reset)


def test_B08_a_counter_without_a_leave_phase():
    for seed in range(6):
        (run,) = results(one_counter, ranks=3, seed=seed)
        told = {f.kind for f in run.findings}
        assert {"lost-credit", "overshoot"} <= told, seed
    assert any("is slow" in f.message for f in run.findings)  # which rank's delay brings it about


def test_B08_twin_counters_that_grow():
    def body(x, y, data, signal, e):
        for k in range(3):
            for p in others(data):
                pld.system.notify(signal, p, [0, 0], 1, op=ADD)
            pld.system.wait(signal, [0, 0], 2 * (k + 1), cmp=GE)

    assert found(body, ranks=3) == set()


# ---- B09: int32 epochs wrap ------------------------------------------------------------------------------


def wrapping(start, rounds=5):
    def body(x, y, data, signal, e):
        peer = 1 - me(data)
        pld.system.notify(signal, me(data), [0, 0], start, op=ADD)
        for k in range(rounds):
            pld.system.notify(signal, peer, [0, 0], 1, op=ADD)  # (bump)
            pld.system.wait(signal, [0, 0], min(start + k + 1, 2**31 - 1), cmp=GE)  # (wait)

    return body


def test_B09_a_counter_runs_past_int32():
    for seed in range(3):
        (run,) = results(wrapping(2**31 - 2), seed=seed)
        overflow = [f for f in run.findings if f.kind == "overflow"]
        assert [f.severity for f in overflow] == ["error"]
        assert "int32" in overflow[0].message


def test_B09_twin_far_from_the_end():
    assert found(wrapping(1000)) == set()
