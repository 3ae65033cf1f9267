"""``pld.tensor.allreduce``, ring: 2(P-1) rounds, each reading one chunk of the left neighbour; in place.

Rounds 0 .. P-2 reduce: in round s rank r adds its left neighbour's chunk r-1-s to its own, so that chunk c
is summed up by ranks c+1, c+2, … and complete at rank c-1: x[c-1] + (x[c-2] + (… + (x[c+1] + x[c]))).
Rounds P-1 .. 2P-3 gather: rank r copies chunk r-t of its left neighbour, who has it complete. Every round
has a row of the signal and barriers over all ranks.
"""

from functools import lru_cache
from typing import Any

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.builtin.credits import Credits
from a2a3sim.kernels.builtin.pieces import COMBINE, Piece, load, pieces, remote_load

__all__ = ["bounds", "build", "build_host", "chunk_of"]

_LINE = 16  # elements: FP16 chunks begin on 32-byte boundaries


def bounds(count: int, ranks: int, dtype: pl.DataType) -> list[Piece]:
    """Chunk i as (start, size): it starts at floor(i * count / ranks), FP16 rounded down to 16 elements."""
    granule = _LINE if dtype is pl.FP16 else 1
    starts = [i * count // ranks // granule * granule for i in range(ranks)]
    return [Piece(at, end - at) for at, end in zip(starts, [*starts[1:], count], strict=True)]


def chunk_of(me: int, step: int, ranks: int) -> int:
    """The chunk that rank ``me`` reads in round ``step``; no operand of the remainder is negative."""
    if step < ranks - 1:
        return (me + ranks - 1 - step) % ranks
    return (me + ranks - (step - (ranks - 1))) % ranks


def _row(signal: pld.DistributedTensor, step: int, fenced: bool) -> Credits:
    return Credits(signal, lambda rank: [step, rank], fenced)


@lru_cache(maxsize=256)
def build(*, ranks: int, count: int, dtype: pl.DataType, op: pld.ReduceOp, fenced: bool) -> Any:
    """The kernel that a kernel's own call runs: slices of any length, all reductions.

    Each piece of a round has a barrier before it is read and one before it is written. Chunks may differ in
    length, so every rank goes through the barriers of the longest one.
    """
    combine = COMBINE[op]
    rounds = 2 * (ranks - 1)
    chunks = [pieces(part.size, dtype, part.start) for part in bounds(count, ranks, dtype)]
    longest = max(len(chunk) for chunk in chunks)

    @pl.jit.incore
    def allreduce(
        target: pl.InOut[pld.DistributedTensor[[1, count], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[rounds, ranks], pl.INT32]],
    ):
        me = pld.rank(pld.get_comm_ctx(target))
        left = (me + ranks - 1) % ranks
        rows = [_row(signal, step, fenced) for step in range(rounds)]
        for step in pl.range(rounds):
            mine = chunks[chunk_of(me, step, ranks)]
            for k in pl.range(longest):
                rows[step].barrier()
                if k < len(mine):
                    at, size = mine[k]
                    acc = remote_load(target, left, 0, at, size)
                    if step < ranks - 1:
                        acc = combine(load(target, 0, at, size), acc)
                rows[step].barrier()
                if k < len(mine):
                    pl.store(acc, [0, at], target)
        for row in rows:
            row.settle()
        return target

    return allreduce


@lru_cache(maxsize=256)
def build_host(*, ranks: int, count: int, dtype: pl.DataType, op: pld.ReduceOp, fenced: bool) -> Any:
    """The kernel that the host's call runs: ``count`` a multiple of ``ranks``, one barrier a round.

    Within a round a rank writes no chunk that its neighbour reads in it, so the barrier that opens the next
    round is enough; the one row more than rounds is the barrier behind the last.
    """
    combine = COMBINE[op]
    rounds = 2 * (ranks - 1)
    size = count // ranks

    @pl.jit.incore
    def allreduce(
        target: pl.InOut[pld.DistributedTensor[[1, count], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[rounds + 1, ranks], pl.INT32]],
    ):
        me = pld.rank(pld.get_comm_ctx(target))
        left = (me + ranks - 1) % ranks
        rows = [_row(signal, step, fenced) for step in range(rounds + 1)]
        for step in pl.range(rounds):
            rows[step].barrier()
            for at, length in pieces(size, dtype, chunk_of(me, step, ranks) * size):
                acc = remote_load(target, left, 0, at, length)
                if step < ranks - 1:
                    acc = combine(load(target, 0, at, length), acc)
                pl.store(acc, [0, at], target)
        rows[rounds].barrier()
        for row in rows:
            row.settle()
        return target

    return allreduce
