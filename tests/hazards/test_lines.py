"""B28 - B31: cache lines, alignment, layout."""

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .harness import ADD, EQ, GE, SET, everywhere, found, kinds, me, others, results

ROW = [1, 64]


# ---- B28: packed Set signals wipe each other ------------------------------------------------------------


def packed(stride, op):
    def body(x, y, data, signal, e):
        rank = me(data)
        if rank:
            pld.system.notify(signal, 0, [0, stride * rank], 1000 + rank, op=op)  # (raise)
        else:
            for p in others(data):
                pld.system.wait(signal, [0, stride * p], 1000 + p, cmp=GE)

    return body


PACKED = {"ranks": 4, "cells": (1, 64)}


def test_B28_sets_of_neighbouring_words():
    (told,) = everywhere(packed(1, SET), **PACKED)
    (share,) = told
    assert share == ("line-share", "warning", ("raise", "raise"), (1, 2, 3), "signal_buf bytes [0, 64]")


@pytest.mark.parametrize(("stride", "op"), [(1, ADD), (16, SET)])
def test_B28_twins_add_or_a_line_for_each(stride, op):
    assert found(packed(stride, op), **PACKED) == set()


def test_B28_a_machine_whose_sets_write_single_words():
    assert found(packed(1, SET), machine="ideal", **PACKED) == set()


def test_B28_scalar_stores_of_the_cores_of_one_device():
    def body(stride):
        def stores(x, y, data, signal, e):
            pl.write(y, [0, stride * pl.get_block_idx()], 1.0)  # (scalar)

        return stores

    assert found(body(1), blocks=4) == {("line-share", "warning", ("scalar", "scalar"))}
    assert found(body(16), blocks=4) == set()


# ---- B29: sub-buffers share a line ------------------------------------------------------------------------


def sub_buffers(counts, area):
    """One window: a flag at cell 0, counts from cell ``counts`` on, a receive area from ``area`` on."""

    def body(x, y, data, signal, e):
        peer = 1 - me(data)
        for k in range(3):
            pld.tensor.put(signal, peer, x, [0, area], [0, 0], [1, 8])  # (receive)
            pld.system.notify(signal, peer, [0, counts], 7 + k, op=SET)  # (count)
            pld.system.notify(signal, peer, [0, 0], 1, op=ADD)
            pld.system.wait(signal, [0, 0], k + 1, cmp=GE)
            pl.read(signal, [0, counts])
            pld.system.notify(signal, peer, [0, 64], 1, op=ADD)
            pld.system.wait(signal, [0, 64], k + 1, cmp=GE)

    return body


def shared(third):
    """Rank 0 and a third writer of the same line of rank 1's window."""

    def body(x, y, data, signal, e):
        rank = me(data)
        if rank == 0:
            pld.system.notify(signal, 1, [0, 4], 7, op=SET)  # (count of 0)
            pld.system.notify(signal, 1, [0, 0], 1, op=ADD)
        elif rank == 2:
            pld.tensor.put(signal, 1, x, [0, third], [0, 0], [1, 8])  # (payload)
            pld.system.notify(signal, 1, [0, 1], 1, op=ADD)
        else:
            pld.system.wait(signal, [0, 0], 1, cmp=GE)
            pld.system.wait(signal, [0, 1], 1, cmp=GE)
            pl.read(signal, [0, 4])
            pl.store(pl.load(signal, [0, third], [1, 8]), [0, 0], y)

    return body


MIXED = {"dtype": pl.INT32, "cells": (1, 80), "tensor": (1, 8)}


def test_B29_a_count_and_payload_in_one_line():
    told = found(shared(8), ranks=3, **MIXED)
    assert ("line-share", "warning", ("count of 0", "payload")) in told or (
        "line-share", "warning", ("payload", "count of 0")
    ) in told  # fmt: skip


def test_B29_twin_a_line_for_each_sub_buffer():
    assert kinds(shared(32), ranks=3, **MIXED) <= {"line-share"}
    told = everywhere(shared(32), ranks=3, **MIXED)[0]
    assert not any("payload" in v.marks for v in told)


def test_B29_twin_ordered_writers_may_share_a_line():
    assert found(sub_buffers(4, 8), **MIXED) == set()


