"""``pld.tensor.allreduce``, mesh: every rank reads every peer's slice, piece by piece, and reduces in place.

A barrier says that all slices are there. Then, for each piece: own part first, peers in ascending order, a
barrier (all peers have read this piece of mine), store. A kernel's own call takes pieces of 16 KiB on its
one core; the host's takes 256-element tiles, dealt out in turn to ``lanes`` cores with a column of the
signal each.
"""

from functools import lru_cache
from typing import Any

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.builtin.credits import Credits
from a2a3sim.kernels.builtin.pieces import COMBINE, STAGING, cut, load, remote_load

__all__ = ["HOST_TILE", "build"]

HOST_TILE = 256  # elements


@lru_cache(maxsize=256)
def build(
    *,
    ranks: int,
    count: int,
    dtype: pl.DataType,
    op: pld.ReduceOp,
    columns: int,
    lanes: int,
    host: bool,
    fenced: bool,
) -> Any:
    """The kernel for slices of ``count`` elements and a signal of ``columns`` columns."""
    combine = COMBINE[op]
    parts = cut(count, HOST_TILE if host else STAGING // dtype.itemsize)

    @pl.jit.incore
    def allreduce(
        target: pl.InOut[pld.DistributedTensor[[1, count], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, columns], pl.INT32]],
    ):
        lane = pl.get_block_idx() if host else 0
        credits = Credits(signal, lambda rank: [rank, lane], fenced)
        credits.barrier()
        for at, size in parts[lane::lanes]:
            acc = load(target, 0, at, size)
            for peer in credits.peers:
                acc = combine(acc, remote_load(target, peer, 0, at, size))
            credits.barrier()
            pl.store(acc, [0, at], target)
        credits.settle()
        return target

    return allreduce
