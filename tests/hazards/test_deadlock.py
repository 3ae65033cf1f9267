"""B32 - B38: nothing goes on, and the report says who is to blame."""

import contextlib

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import A2A3Error, RunConfig

from .harness import (
    ADD,
    EQ,
    GE,
    SET,
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


def deadlock(body, seed=0, **options):
    """The deadlock finding of a run."""
    (run,) = results(body, seed=seed, **options)
    (finding,) = [f for f in run.findings if f.kind == "deadlock"]
    return finding


# ---- B32: a wait is scheduled before the same rank's send ---------------------------------------------------


def consume_before_produce(produce_first):
    x_t, y_t = pl.Tensor[[1, 64], pl.FP32], pl.Out[pl.Tensor[[1, 64], pl.FP32]]
    d_t = pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]]
    s_t = pl.InOut[pld.DistributedTensor[[2, 16], pl.INT32]]
    whole = [2, 1, 64]

    @pl.program
    class Tasks:
        @pl.function(type=pl.FunctionType.InCore)
        def send_kernel(self, x: x_t, data: d_t, signal: s_t):
            peer = 1 - pld.rank(pld.get_comm_ctx(data))
            pld.tensor.put(data, peer, x)
            pld.system.notify(signal, peer, [0, 0], 1, op=ADD)

        @pl.function(type=pl.FunctionType.InCore)
        def take_kernel(self, y: y_t, data: d_t, signal: s_t):
            pld.system.wait(signal, [0, 0], 1, cmp=GE)  # (await)
            pl.store(pl.load(data, [0, 0], ROW), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def send(self, x: x_t, data: d_t, signal: s_t):
            self.send_kernel(x, data, signal)

        @pl.function(type=pl.FunctionType.Orchestration)
        def take(self, y: y_t, data: d_t, signal: s_t):
            self.take_kernel(y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[whole, pl.FP32], y: pl.Out[pl.Tensor[whole, pl.FP32]]):
            data_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([2, 16], dtype=pl.INT32)
            data = pld.window(data_buf, [1, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 16], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                if produce_first:
                    self.send(x[r], data, signal, device=r)
                    self.take(y[r], data, signal, device=r)
                else:
                    self.take(y[r], data, signal, device=r)
                    self.send(x[r], data, signal, device=r)

    return Tasks, whole


def run_tasks(produce_first, seed=0):
    program, whole = consume_before_produce(produce_first)
    bound = compiled(program, 2)
    with contextlib.suppress(A2A3Error):
        bound(*inputs(whole, pl.FP32), config=RunConfig(seed=seed))
    return bound.last_run


def test_B32_the_send_stands_behind_the_wait_in_its_devices_queue():
    for seed in range(3):
        (finding,) = run_tasks(False, seed).findings
        assert (finding.kind, finding.ranks) == ("deadlock", [0, 1])
        assert [marks_of(consume_before_produce)[s.line] for s in finding.sites] == ["await", "await"]
        assert "not begun: send of ranks 0 and 1, which stands behind take_kernel" in finding.message


def test_B32_twin_dispatched_in_the_other_order():
    assert {v[:3] for v in verdicts(run_tasks(True), {}) if v.severity != "note"} == set()


# ---- B34: an exact wait is overshot ------------------------------------------------------------------------------


def rounds(cmp, acknowledged, workers=3, count=4):
    def body(x, y, data, signal, e):
        rank = me(data)
        for k in range(count):
            if rank == 0:
                for w in range(1, workers + 1):
                    pld.system.notify(signal, w, [0, 0], k + 1, op=SET)  # (publish)
                if acknowledged:
                    pld.system.wait(signal, [1, 0], workers * (k + 1), cmp=GE)
            else:
                pld.system.wait(signal, [0, 0], k + 1, cmp=cmp)  # (exactly)
                if acknowledged:
                    pld.system.notify(signal, 0, [1, 0], 1, op=ADD)

    return body


def test_B34_round_numbers_that_nobody_acknowledges():
    told = found(rounds(EQ, False), ranks=4, hangs=True)
    assert told == {("overshoot", "error", ("exactly", "publish"))}


def test_B34_a_slow_worker_never_sees_its_number():
    finding = deadlock(rounds(EQ, False), ranks=4, config={"slow": {2: "400x"}})
    assert 2 in finding.ranks
    assert "passed the awaited one" in finding.message


def test_B34_twins_acknowledged_or_at_least():
    assert found(rounds(EQ, True), ranks=4) == set()
    assert found(rounds(GE, False), ranks=4) == set()


# ---- B35: a notify to nowhere --------------------------------------------------------------------------------------


def garbage(peer=None, row=None):
    def body(x, y, data, signal, e):
        mine = me(data)
        to = (1 - mine) if peer is None else mine + peer
        pld.system.notify(signal, to, [row or 0, pl.get_block_idx()], 1, op=ADD)  # (nowhere)
        pld.system.wait(signal, [0, pl.get_block_idx()], 1, cmp=GE)

    return body


@pytest.mark.parametrize("where", [{"peer": 7}, {"row": 9}])
def test_B35_a_peer_or_a_cell_that_does_not_exist(where):
    (told,) = everywhere(garbage(**where), blocks=2)
    assert {v[:4] for v in told} == {("out-of-bounds", "error", ("nowhere",), (0, 1))}


def test_B35_twin():
    assert found(garbage(), blocks=2) == set()


# ---- B36: ranks run different numbers of blocks ------------------------------------------------------------------------


def lane_wise(x, y, data, signal, e):
    lane, peer = pl.get_block_idx(), 1 - me(data)
    pld.system.notify(signal, peer, [lane, 0], 1, op=ADD)
    pld.system.wait(signal, [lane, 0], 1, cmp=GE)  # (lane's wait)


def test_B36_one_rank_has_fewer_lanes():
    for seed in range(3):
        finding = deadlock(lane_wise, seed, blocks=lambda rank: 4 - rank)
        assert finding.ranks == [0]
        assert finding.where["cells"] == ["signal_buf[3, 0]"]
        assert "kernel runs on 3 cores of rank 1 and 4 cores of rank 0" in finding.message
        assert "as many cores on every rank" in finding.fix


def test_B36_a_barrier_that_counts_more_than_come():
    def body(x, y, data, signal, e):
        pld.system.notify(signal, 0, [0, 0], 1, op=ADD)
        if me(data) == 0:
            pld.system.wait(signal, [0, 0], 2 * 4, cmp=GE)  # (counts eight)

    finding = deadlock(body, blocks=2)
    assert "signal_buf[0, 0] >= 8; it holds 4" in finding.message


def test_B36_twin_as_many_lanes_everywhere():
    assert found(lane_wise, blocks=4) == set()


# ---- B37: neighbours and groups ------------------------------------------------------------------------------------------


def neighbours(left, to):
    def body(x, y, data, signal, e):
        rank, count = me(data), 4
        pld.system.notify(signal, to(rank, count), [rank, 0], 1, op=ADD)  # (hand on)
        pld.system.wait(signal, [left(rank, count), 0], 1, cmp=GE)  # (from the left)

    return body


def right(rank, count):
    return (rank + 1) % count


def wrapped(rank, count):
    return (rank + count - 1) % count


def test_B37_a_left_neighbour_of_minus_one():
    told = found(neighbours(lambda r, n: r - 1, right), ranks=4)
    assert told == {("out-of-bounds", "error", ("from the left",))}
    (run,) = results(neighbours(lambda r, n: r - 1, right), ranks=4)
    assert run.findings[0].ranks == [0]


def test_B37_a_remainder_that_the_machine_takes_otherwise():
    """Right in Python, where -1 % 4 is 3."""

    def left(rank, count):
        return (rank - 1) % count  # (left)

    body = neighbours(left, right)
    assert found(body, ranks=4) == {("out-of-bounds", "warning", ("left",))}
    (run,) = results(body, ranks=4)
    assert run.findings[0].ranks == [0]
    assert "-1 % 4 is 3 in Python but -1 on the machine" in run.findings[0].message


def test_B37_a_rendezvous_over_ranks_that_were_never_started():
    x_t = pl.Tensor[[1, 8], pl.FP32]
    s_t = pl.InOut[pld.DistributedTensor[[4, 16], pl.INT32]]

    @pl.program
    class Half:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: x_t, signal: s_t):
            rank = pld.rank(pld.get_comm_ctx(signal))
            for p in range(2):
                if p != rank:
                    pld.system.notify(signal, p, [rank, 0], 1, op=ADD)
            for p in range(4):
                if p != rank:
                    pld.system.wait(signal, [p, 0], 1, cmp=GE)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: x_t, signal: s_t):
            self.kernel(x, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[4, 1, 8], pl.FP32]):
            buf = pld.alloc_window_buffer([4, 16], dtype=pl.INT32)
            for r in pl.range(2):
                self.per_rank(x[r], pld.window(buf, [4, 16], dtype=pl.INT32), device=r)

    bound = compiled(Half, 4)
    with pytest.raises(A2A3Error):
        bound(inputs([4, 1, 8], pl.FP32)[0])
    (finding,) = [f for f in bound.last_run.findings if f.kind == "deadlock"]
    assert "ranks 2 and 3 never started: the host body dispatches nothing to them" in finding.message
    assert "rank 2 never started" in finding.message


