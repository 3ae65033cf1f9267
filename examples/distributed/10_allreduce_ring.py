"""10 all-reduce, ring: talk to one neighbour only, one chunk at a time.

The traffic is that of step 09, 2(P-1)/P·N, but in 2(P-1) rounds in which every rank reads one chunk of
N/P bytes from its left neighbour. No rank is ever read by two others at once, and no barrier is needed:
in each round a rank waits for one word, "my left neighbour has finished the round before".
"""

import numpy as np
from common import arguments, compiled_for, require_multiple, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 256


def build_allreduce_ring(nr: int):
    """The program for nr ranks."""
    chunk = SIZE // nr
    half = nr - 1  # rounds of each half: first reduce-scatter, then all-gather

    @pl.program
    class AllReduceRing:
        @pl.function(type=pl.FunctionType.InCore)
        def ring_step(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2 * half, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)
            left = (my_rank + nranks - 1) % nranks
            right = (my_rank + 1) % nranks

            # Stage the own slice and let the right neighbour begin round 0.
            own = pl.load(x, [0, 0], [1, SIZE])
            data = pl.store(own, [0, 0], data)
            pld.system.notify(signal, peer=right, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)

            # Reduce-scatter: in round k the partial sum of chunk left - k moves one rank on and grows by
            # the own part. One row of the signal a round; its only writer is the left neighbour.
            for k in pl.range(half):
                at = ((left + nranks - k) % nranks) * chunk
                pld.system.wait(signal, offsets=[k, 0], expected=1, cmp=pld.WaitCmp.Ge)
                recv = pld.tile.remote_load(data, peer=left, offsets=[0, at], shape=[1, chunk])
                part = pl.add(pl.load(data, [0, at], [1, chunk]), recv)
                data = pl.store(part, [0, at], data)
                pld.system.notify(signal, peer=right, offsets=[k + 1, 0], value=1, op=pld.NotifyOp.AtomicAdd)

            # The chunk of the last round has been all the way round: it is complete.
            y = pl.store(part, [0, right * chunk], y)

            # All-gather: in round k the complete chunk my_rank - k arrives and is passed on. Its place in the
            # own window held a partial sum. The right neighbour has read that: the word it was for went
            # round the ring and is what this rank's wait hears.
            for k in pl.range(half):
                at = ((my_rank + nranks - k) % nranks) * chunk
                pld.system.wait(signal, offsets=[half + k, 0], expected=1, cmp=pld.WaitCmp.Ge)
                recv = pld.tile.remote_load(data, peer=left, offsets=[0, at], shape=[1, chunk])
                y = pl.store(recv, [0, at], y)
                if k < half - 1:
                    data = pl.store(recv, [0, at], data)
                    pld.system.notify(
                        signal, peer=right, offsets=[half + k + 1, 0], value=1, op=pld.NotifyOp.AtomicAdd
                    )
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2 * half, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.ring_step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def allreduce_ring(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([2 * half, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [2 * half, 1], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)
            return y

    return AllReduceRing


def main() -> int:
    args = arguments(__doc__)
    nr = len(args.device_ids)
    require_multiple(SIZE, nr)
    compiled = compiled_for(args, build_allreduce_ring(nr))
    x = np.random.default_rng(10).standard_normal((nr, 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    expected = np.broadcast_to(x.sum(axis=0), x.shape)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
