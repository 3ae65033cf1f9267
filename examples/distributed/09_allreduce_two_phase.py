"""09 all-reduce, two-phase: add up one chunk each, then collect the others' sums.

The slice of N bytes is cut into P chunks and rank r owns chunk r. Reduce-scatter: it reads chunk r of
every peer and adds them up. All-gather: it reads from every peer the chunk that this one has added up.
Each phase moves (P-1) pieces of N/P bytes, together 2(P-1)/P·N instead of the (P-1)·N of step 08, for one
more barrier.
"""

import numpy as np
from common import arguments, compiled_for, require_multiple, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 256


def build_allreduce_two_phase(nr: int):
    """The program for nr ranks: a tile's shape is fixed when the kernel is compiled, so nr must be known."""
    chunk = SIZE // nr

    @pl.program
    class AllReduceTwoPhase:
        @pl.function(type=pl.FunctionType.InCore)
        def reduce_step(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            result: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, nr], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)

            # Stage the own slice.
            own = pl.load(x, [0, 0], [1, SIZE])
            data = pl.store(own, [0, 0], data)

            # Barrier A, on row 0 of the signal: all slices are staged.
            for peer in pl.range(nranks):
                if peer != my_rank:
                    pld.system.notify(
                        signal, peer=peer, offsets=[0, my_rank], value=1, op=pld.NotifyOp.AtomicAdd
                    )
            for src in pl.range(nranks):
                if src != my_rank:
                    pld.system.wait(signal, offsets=[0, src], expected=1, cmp=pld.WaitCmp.Ge)

            # Reduce-scatter: the chunk this rank owns, from its own slice and from each peer's.
            acc = pl.load(data, [0, my_rank * chunk], [1, chunk])
            for peer in pl.range(nranks):
                if peer != my_rank:
                    recv = pld.tile.remote_load(
                        data, peer=peer, offsets=[0, my_rank * chunk], shape=[1, chunk]
                    )
                    acc = pl.add(acc, recv)
            result = pl.store(acc, [0, my_rank * chunk], result)

            # Barrier B, on row 1: all chunks are added up. Row 0 would not hold anybody back any more.
            for peer in pl.range(nranks):
                if peer != my_rank:
                    pld.system.notify(
                        signal, peer=peer, offsets=[1, my_rank], value=1, op=pld.NotifyOp.AtomicAdd
                    )
            for src in pl.range(nranks):
                if src != my_rank:
                    pld.system.wait(signal, offsets=[1, src], expected=1, cmp=pld.WaitCmp.Ge)

            # All-gather: chunk c from its owner c; the own one comes from the own window.
            for c in pl.range(nranks):
                recv = pld.tile.remote_load(result, peer=c, offsets=[0, c * chunk], shape=[1, chunk])
                y = pl.store(recv, [0, c * chunk], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            result: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, nr], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.reduce_step(x, y, data, result, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def allreduce_two_phase(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            result_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([2, nr], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
                result = pld.window(result_buf, [1, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [2, nr], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, result, signal, device=r)
            return y

    return AllReduceTwoPhase


def main() -> int:
    args = arguments(__doc__)
    nr = len(args.device_ids)
    require_multiple(SIZE, nr)
    compiled = compiled_for(args, build_allreduce_two_phase(nr))
    x = np.random.default_rng(9).standard_normal((nr, 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    expected = np.broadcast_to(x.sum(axis=0), x.shape)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
