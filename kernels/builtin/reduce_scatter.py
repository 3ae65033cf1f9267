"""``pld.tensor.reduce_scatter``: rank r adds up row r of all targets, in place; other rows keep the input.

Nobody but rank r reads its own row r, so the second barrier does not guard the row: it says that all peers
are done with the others. The last piece of the row is stored behind it; only rows above 16 KiB have earlier
pieces, which are stored as they come so that a row of any length fits into UB.
"""

from functools import lru_cache
from typing import Any

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.builtin.credits import Credits
from a2a3sim.kernels.builtin.pieces import load, pieces, remote_load

__all__ = ["build"]


@lru_cache(maxsize=256)
def build(*, ranks: int, size: int, dtype: pl.DataType, fenced: bool) -> Any:
    """The kernel for rows of ``size`` elements."""
    row = pieces(size, dtype)

    @pl.jit.incore
    def reduce_scatter(
        target: pl.InOut[pld.DistributedTensor[[ranks, size], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        me = pld.rank(pld.get_comm_ctx(target))
        credits = Credits(signal, lambda rank: [rank, 0], fenced)
        credits.barrier()
        for at, length in row:
            acc = load(target, me, at, length)
            for peer in credits.peers:
                acc = pl.add(acc, remote_load(target, peer, me, at, length))
            if at + length == size:
                credits.barrier()
            pl.store(acc, [me, at], target)
        credits.settle()
        return target

    return reduce_scatter
