"""06 put and get: copy from global memory to global memory across ranks, of any size.

A remote load or store moves one tile, and a tile must fit the core's memory. put and get take whole
slices: they go through a staging tile whose size chunk_rows and chunk_cols set. The slice here is
256 KiB, more than a core holds. Each rank ends up with its left neighbour's slice: --mode put pushes,
--mode get pulls, --mode pipelined pulls through two staging tiles, so that loads and stores overlap.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

ROWS, COLS = 64, 1024
CHUNK = 16  # rows of a staging tile: 64 KiB


def build_put_get(nr: int, mode: str):
    """The program for nr ranks."""

    @pl.program
    class PutGet:
        @pl.function(type=pl.FunctionType.InCore)
        def shift(
            self,
            x: pl.Tensor[[ROWS, COLS], pl.FP32],
            y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[ROWS, COLS], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
        ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)
            left = (my_rank + nranks - 1) % nranks
            right = (my_rank + 1) % nranks

            # put takes any tensor of the own rank as its source; with oneself as the peer it is a local copy.
            if mode == "put":
                pld.tensor.put(data, peer=right, src=x, chunk_rows=CHUNK)
            elif mode == "get":
                pld.tensor.put(data, peer=my_rank, src=x, chunk_rows=CHUNK)
            else:
                pld.tensor.put(data, peer=my_rank, src=x, chunk_rows=CHUNK, chunk_cols=COLS, pipeline=True)

            # Either way the right neighbour hears: "your slice has arrived", or "mine is ready to be read".
            pld.system.notify(signal, peer=right, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)

            # get writes into any tensor of the own rank.
            if mode == "put":
                pld.tensor.get(y, peer=my_rank, src=data, chunk_rows=CHUNK)
            elif mode == "get":
                pld.tensor.get(y, peer=left, src=data, chunk_rows=CHUNK)
            else:
                pld.tensor.get(y, peer=left, src=data, chunk_rows=CHUNK, chunk_cols=COLS, pipeline=True)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[ROWS, COLS], pl.FP32],
            y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[ROWS, COLS], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
        ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
            return self.shift(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def put_get(
            self,
            x: pl.Tensor[[nr, ROWS, COLS], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, ROWS, COLS], pl.FP32]],
        ) -> pl.Tensor[[nr, ROWS, COLS], pl.FP32]:
            data_buf = pld.alloc_window_buffer([ROWS, COLS], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [ROWS, COLS], dtype=pl.FP32)
                signal = pld.window(signal_buf, [1, 1], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)
            return y

    return PutGet


def main() -> int:
    args = arguments(__doc__, modes=("put", "get", "pipelined"))
    nr = len(args.device_ids)
    compiled = compiled_for(args, build_put_get(nr, args.mode))
    x = np.random.default_rng(6).standard_normal((nr, ROWS, COLS), dtype=np.float32)
    y = np.zeros_like(x)
    expected = np.roll(x, 1, axis=0)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
