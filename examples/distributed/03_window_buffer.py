"""03 window buffer: memory that exists once on every rank, under one name.

The host allocates a buffer; from then on every rank owns a slice of it, zero-filled and as large as all
others. A window is a typed view of the buffer. Here one buffer gets two views: the kernel writes its
slice as one long row and reads the same bytes back as four short ones.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 256
ROWS = 4
NR = pl.dynamic("NR")  # the number of ranks (step 07)


@pl.jit.incore
def fold(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, SIZE // ROWS], pl.FP32]],
    flat: pld.DistributedTensor[[1, SIZE], pl.FP32],
    folded: pld.DistributedTensor[[ROWS, SIZE // ROWS], pl.FP32],
):
    # A window knows who shares it; from it a kernel learns its rank.
    ctx = pld.get_comm_ctx(flat)
    my_rank = pld.rank(ctx)

    # pl.load and pl.store reach the own slice only. All ranks write offset 0 of `flat`, each of its own.
    flat = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], flat)

    # The same bytes through the other view. A core's own accesses to the same bytes keep their order.
    tile = pl.load(folded, [0, 0], [ROWS, SIZE // ROWS])
    y = pl.store(pl.add(tile, my_rank), [0, 0], y)
    return y


@pl.jit
def per_rank(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, SIZE // ROWS], pl.FP32]],
    flat: pld.DistributedTensor[[1, SIZE], pl.FP32],
    folded: pld.DistributedTensor[[ROWS, SIZE // ROWS], pl.FP32],
):
    return fold(x, y, flat, folded)


@pl.jit.host
def window_buffer(
    x: pl.Tensor[[NR, 1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, ROWS, SIZE // ROWS], pl.FP32]],
):
    # Bytes per rank. The other spelling is alloc_window_buffer([1, SIZE], dtype=pl.FP32).
    buf = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
    for r in pl.range(pld.world_size()):
        flat = pld.window(buf, [1, SIZE], dtype=pl.FP32)
        folded = pld.window(buf, [ROWS, SIZE // ROWS], dtype=pl.FP32)
        per_rank(x[r], y[r], flat, folded, device=r)


def main() -> int:
    args = arguments(__doc__)
    nr = len(args.device_ids)
    x = np.random.default_rng(3).standard_normal((nr, 1, SIZE), dtype=np.float32)
    y = np.zeros((nr, ROWS, SIZE // ROWS), dtype=np.float32)
    compiled = compiled_for(args, window_buffer, x, y)
    ranks = np.arange(nr, dtype=np.float32).reshape(nr, 1, 1)
    expected = x.reshape(y.shape) + ranks
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