def test_B29_a_view_that_exceeds_its_buffer_is_refused():
    from a2a3sim import A2A3Error

    from .harness import compiled, inputs

    @pl.program
    class TooLarge:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            y: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
            w: pl.InOut[pld.DistributedTensor[[1, 4140], pl.FP32]],
        ):
            pass

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            y: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
            w: pl.InOut[pld.DistributedTensor[[1, 4140], pl.FP32]],
        ):
            self.kernel(y, w)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, y: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]]):
            buf = pld.alloc_window_buffer(16388 + 112)
            for r in pl.range(pld.world_size()):
                self.per_rank(y[r], pld.window(buf, [1, 4140], dtype=pl.FP32), device=r)

    with pytest.raises(A2A3Error, match="needs 16560 B, but buf has 16500 B"):
        compiled(TooLarge, 2)(inputs([2, 1, 8], pl.FP32)[1])


# ---- B30: second Sets, and Set beside Add -----------------------------------------------------------------


def waves(op, acknowledged=False, cmp=EQ):
    def body(x, y, data, signal, e):
        if me(data) == 0:
            for k in (1, 2):
                pld.system.notify(signal, 1, [0, 0], k if op is SET else 1, op=op)  # (wave)
                if acknowledged:
                    pld.system.wait(signal, [1, 0], k, cmp=GE)
        else:
            for k in (1, 2):
                pld.system.wait(signal, [0, 0], k, cmp=cmp)  # (look)
                if acknowledged:
                    pld.system.notify(signal, 0, [1, 0], 1, op=ADD)

    return body


def test_B30_a_second_set_before_the_owner_has_looked():
    assert kinds(waves(SET), hangs=True) == {"overshoot"}


def test_B30_twins_acknowledged_or_counted():
    assert found(waves(SET, acknowledged=True)) == set()
    assert found(waves(ADD, cmp=GE)) == set()


def two_writers(first, second):
    def body(x, y, data, signal, e):
        rank = me(data)
        if rank == 0:
            pld.system.wait(signal, [0, 0], 1, cmp=GE)
        elif rank == 1:
            pld.system.notify(signal, 0, [0, 0], 1, op=first)  # (one)
        else:
            pld.system.notify(signal, 0, [0, 0], 2, op=second)  # (two)

    return body


@pytest.mark.parametrize(("first", "second"), [(SET, SET), (SET, ADD)])
def test_B30_set_on_a_cell_with_other_writers(first, second):
    assert "lost-credit" in kinds(two_writers(first, second), ranks=3)


def test_B30_twin_all_of_them_add():
    assert found(two_writers(ADD, ADD), ranks=3) == set()


# ---- B31: a ragged chunk misses the 32-byte rule ------------------------------------------------------------


def ragged(chunk, explicit=False):
    def body(x, y, data, signal, e):
        rank = me(data)
        peer = 1 - rank
        pld.tensor.put(data, rank, x, [0, 0], [0, 0], [1, 18])
        pl.system.fence()
        pld.system.notify(signal, peer, [0, 0], 1, op=ADD)
        pld.system.wait(signal, [0, 0], 1, cmp=GE)
        at, size = (0, chunk) if rank == 0 else (chunk, 18 - chunk)
        pld.tensor.get(y, peer, data, [0, at], [0, at], [1, size])  # (get)

    return body


RAGGED = {"size": 18, "tensor": (1, 18)}


def test_B31_chunks_that_begin_within_a_block():
    told = everywhere(ragged(9), **RAGGED)[0]
    assert {v[:3] for v in told if v.severity != "note"} == {("alignment", "warning", ("get",))}
    (run,) = results(ragged(9), **RAGGED)
    places = {tuple(f.where["bytes"]) for f in run.findings if f.kind == "alignment"}
    assert places == {(0, 36), (36, 72)}
    assert "32 bytes" in run.findings[0].fix


def test_B31_twin_chunks_of_whole_blocks_and_a_tail():
    assert found(ragged(16), **RAGGED) == set()


def test_B31_the_rows_of_a_tile_are_whole_blocks():
    def body(x, y, data, signal, e):
        pl.store(pl.load(x, [0, 0], [1, 9]), [0, 0], data)  # (tile)

    def padded(x, y, data, signal, e):
        pl.store(pl.load(x, [0, 0], [1, 16], valid_shape=[1, 9]), [0, 0], data)

    def column(x, y, data, signal, e):
        pl.store(pl.load(x, [0, 0], [1, 1]), [0, 0], data)

    assert found(body, **RAGGED) == {("alignment", "error", ("tile",))}
    assert found(padded, **RAGGED) == set()
    assert found(column, **RAGGED) == set()
    assert found(body, machine="ideal", **RAGGED) == set()  # a machine without the rule
