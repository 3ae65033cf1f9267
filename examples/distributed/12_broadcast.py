"""12 broadcast: one rank has it, all get it.

The root stages its slice and tells everybody; everybody else waits for that one word and reads. --mode
manual spells that out, --mode builtin calls pld.tensor.broadcast in the kernel, --mode host calls it in
the host body.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 256
ROOT = 1


def build_in_kernel(nr: int, mode: str):
    """Broadcast inside each rank's kernel."""

    @pl.program
    class BroadcastInKernel:
        @pl.function(type=pl.FunctionType.InCore)
        def broadcast_step(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)

            if mode == "builtin":
                data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
                data = pld.tensor.broadcast(data, signal, root=ROOT)
                y = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)
            else:
                if my_rank == ROOT:
                    data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
                    for peer in pl.range(nranks):
                        if peer != my_rank:
                            pld.system.notify(
                                signal, peer=peer, offsets=[ROOT, 0], value=1, op=pld.NotifyOp.AtomicAdd
                            )
                else:
                    pld.system.wait(signal, offsets=[ROOT, 0], expected=1, cmp=pld.WaitCmp.Ge)
                # For the root this is its own window, which costs no link.
                recv = pld.tile.remote_load(data, peer=ROOT, offsets=[0, 0], shape=[1, SIZE])
                y = pl.store(recv, [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.broadcast_step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def broadcast_in_kernel(
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

    return BroadcastInKernel


def build_on_host(nr: int):
    """Broadcast ordered by the host body, between a kernel that stages and one that fetches."""

    @pl.program
    class BroadcastOnHost:
        @pl.function(type=pl.FunctionType.InCore)
        def stage_step(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        ):
            data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)

        @pl.function(type=pl.FunctionType.InCore)
        def fetch_step(
            self,
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pld.DistributedTensor[[1, SIZE], pl.FP32],
        ):
            y = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def stage(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        ):
            self.stage_step(x, data)

        @pl.function(type=pl.FunctionType.Orchestration)
        def fetch(
            self,
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pld.DistributedTensor[[1, SIZE], pl.FP32],
        ):
            self.fetch_step(y, data)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def broadcast_on_host(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([nr], dtype=pl.INT32)
            data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [nr], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.stage(x[r], data, device=r)
            data = pld.tensor.broadcast(data, signal, root=ROOT)
            for r in pl.range(pld.world_size()):
                self.fetch(y[r], data, device=r)
            return y

    return BroadcastOnHost


def main() -> int:
    args = arguments(__doc__, modes=("manual", "builtin", "host"))
    nr = len(args.device_ids)
    compiled = compiled_for(
        args, build_on_host(nr) if args.mode == "host" else build_in_kernel(nr, args.mode)
    )
    x = np.random.default_rng(12).standard_normal((nr, 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    expected = np.broadcast_to(x[ROOT], x.shape)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
