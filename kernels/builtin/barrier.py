"""``pld.tensor.barrier``: nobody leaves before all have come."""

from functools import lru_cache
from typing import Any

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.builtin.credits import Credits

__all__ = ["build"]


@lru_cache(maxsize=256)
def build(*, ranks: int, fenced: bool) -> Any:
    """The kernel for a number of ranks."""

    @pl.jit.incore
    def barrier(signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]]):
        credits = Credits(signal, lambda rank: [rank, 0], fenced)
        credits.barrier()
        credits.settle()
        return signal

    return barrier
