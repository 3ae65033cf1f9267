"""``pld.tensor.all_to_all_v``: blocks of varying use, always moved whole, with their counts beside them.

Rank r writes its whole block d into block r of rank d and sets ``recv_counts[r, 0]`` there to the number of
rows that count, at most a block. Rows beyond it hold whatever the sender's block held there. Counts are
Sets, each cell having one writer, and go to a rank before the credit that publishes them.
"""

from functools import lru_cache
from typing import Any

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.builtin.credits import Credits
from a2a3sim.kernels.builtin.pieces import staging

__all__ = ["build"]


@lru_cache(maxsize=256)
def build(
    *, ranks: int, rows: int, size: int, dtype: pl.DataType, window: bool, counts_window: bool, fenced: bool
) -> Any:
    """The kernel for blocks of ``rows`` x ``size``; ``window``, ``counts_window``: sources are windows."""
    chunks = staging(rows, size, dtype)
    kind = pld.DistributedTensor if window else pl.Tensor
    counts_kind = pld.DistributedTensor if counts_window else pl.Tensor

    @pl.jit.incore
    def all_to_all_v(
        input: kind[[ranks * rows, size], dtype],
        target: pl.InOut[pld.DistributedTensor[[ranks * rows, size], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
        send_counts: counts_kind[[ranks, 1], pl.INT32],
        recv_counts: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        me = pld.rank(pld.get_comm_ctx(target))
        credits = Credits(signal, lambda rank: [rank, 0], fenced)
        for peer in pl.range(ranks):
            pld.tensor.put(target, peer, input, [me * rows, 0], [peer * rows, 0], [rows, size], **chunks)
            count = pl.read(send_counts, [peer, 0])
            pld.system.notify(recv_counts, peer, [me, 0], min(count, rows), op=pld.NotifyOp.Set)
        credits.barrier()
        credits.settle()
        return target

    return all_to_all_v
