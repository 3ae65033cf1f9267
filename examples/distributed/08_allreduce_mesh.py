"""08 all-reduce, mesh: every rank reads every peer's whole slice and adds them all up itself.

Each rank starts with N bytes of its own and ends with the sum over all ranks. One barrier, then P-1 reads
of N bytes: the shortest way to the result, and the most traffic, since all ranks do the same sum.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 256


def build_allreduce_mesh(nr: int):
    """The program for nr ranks. Only the signal's shape and the host's tensors depend on nr."""

    @pl.program
    class AllReduceMesh:
        @pl.function(type=pl.FunctionType.InCore)
        def reduce_step(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[1, nr], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)

            # Stage: put the own slice where peers can reach it.
            acc = pl.load(x, [0, 0], [1, SIZE])
            data = pl.store(acc, [0, 0], data)

            # Barrier: all slices are staged before anybody reads one.
            for peer in pl.range(nranks):
                if peer != my_rank:
                    pld.system.notify(
                        signal, peer=peer, offsets=[0, my_rank], value=1, op=pld.NotifyOp.AtomicAdd
                    )
            for src in pl.range(nranks):
                if src != my_rank:
                    pld.system.wait(signal, offsets=[0, src], expected=1, cmp=pld.WaitCmp.Ge)

            # Reduce: the own slice is in acc already, so only the peers' are fetched.
            for peer in pl.range(nranks):
                if peer != my_rank:
                    recv = pld.tile.remote_load(data, peer=peer, offsets=[0, 0], shape=[1, SIZE])
                    acc = pl.add(acc, recv)

            # The sum goes to the output, not back into the window: a slower peer may still be reading that.
            y = pl.store(acc, [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[1, nr], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.reduce_step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def allreduce_mesh(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([1, nr], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [1, nr], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)
            return y

    return AllReduceMesh


def main() -> int:
    args = arguments(__doc__)
    nr = len(args.device_ids)
    compiled = compiled_for(args, build_allreduce_mesh(nr))
    x = np.random.default_rng(8).standard_normal((nr, 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    expected = np.broadcast_to(x.sum(axis=0), x.shape)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
