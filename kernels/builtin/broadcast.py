"""``pld.tensor.broadcast``: a barrier, then every rank reads root's slice into its own.

No barrier follows: root may overwrite its slice only after another synchronisation.
"""

from functools import lru_cache
from typing import Any

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.builtin.credits import Credits
from a2a3sim.kernels.builtin.pieces import staging

__all__ = ["build"]


@lru_cache(maxsize=256)
def build(*, ranks: int, count: int, dtype: pl.DataType, root: int, fenced: bool) -> Any:
    """The kernel for slices of ``count`` elements."""
    chunks = staging(1, count, dtype)

    @pl.jit.incore
    def broadcast(
        target: pl.InOut[pld.DistributedTensor[[1, count], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        me = pld.rank(pld.get_comm_ctx(target))
        credits = Credits(signal, lambda rank: [rank, 0], fenced)
        credits.barrier()
        if me != root:
            pld.tensor.get(target, root, target, [0, 0], [0, 0], [1, count], **chunks)
        credits.settle()
        return target

    return broadcast
