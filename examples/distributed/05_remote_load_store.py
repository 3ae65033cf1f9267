"""05 remote load and store: a tile comes from, or goes to, another rank's memory.

On a ring, --mode load pulls the left neighbour's slice, --mode store pushes the own slice to the left
neighbour (so the right neighbour's arrives here), --mode both does both and adds the two.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 256
STAGED, ARRIVED = 0, 1  # rows of the signal


def build_remote_load_store(nr: int, mode: str):
    """The program for nr ranks."""

    @pl.program
    class RemoteLoadStore:
        @pl.function(type=pl.FunctionType.InCore)
        def exchange(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            inbox: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)
            left = (my_rank + nranks - 1) % nranks
            right = (my_rank + 1) % nranks
            own = pl.load(x, [0, 0], [1, SIZE])

            if mode != "store":
                # Pull. The owner stages its slice and tells the one rank that will read it; the reader
                # waits for that word and then fetches: a round trip, then the bytes.
                data = pl.store(own, [0, 0], data)
                pld.system.notify(signal, peer=right, offsets=[STAGED, 0], value=1, op=pld.NotifyOp.AtomicAdd)
                pld.system.wait(signal, offsets=[STAGED, 0], expected=1, cmp=pld.WaitCmp.Ge)
                pulled = pld.tile.remote_load(data, peer=left, offsets=[0, 0], shape=[1, SIZE])

            if mode != "load":
                # Push. The writer sends its tile and then says so; the owner waits for that word and
                # reads its own memory. No round trip, but the place must be free (here it is used once).
                pld.tile.remote_store(own, inbox, peer=left, offsets=[0, 0])
                pld.system.notify(signal, peer=left, offsets=[ARRIVED, 0], value=1, op=pld.NotifyOp.AtomicAdd)
                pld.system.wait(signal, offsets=[ARRIVED, 0], expected=1, cmp=pld.WaitCmp.Ge)
                pushed = pl.load(inbox, [0, 0], [1, SIZE])

            if mode == "load":
                y = pl.store(pulled, [0, 0], y)
            elif mode == "store":
                y = pl.store(pushed, [0, 0], y)
            else:
                y = pl.store(pl.add(pulled, pushed), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            inbox: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.exchange(x, y, data, inbox, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def remote_load_store(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            inbox_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
                inbox = pld.window(inbox_buf, [1, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, inbox, signal, device=r)
            return y

    return RemoteLoadStore


def main() -> int:
    args = arguments(__doc__, modes=("both", "load", "store"))
    nr = len(args.device_ids)
    compiled = compiled_for(args, build_remote_load_store(nr, args.mode))
    x = np.random.default_rng(5).standard_normal((nr, 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    from_left, from_right = np.roll(x, 1, axis=0), np.roll(x, -1, axis=0)
    expected = {"load": from_left, "store": from_right, "both": from_left + from_right}[args.mode]
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
