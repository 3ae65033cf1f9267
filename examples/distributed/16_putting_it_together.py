"""16 putting it together: a few steps of training with the weights' updates shared out over the ranks.

Every rank has a target of its own and pulls the common weights towards it. A step is: the own gradient
(steps 01-03), its sum, one chunk a rank (09, 14), the update of that chunk, and the new chunks collected
again (09, 13), with two barriers that count the steps (04). At the end the host orders an all-reduce of
the squared errors (11).
"""

import numpy as np
from common import arguments, compiled_for, require_multiple, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 256
STEPS = 4
RATE = 0.25
SUMMED, UPDATED = 0, 1  # rows of the signal: one barrier each


def build_training(nr: int):
    """The program for nr ranks."""
    chunk = SIZE // nr

    @pl.program
    class Training:
        @pl.function(type=pl.FunctionType.InCore)
        def train_step(
            self,
            target: pl.Tensor[[1, SIZE], pl.FP32],
            weights: pl.InOut[pl.Tensor[[1, SIZE], pl.FP32]],
            gradient: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            updated: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            error: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, nr], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(gradient)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)
            mine = my_rank * chunk
            wanted = pl.load(target, [0, 0], [1, SIZE])

            for step in pl.range(STEPS):
                # Peers have read the gradient of the step before: they said so at its second barrier.
                difference = pl.sub(pl.load(weights, [0, 0], [1, SIZE]), wanted)
                gradient = pl.store(difference, [0, 0], gradient)

                # The counters are never cleared, they count: the barrier of step s waits for s + 1.
                for peer in pl.range(nranks):
                    if peer != my_rank:
                        pld.system.notify(
                            signal, peer=peer, offsets=[SUMMED, my_rank], value=1, op=pld.NotifyOp.AtomicAdd
                        )
                for src in pl.range(nranks):
                    if src != my_rank:
                        pld.system.wait(signal, offsets=[SUMMED, src], expected=step + 1, cmp=pld.WaitCmp.Ge)

                # Reduce-scatter and update of the own chunk.
                total = pl.load(gradient, [0, mine], [1, chunk])
                for k in pl.range(1, nranks):
                    peer = (my_rank + k) % nranks
                    recv = pld.tile.remote_load(gradient, peer=peer, offsets=[0, mine], shape=[1, chunk])
                    total = pl.add(total, recv)
                before = pl.load(weights, [0, mine], [1, chunk])
                after = pl.sub(before, pl.mul(total, RATE / nr))
                updated = pl.store(after, [0, mine], updated)

                for peer in pl.range(nranks):
                    if peer != my_rank:
                        pld.system.notify(
                            signal, peer=peer, offsets=[UPDATED, my_rank], value=1, op=pld.NotifyOp.AtomicAdd
                        )
                for src in pl.range(nranks):
                    if src != my_rank:
                        pld.system.wait(signal, offsets=[UPDATED, src], expected=step + 1, cmp=pld.WaitCmp.Ge)

                # All-gather: every chunk from the rank that updated it.
                for k in pl.range(nranks):
                    owner = (my_rank + k) % nranks
                    recv = pld.tile.remote_load(
                        updated, peer=owner, offsets=[0, owner * chunk], shape=[1, chunk]
                    )
                    weights = pl.store(recv, [0, owner * chunk], weights)

            difference = pl.sub(pl.load(weights, [0, 0], [1, SIZE]), wanted)
            error = pl.store(pl.mul(difference, difference), [0, 0], error)
            return weights

        @pl.function(type=pl.FunctionType.InCore)
        def report_step(
            self,
            loss: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            error: pld.DistributedTensor[[1, SIZE], pl.FP32],
        ):
            mean = pl.mul(pl.load(error, [0, 0], [1, SIZE]), 1.0 / nr)
            loss = pl.store(mean, [0, 0], loss)

        @pl.function(type=pl.FunctionType.Orchestration)
        def train(
            self,
            target: pl.Tensor[[1, SIZE], pl.FP32],
            weights: pl.InOut[pl.Tensor[[1, SIZE], pl.FP32]],
            gradient: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            updated: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            error: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, nr], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.train_step(target, weights, gradient, updated, error, signal)

        @pl.function(type=pl.FunctionType.Orchestration)
        def report(
            self,
            loss: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            error: pld.DistributedTensor[[1, SIZE], pl.FP32],
        ):
            self.report_step(loss, error)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def training(
            self,
            target: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            weights: pl.InOut[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
            loss: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ):
            gradient_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            updated_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            error_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([2, nr], dtype=pl.INT32)
            credits_buf = pld.alloc_window_buffer([nr], dtype=pl.INT32)
            gradient = pld.window(gradient_buf, [1, SIZE], dtype=pl.FP32)
            updated = pld.window(updated_buf, [1, SIZE], dtype=pl.FP32)
            error = pld.window(error_buf, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, nr], dtype=pl.INT32)
            credits = pld.window(credits_buf, [nr], dtype=pl.INT32)

            for r in pl.range(pld.world_size()):
                self.train(target[r], weights[r], gradient, updated, error, signal, device=r)
            error = pld.tensor.allreduce(error, credits, op=pld.ReduceOp.Sum)
            for r in pl.range(pld.world_size()):
                self.report(loss[r], error, device=r)

    return Training


def reference(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same training on one machine."""
    weights = np.zeros_like(target[0])
    for _ in range(STEPS):
        weights = weights - RATE * (weights - target).mean(axis=0)
    loss = ((weights - target) ** 2).mean(axis=0)
    return np.broadcast_to(weights, target.shape), np.broadcast_to(loss, target.shape)


def main() -> int:
    args = arguments(__doc__)
    nr = len(args.device_ids)
    require_multiple(SIZE, nr)
    compiled = compiled_for(args, build_training(nr))
    target = np.random.default_rng(16).standard_normal((nr, 1, SIZE), dtype=np.float32)
    weights = np.zeros_like(target)
    loss = np.zeros_like(target)
    expected = reference(target)
    compiled(target, weights, loss, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(np.stack([weights, loss]), np.stack(expected))


if __name__ == "__main__":
    run(main)
