"""``pld.tensor.allgather``: every rank writes its row into row ``my_rank`` of all targets, then a barrier."""

from functools import lru_cache
from typing import Any

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.builtin.credits import Credits
from a2a3sim.kernels.builtin.pieces import staging

__all__ = ["build"]


@lru_cache(maxsize=256)
def build(*, ranks: int, size: int, dtype: pl.DataType, window: bool, fenced: bool) -> Any:
    """The kernel for rows of ``size`` elements; ``window``: the input is one, not a plain tensor."""
    chunks = staging(1, size, dtype)
    kind = pld.DistributedTensor if window else pl.Tensor

    @pl.jit.incore
    def allgather(
        local_data: kind[[1, size], dtype],
        target: pl.InOut[pld.DistributedTensor[[ranks, size], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        me = pld.rank(pld.get_comm_ctx(target))
        credits = Credits(signal, lambda rank: [rank, 0], fenced)
        for peer in pl.range(ranks):
            pld.tensor.put(target, peer, local_data, [me, 0], [0, 0], [1, size], **chunks)
        credits.barrier()
        credits.settle()
        return target

    return allgather