def test_B37_one_peer_for_both_directions():
    finding = deadlock(neighbours(right, right), ranks=4)
    assert finding.ranks == [0, 1, 2, 3]
    assert "near miss" in finding.message
    assert "wait-for cycle" in finding.message


def test_B37_twin_with_wrap_around():
    assert found(neighbours(wrapped, right), ranks=4) == set()


# ---- B38: a stalled barrier, and three different causes ---------------------------------------------------------------------


def meeting(skips=None, off=None, ranks=16):
    def body(x, y, data, signal, e):
        rank = me(data)
        if rank != skips:
            for p in others(data):
                pld.system.notify(signal, p, [rank, 0], 1, op=ADD)  # (arrive)
        for p in others(data):
            pld.system.wait(signal, [p, 0], 2 if rank == off else 1, cmp=GE)  # (meet)

    return body


MANY = {"ranks": 16, "cells": (16, 16), "machine": "ideal"}


def test_B38_a_member_that_skips_its_notify():
    for seed in range(3):
        finding = deadlock(meeting(skips=7), seed, **MANY)
        assert finding.ranks == [r for r in range(16) if r != 7]
        assert "rank 7 has finished without a notify" in finding.message
        assert "other ranks do at" in finding.message


def test_B38_a_member_whose_epoch_is_off_by_one():
    finding = deadlock(meeting(off=7), **MANY)
    assert finding.ranks == [7]
    assert ">= 2; it holds 1" in finding.message
    assert "add 1" in finding.message


