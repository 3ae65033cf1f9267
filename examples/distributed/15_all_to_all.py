"""15 all-to-all: every rank has something different for every other rank.

Row d of rank s becomes row s of rank d: the rows of all ranks together are transposed. --mode manual puts
each row into its place at its receiver, --mode builtin calls pld.tensor.all_to_all in the kernel, --mode
host calls it in the host body.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 64


def build_in_kernel(nr: int, mode: str):
    """All-to-all inside each rank's kernel."""

    @pl.program
    class AllToAllInKernel:
        @pl.function(type=pl.FunctionType.InCore)
        def exchange_step(
            self,
            x: pl.Tensor[[nr, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            inbox: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(inbox)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)

            if mode == "builtin":
                inbox = pld.tensor.all_to_all(x, inbox, signal)
            else:
                # Offsets do the transposing: row peer leaves, row my_rank over there receives.
                for k in pl.range(nranks):
                    peer = (my_rank + k) % nranks
                    pld.tensor.put(
                        inbox,
                        peer=peer,
                        src=x,
                        dst_offsets=[my_rank, 0],
                        src_offsets=[peer, 0],
                        shape=[1, SIZE],
                    )
                    if peer != my_rank:
                        pld.system.notify(
                            signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd
                        )
                for src in pl.range(nranks):
                    if src != my_rank:
                        pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)

            y = pl.store(pl.load(inbox, [0, 0], [nr, SIZE]), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[nr, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            inbox: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            return self.exchange_step(x, y, inbox, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def all_to_all_in_kernel(
            self,
            x: pl.Tensor[[nr, nr, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, nr, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, nr, SIZE], pl.FP32]:
            inbox_buf = pld.alloc_window_buffer([nr, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([nr, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                inbox = pld.window(inbox_buf, [nr, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
                self.per_rank(x[r], y[r], inbox, signal, device=r)
            return y

    return AllToAllInKernel


def build_on_host(nr: int):
    """All-to-all ordered by the host body; there the input has to be a window, too."""

    @pl.program
    class AllToAllOnHost:
        @pl.function(type=pl.FunctionType.InCore)
        def stage_step(
            self,
            x: pl.Tensor[[nr, SIZE], pl.FP32],
            outbox: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
        ):
            outbox = pl.store(pl.load(x, [0, 0], [nr, SIZE]), [0, 0], outbox)

        @pl.function(type=pl.FunctionType.InCore)
        def fetch_step(
            self,
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            inbox: pld.DistributedTensor[[nr, SIZE], pl.FP32],
        ):
            y = pl.store(pl.load(inbox, [0, 0], [nr, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def stage(
            self,
            x: pl.Tensor[[nr, SIZE], pl.FP32],
            outbox: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
        ):
            self.stage_step(x, outbox)

        @pl.function(type=pl.FunctionType.Orchestration)
        def fetch(
            self,
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            inbox: pld.DistributedTensor[[nr, SIZE], pl.FP32],
        ):
            self.fetch_step(y, inbox)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def all_to_all_on_host(
            self,
            x: pl.Tensor[[nr, nr, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, nr, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, nr, SIZE], pl.FP32]:
            outbox_buf = pld.alloc_window_buffer([nr, SIZE], dtype=pl.FP32)
            inbox_buf = pld.alloc_window_buffer([nr, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([nr], dtype=pl.INT32)
            outbox = pld.window(outbox_buf, [nr, SIZE], dtype=pl.FP32)
            inbox = pld.window(inbox_buf, [nr, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [nr], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.stage(x[r], outbox, device=r)
            inbox = pld.tensor.all_to_all(outbox, inbox, signal)
            for r in pl.range(pld.world_size()):
                self.fetch(y[r], inbox, device=r)
            return y

    return AllToAllOnHost


def main() -> int:
    args = arguments(__doc__, modes=("manual", "builtin", "host"))
    nr = len(args.device_ids)
    compiled = compiled_for(
        args, build_on_host(nr) if args.mode == "host" else build_in_kernel(nr, args.mode)
    )
    x = np.random.default_rng(15).standard_normal((nr, nr, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    expected = x.transpose(1, 0, 2)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
