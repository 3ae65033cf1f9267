"""02 programming model: host, device and core each have their own kind of function.

The host body says what starts on which device, the device's orchestration which kernels run there in
which order, and a kernel what one core does with tiles. This program is written in the function form
(@pl.jit); step 01 is written in the class form (@pl.program). Both mean the same.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

ROWS, COLS = 64, 256
TILE = 8  # rows that a core holds at a time
NR = pl.dynamic("NR")  # the number of ranks, read from the tensors' shapes (step 07)


# A kernel: one core. Loads, vector work and stores go to three pipes that overlap, so the next tile is
# on its way while this one is being worked on.
@pl.jit.incore
def double(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    for i in pl.range(ROWS // TILE):
        tile = pl.load(x, [i * TILE, 0], [TILE, COLS])
        y = pl.store(pl.mul(tile, 2.0), [i * TILE, 0], y)
    return y


@pl.jit.incore
def increment(y: pl.InOut[pl.Tensor[[ROWS, COLS], pl.FP32]]):
    for i in pl.range(ROWS // TILE):
        tile = pl.load(y, [i * TILE, 0], [TILE, COLS])
        y = pl.store(pl.add(tile, 1.0), [i * TILE, 0], y)
    return y


# An orchestration: one device. The second kernel follows the first because it takes what that one
# declares as its output.
@pl.jit
def per_rank(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    y = double(x, y)
    y = increment(y)
    return y


# The host body: all devices. It is gone through once to see what it asks for; then all devices start.
@pl.jit.host
def programming_model(
    x: pl.Tensor[[NR, ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, ROWS, COLS], pl.FP32]],
):
    for r in pl.range(pld.world_size()):
        per_rank(x[r], y[r], device=r)


def main() -> int:
    args = arguments(__doc__)
    nr = len(args.device_ids)
    x = np.random.default_rng(2).standard_normal((nr, ROWS, COLS), dtype=np.float32)
    y = np.zeros_like(x)
    compiled = compiled_for(args, programming_model, x, y)
    expected = 2 * x + 1
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
