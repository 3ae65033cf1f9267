"""14 reduce-scatter: the sum over all ranks, each rank keeping one row of it.

It is the first phase of step 09 on its own. --mode manual spells it out, --mode builtin calls
pld.tensor.reduce_scatter in the kernel, --mode host calls it in the host body. The built-in works in
place and meets a second time before it writes; the hand-made form can do without.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 64  # elements of a row; a rank brings one row for each rank


def build_in_kernel(nr: int, mode: str):
    """Reduce-scatter inside each rank's kernel."""

    @pl.program
    class ReduceScatterInKernel:
        @pl.function(type=pl.FunctionType.InCore)
        def scatter_step(
            self,
            x: pl.Tensor[[nr, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)

            data = pl.store(pl.load(x, [0, 0], [nr, SIZE]), [0, 0], data)

            if mode == "builtin":
                # In place: row my_rank of the window now holds the sum, the other rows are as before.
                data = pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Sum)
                acc = pl.load(data, [my_rank, 0], [1, SIZE])
            else:
                for peer in pl.range(nranks):
                    if peer != my_rank:
                        pld.system.notify(
                            signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd
                        )
                for src in pl.range(nranks):
                    if src != my_rank:
                        pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
                # From the right neighbour on: every rank begins with a different peer.
                acc = pl.load(data, [my_rank, 0], [1, SIZE])
                for k in pl.range(1, nranks):
                    peer = (my_rank + k) % nranks
                    recv = pld.tile.remote_load(data, peer=peer, offsets=[my_rank, 0], shape=[1, SIZE])
                    acc = pl.add(acc, recv)

            y = pl.store(acc, [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[nr, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.scatter_step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def reduce_scatter_in_kernel(
            self,
            x: pl.Tensor[[nr, nr, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([nr, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([nr, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [nr, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)
            return y

    return ReduceScatterInKernel


def build_on_host(nr: int):
    """Reduce-scatter ordered by the host body, between a kernel that stages and one that fetches."""

    @pl.program
    class ReduceScatterOnHost:
        @pl.function(type=pl.FunctionType.InCore)
        def stage_step(
            self,
            x: pl.Tensor[[nr, SIZE], pl.FP32],
            data: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
        ):
            data = pl.store(pl.load(x, [0, 0], [nr, SIZE]), [0, 0], data)

        @pl.function(type=pl.FunctionType.InCore)
        def fetch_step(
            self,
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pld.DistributedTensor[[nr, SIZE], pl.FP32],
        ):
            my_rank = pld.rank(pld.get_comm_ctx(data))
            y = pl.store(pl.load(data, [my_rank, 0], [1, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def stage(
            self,
            x: pl.Tensor[[nr, SIZE], pl.FP32],
            data: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
        ):
            self.stage_step(x, data)

        @pl.function(type=pl.FunctionType.Orchestration)
        def fetch(
            self,
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pld.DistributedTensor[[nr, SIZE], pl.FP32],
        ):
            self.fetch_step(y, data)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def reduce_scatter_on_host(
            self,
            x: pl.Tensor[[nr, nr, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([nr, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([nr], dtype=pl.INT32)
            data = pld.window(data_buf, [nr, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [nr], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.stage(x[r], data, device=r)
            data = pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Sum)
            for r in pl.range(pld.world_size()):
                self.fetch(y[r], data, device=r)
            return y

    return ReduceScatterOnHost


def main() -> int:
    args = arguments(__doc__, modes=("manual", "builtin", "host"))
    nr = len(args.device_ids)
    compiled = compiled_for(
        args, build_on_host(nr) if args.mode == "host" else build_in_kernel(nr, args.mode)
    )
    x = np.random.default_rng(14).standard_normal((nr, nr, SIZE), dtype=np.float32)
    y = np.zeros((nr, 1, SIZE), dtype=np.float32)
    expected = x.sum(axis=0).reshape(y.shape)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
