"""B14 - B20: windows and buffers that are used again while somebody still needs what they hold."""

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

from .harness import (
    ADD,
    GE,
    compiled,
    everywhere,
    found,
    inputs,
    kinds,
    marks_of,
    me,
    others,
    results,
    verdicts,
)

ROW = [1, 64]
PAIRS = {"ranks": 4, "cells": (2, 64)}


def barrier(signal, row, value):
    rank = me(signal)
    for p in others(signal):
        pld.system.notify(signal, p, [row, 16 * rank], 1, op=ADD)
    for p in others(signal):
        pld.system.wait(signal, [row, 16 * p], value, cmp=GE)


# ---- B14: an all-reduce without an exit barrier -----------------------------------------------------------


def one_shot(closing, rounds=2):
    def body(x, y, data, signal, e):
        for k in range(rounds):
            epoch = e * rounds + k + 1
            acc = pl.load(x, [0, 0], ROW)
            pl.store(acc, [0, 0], data)  # (stage)
            barrier(signal, 0, epoch)
            for p in others(data):
                acc = pl.add(acc, pld.tile.remote_load(data, p, [0, 0], ROW))  # (get)
            pl.store(acc, [0, 0], y)
            if closing:
                barrier(signal, 1, epoch)

    return body


RACE = {("race", "error", ("stage", "get"))}


def test_B14_two_rounds_of_one_kernel():
    (told,) = everywhere(one_shot(False), **PAIRS)
    assert {v[:3] for v in told} == RACE
    (race,) = told
    assert (race.ranks, race.where) == ((0, 1, 2, 3), "data_buf bytes [0, 256]")
    (run,) = results(one_shot(False), **PAIRS)
    assert "between every two of ranks 0..3" in run.findings[0].message
    assert "closing barrier" in run.findings[0].fix


def test_B14_two_dispatches_of_one_host_program():
    assert found(one_shot(False, rounds=1), launches=2, **PAIRS) == RACE


def count_from(signal):
    """A cell that only its owner changes counts the calls."""
    rank = me(signal)
    calls = pl.read(signal, [1, 16 * rank])
    pl.write(signal, [1, 16 * rank], calls + 1)
    return calls


def one_shot_calls(closing):
    def body(x, y, data, signal, e):
        epoch = count_from(signal) + 1
        acc = pl.load(x, [0, 0], ROW)
        pl.store(acc, [0, 0], data)  # (stage)
        barrier(signal, 0, epoch)
        for p in others(data):
            acc = pl.add(acc, pld.tile.remote_load(data, p, [0, 0], ROW))  # (get)
        pl.store(acc, [0, 0], y)
        if closing:
            barrier(signal, 2, epoch)

    return body


CALLS = {"ranks": 4, "cells": (3, 64), "calls": 3}


def test_B14_two_calls_on_windows_that_live_on():
    told = [
        {v[:3] for v in call if v.severity != "note"} for call in everywhere(one_shot_calls(False), **CALLS)
    ]
    assert told == [set(), RACE, RACE]
    runs = results(one_shot_calls(False), **CALLS)
    (race,) = [f for f in runs[1].findings if f.kind == "race"]
    assert {s.call for s in race.sites} == {0, 1}
    assert "two calls" in race.message


def test_B14_twin_with_an_exit_barrier():
    assert found(one_shot(True), **PAIRS) == set()
    assert found(one_shot(True, rounds=1), launches=2, **PAIRS) == set()
    for call in everywhere(one_shot_calls(True), **CALLS):
        assert all(v.severity == "note" for v in call)


def test_B14_twin_calls_on_windows_that_are_reset_are_joined():
    from .harness import build

    program, whole, dtype = build(one_shot(False, rounds=1), 4, cells=(2, 64))
    x, y = inputs(whole, dtype)
    with compiled(program, 4).prepare(RunConfig(), persistent=True) as worker:
        for _ in range(2):
            worker(x, y)
            assert worker.last_run.findings == []


# ---- B15: the result is stored in place while peers still read ---------------------------------------------


