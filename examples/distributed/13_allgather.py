"""13 all-gather: everybody ends up with everybody's slice.

Each rank puts its row into its place in every peer's table and tells that peer. --mode manual spells that
out, --mode builtin calls pld.tensor.allgather in the kernel, --mode host calls it in the host body.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 256


def build_in_kernel(nr: int, mode: str):
    """All-gather inside each rank's kernel."""

    @pl.program
    class AllGatherInKernel:
        @pl.function(type=pl.FunctionType.InCore)
        def gather_step(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            table: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(table)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)

            if mode == "builtin":
                table = pld.tensor.allgather(x, table, signal)
            else:
                # Row my_rank of every table belongs to this rank: no two ranks write the same bytes, so
                # no barrier comes first. Starting with the own table and going on to the right, the ranks
                # write to different peers at any time.
                for k in pl.range(nranks):
                    peer = (my_rank + k) % nranks
                    pld.tensor.put(
                        table,
                        peer=peer,
                        src=x,
                        dst_offsets=[my_rank, 0],
                        src_offsets=[0, 0],
                        shape=[1, SIZE],
                    )
                    if peer != my_rank:
                        pld.system.notify(
                            signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd
                        )
                for src in pl.range(nranks):
                    if src != my_rank:
                        pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)

            y = pl.store(pl.load(table, [0, 0], [nr, SIZE]), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            table: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            return self.gather_step(x, y, table, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def allgather_in_kernel(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, nr, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, nr, SIZE], pl.FP32]:
            table_buf = pld.alloc_window_buffer([nr, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([nr, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                table = pld.window(table_buf, [nr, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
                self.per_rank(x[r], y[r], table, signal, device=r)
            return y

    return AllGatherInKernel


def build_on_host(nr: int):
    """All-gather ordered by the host body; there the input has to be a window, too."""

    @pl.program
    class AllGatherOnHost:
        @pl.function(type=pl.FunctionType.InCore)
        def stage_step(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            local: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        ):
            local = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], local)

        @pl.function(type=pl.FunctionType.InCore)
        def fetch_step(
            self,
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            table: pld.DistributedTensor[[nr, SIZE], pl.FP32],
        ):
            y = pl.store(pl.load(table, [0, 0], [nr, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def stage(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            local: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        ):
            self.stage_step(x, local)

        @pl.function(type=pl.FunctionType.Orchestration)
        def fetch(
            self,
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            table: pld.DistributedTensor[[nr, SIZE], pl.FP32],
        ):
            self.fetch_step(y, table)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def allgather_on_host(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, nr, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, nr, SIZE], pl.FP32]:
            local_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            table_buf = pld.alloc_window_buffer([nr, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([nr], dtype=pl.INT32)
            local = pld.window(local_buf, [1, SIZE], dtype=pl.FP32)
            table = pld.window(table_buf, [nr, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [nr], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.stage(x[r], local, device=r)
            table = pld.tensor.allgather(local, table, signal)
            for r in pl.range(pld.world_size()):
                self.fetch(y[r], table, device=r)
            return y

    return AllGatherOnHost


def main() -> int:
    args = arguments(__doc__, modes=("manual", "builtin", "host"))
    nr = len(args.device_ids)
    compiled = compiled_for(
        args, build_on_host(nr) if args.mode == "host" else build_in_kernel(nr, args.mode)
    )
    x = np.random.default_rng(13).standard_normal((nr, 1, SIZE), dtype=np.float32)
    y = np.zeros((nr, nr, SIZE), dtype=np.float32)
    expected = np.broadcast_to(x[:, 0], y.shape)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