def test_B38_twin_all_take_part():
    assert found(meeting(), seeds=range(1), **MANY) == set()


# ---- must show ---------------------------------------------------------------------------------------------------------------


def test_ring_that_notifies_the_wrong_neighbour():
    """P = 4: the near miss and the cycle."""
    finding = deadlock(neighbours(wrapped, wrapped), ranks=4)
    assert "wait-for cycle: rank 0 -> rank 3 -> rank 2 -> rank 1 -> rank 0" in finding.message
    assert "near miss" in finding.message
    assert {marks_of(neighbours)[s.line] for s in finding.sites} == {"from the left"}


def test_livelock_of_scalar_reads():
    def body(x, y, data, signal, e):
        if me(data) == 0:
            while pl.read(signal, [0, 0]) == 0:  # (spin)
                pass

    (told,) = everywhere(body, seeds=range(2))
    assert {v[:4] for v in told if v.severity != "note"} == {("livelock", "error", ("spin",), (0,))}


def test_kinds_agree_whichever_rank_fails_first():
    def body(x, y, data, signal, e):
        pl.load(x, [0, 60], [1, 8])  # (outside)

    (told,) = everywhere(body, ranks=4)
    assert {v[:4] for v in told} == {("out-of-bounds", "error", ("outside",), (0, 1, 2, 3))}
    assert kinds(body, ranks=4) == {"out-of-bounds"}