def in_place(how):
    def body(x, y, data, signal, e):
        pl.store(pl.load(x, [0, 0], ROW), [0, 0], data)
        barrier(signal, 0, 1)
        acc = pl.load(data, [0, 0], ROW)
        for p in others(data):
            acc = pl.add(acc, pld.tile.remote_load(data, p, [0, 0], ROW))  # (get)
        if how == "barrier":
            barrier(signal, 1, 1)
        if how == "private":
            pl.store(acc, [0, 0], y)
        else:
            pl.store(acc, [0, 0], data)  # (result)

    return body


def test_B15_the_result_overwrites_what_slow_peers_read():
    (told,) = everywhere(in_place("nothing"), **PAIRS)
    (race,) = told
    assert race[:4] == ("race", "error", ("result", "get"), (0, 1, 2, 3))


@pytest.mark.parametrize("how", ["barrier", "private"])
def test_B15_twins_a_second_barrier_or_a_private_output(how):
    assert found(in_place(how), **PAIRS) == set()


# ---- B16: counts are pulled after the barrier that frees them -----------------------------------------------


def counts_pulled(after):
    def body(x, y, data, signal, e):
        peer = 1 - me(data)
        for k in range(2):
            pl.store(pl.load(x, [0, 0], [1, 16]), [0, 0], data)  # (counts)
            if not after:
                barrier(signal, 1, k + 1)
                pl.store(pld.tile.remote_load(data, peer, [0, 0], [1, 16]), [0, 0], y)
            pld.tensor.put(data, peer, x, [0, 16 + 64 * k], [0, 0], ROW)
            barrier(signal, 0, k + 1)
            if after:
                pl.store(pld.tile.remote_load(data, peer, [0, 0], [1, 16]), [0, 0], y)  # (pull)

    return body


COUNTS = {"ranks": 2, "size": 192, "tensor": (1, 64), "cells": (2, 64)}


def test_B16_counts_pulled_when_the_peer_may_be_in_its_next_call():
    assert found(counts_pulled(True), **COUNTS) == {("race", "error", ("counts", "pull"))}


def test_B16_twin_counts_pulled_between_two_barriers():
    assert found(counts_pulled(False), **COUNTS) == set()


# ---- B17: a receive slot is filled again without acknowledgement ----------------------------------------------


def pipeline(acknowledged):
    def body(x, y, data, signal, e):
        peer = 1 - me(data)
        for k in range(4):
            if acknowledged and k:
                pld.system.wait(signal, [1, 0], k, cmp=GE)
            pld.tensor.put(data, peer, x, [0, 0], [0, 0], ROW)  # (put)
            pld.system.notify(signal, peer, [0, 0], 1, op=ADD)
            pld.system.wait(signal, [0, 0], k + 1, cmp=GE)
            pl.store(pl.load(data, [0, 0], ROW), [0, 0], y)  # (consume)
            if acknowledged:
                pld.system.notify(signal, peer, [1, 0], 1, op=ADD)

    return body


def test_B17_nobody_says_that_the_slot_is_free():
    assert found(pipeline(False)) == {("race", "error", ("put", "consume"))}


def test_B17_twin_with_a_consumed_credit():
    assert found(pipeline(True)) == set()


# ---- B18: the source of a send is overwritten by a peer -----------------------------------------------------------


def reused_source(waits):
    def body(x, y, data, signal, e):
        peer = 1 - me(data)
        half = [1, 64]
        if me(data) == 0:
            pld.tensor.put(data, peer, data, [0, 64], [0, 0], half)  # (send)
            pld.system.notify(signal, peer, [0, 0], 1, op=ADD)
            pld.system.wait(signal, [1, 0], 1, cmp=GE)
        else:
            if waits:
                pld.system.wait(signal, [0, 0], 1, cmp=GE)
            pld.tensor.put(data, peer, x, [0, 0], [0, 0], half)  # (result)
            pld.system.notify(signal, peer, [1, 0], 1, op=ADD)
            pld.system.wait(signal, [0, 0], 1, cmp=GE)

    return body


HALVES = {"ranks": 2, "size": 128, "tensor": (1, 64)}


def test_B18_results_arrive_where_a_send_still_takes_its_bytes():
    (told,) = everywhere(reused_source(False), **HALVES)
    assert {v[:3] for v in told if v.severity != "note"} == {("race", "error", ("result", "send"))}


