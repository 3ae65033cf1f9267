"""01 hello rank: one program is started on every device, and each copy is told which rank it is.

Nobody communicates yet. The host hands rank r its own slice of the tensors and its number; the device
adds 1000 * r to what it got.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 16


def build_hello_rank(nr: int):
    """The program for nr ranks."""

    @pl.program
    class HelloRank:
        @pl.function(type=pl.FunctionType.InCore)
        def greet(
            self,
            x: pl.Tensor[[1, SIZE], pl.INT32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.INT32]],
            rank: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[1, SIZE], pl.INT32]:
            # A core computes on tiles in its own memory: bring the slice in, work on it, send it back.
            tile = pl.load(x, [0, 0], [1, SIZE])
            tile = pl.add(tile, 1000 * rank)
            y = pl.store(tile, [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, SIZE], pl.INT32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.INT32]],
            rank: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[1, SIZE], pl.INT32]:
            return self.greet(x, y, rank)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def hello_rank(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.INT32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.INT32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.INT32]:
            # device=r is a rank, 0 .. nr-1, whatever label the physical device carries.
            for r in pl.range(pld.world_size()):
                self.per_rank(x[r], y[r], r, device=r)
            return y

    return HelloRank


def main() -> int:
    args = arguments(__doc__)
    nr = len(args.device_ids)
    compiled = compiled_for(args, build_hello_rank(nr))
    x = np.arange(nr * SIZE, dtype=np.int32).reshape(nr, 1, SIZE)
    y = np.zeros_like(x)
    expected = x + 1000 * np.arange(nr, dtype=np.int32).reshape(nr, 1, 1)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
