"""04 barrier: nobody goes on before everybody has come.

Each rank puts its slice into its window and then reads its right neighbour's. In between stands a
barrier, made of the two signal operations: tell every peer, then wait for every peer. --use-builtin
calls pld.tensor.barrier instead.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 256


def build_barrier(nr: int, use_builtin: bool):
    """The program for nr ranks."""

    @pl.program
    class Barrier:
        @pl.function(type=pl.FunctionType.InCore)
        def meet(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)

            data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)

            if use_builtin:
                signal = pld.tensor.barrier(signal)
            else:
                # Cell src of every rank's signal belongs to rank src alone: "I have come". A notify
                # leaves when all earlier writes of its core are visible, so it also says "my slice is there".
                for peer in pl.range(nranks):
                    if peer != my_rank:
                        pld.system.notify(
                            signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd
                        )
                for src in pl.range(nranks):
                    if src != my_rank:
                        pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)

            # Reading from a peer is what step 05 is about.
            right = (my_rank + 1) % nranks
            seen = pld.tile.remote_load(data, peer=right, offsets=[0, 0], shape=[1, SIZE])
            y = pl.store(seen, [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.meet(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def barrier(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([nr, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)
            return y

    return Barrier


def main() -> int:
    args = arguments(__doc__, use_builtin=True)
    nr = len(args.device_ids)
    compiled = compiled_for(args, build_barrier(nr, args.use_builtin))
    x = np.random.default_rng(4).standard_normal((nr, 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    expected = np.roll(x, -1, axis=0)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