def test_B18_the_verdict_does_not_depend_on_the_size():
    for machine in ("ideal", "a2"):
        assert "race" in kinds(reused_source(False), machine=machine, **HALVES)


def test_B18_twin_the_peer_waits_for_the_send():
    assert found(reused_source(True), **HALVES) == set()


# ---- B19: torn down while peers still reach in -----------------------------------------------------------------


def last_act(x, y, data, signal, e):
    if me(data) == 1:
        pld.tensor.put(data, 0, x, [0, 0], [0, 0], ROW)  # (put)
        pld.system.notify(signal, 0, [0, 0], 1, op=ADD)  # (notify)


def test_B19_a_final_notify_that_nobody_awaits_is_a_note():
    told = found(last_act, notes=True)
    assert ("residue", "note", ("notify",)) in told
    (run,) = results(last_act)
    (note,) = [f for f in run.findings if f.subtype == "unawaited"]
    assert "rank 0" in note.message and "ended" in note.message


def test_B19_with_a_next_dispatch_on_the_window_it_is_a_race():
    def body(x, y, data, signal, e):
        if me(data) == 1 and e == 0:
            pld.tensor.put(data, 0, x, [0, 0], [0, 0], ROW)  # (late put)
        if me(data) == 0 and e == 1:
            pl.store(pl.load(x, [0, 0], ROW), [0, 0], data)  # (reused)

    assert found(body, launches=2) == {("race", "error", ("late put", "reused"))}


def test_B19_twin_the_owner_waits():
    def body(x, y, data, signal, e):
        last_act(x, y, data, signal, e)
        if me(data) == 0:
            pld.system.wait(signal, [0, 0], 1, cmp=GE)

    assert found(body, notes=True) == set()


# ---- B20: an edge lost because a remote write is classed as input -----------------------------------------------


def two_kernels(direction):
    w_t = pld.DistributedTensor[[1, 64], pl.FP32]
    s_t = pl.InOut[pld.DistributedTensor[[2, 16], pl.INT32]]
    x_t, y_t = pl.Tensor[[1, 64], pl.FP32], pl.Out[pl.Tensor[[1, 64], pl.FP32]]
    push_t = direction[w_t] if direction else w_t
    whole = [2, 1, 64]

    @pl.program
    class TwoKernels:
        @pl.function(type=pl.FunctionType.InCore)
        def push(self, x: x_t, w: push_t, signal: s_t):
            peer = 1 - pld.rank(pld.get_comm_ctx(w))
            pld.tensor.put(w, peer, x)  # (push)
            pld.system.notify(signal, peer, [0, 0], 1, op=ADD)
            pld.system.wait(signal, [0, 0], 1, cmp=GE)

        @pl.function(type=pl.FunctionType.InCore)
        def reduce(self, w: w_t, y: y_t):
            pl.store(pl.load(w, [0, 0], ROW), [0, 0], y)  # (take)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: x_t, y: y_t, w: pl.InOut[w_t], signal: s_t):
            self.push(x, w, signal)
            self.reduce(w, y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[whole, pl.FP32], y: pl.Out[pl.Tensor[whole, pl.FP32]]):
            w_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
            s_buf = pld.alloc_window_buffer([2, 16], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                w = pld.window(w_buf, [1, 64], dtype=pl.FP32)
                signal = pld.window(s_buf, [2, 16], dtype=pl.INT32)
                self.per_rank(x[r], y[r], w, signal, device=r)

    return TwoKernels, whole


def run_two_kernels(direction, seed=0):
    program, whole = two_kernels(direction)
    bound = compiled(program, 2)
    bound(*inputs(whole, pl.FP32), config=RunConfig(seed=seed))
    return bound.last_run


def test_B20_a_window_that_is_pushed_to_but_declared_as_input():
    for seed in range(3):
        run = run_two_kernels(None, seed)
        told = {v[:3] for v in verdicts(run, marks_of(two_kernels)) if v.severity != "note"}
        assert told == {("race", "error", ("push", "take"))}
    message = run.findings[0].message
    assert "push" in message and "reduce" in message and "InOut" in run.findings[0].fix


def test_B20_twin_declared_as_written():
    assert [f for f in run_two_kernels(pl.InOut).findings if f.severity != "note"] == []
