"""A program whose annotations are text (``from __future__ import annotations``)."""

from __future__ import annotations

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld


def build_class(nr, size):
    """``nr`` stands in annotations only, so no closure has it."""

    @pl.program
    class Doubled:
        @pl.function(type=pl.FunctionType.InCore)
        def step(self, x: pl.Tensor[[1, size], pl.FP32], y: pl.Out[pl.Tensor[[1, size], pl.FP32]]):
            pl.store(pl.mul(pl.load(x, [0, 0], [1, size]), 2.0), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: pl.Tensor[[1, size], pl.FP32], y: pl.Out[pl.Tensor[[1, size], pl.FP32]]):
            self.step(x, y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self, x: pl.Tensor[[nr, 1, size], pl.FP32], y: pl.Out[pl.Tensor[[nr, 1, size], pl.FP32]]
        ) -> pl.Tensor[[nr, 1, size], pl.FP32]:
            for r in pl.range(pld.world_size()):
                self.per_rank(x[r], y[r], device=r)
            return y

    return Doubled


@pl.jit.incore
def copy_step(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    """Bare tensors of any shape."""
    pl.store(pl.load(x, [0, 0], x.shape), [0, 0], y)


@pl.jit
def copy(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    """One device."""
    copy_step(x, y)
