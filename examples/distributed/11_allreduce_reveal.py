"""11 all-reduce revealed: one call does what steps 08 to 10 spelled out.

pld.tensor.allreduce works in place on a window: slices in, sums out. --mode mesh and --mode ring call it
inside a kernel, after step 08 and step 10. --mode host and --mode host_ring call it in the host body,
between two ordinary dispatches, and the kernels contain no communication at all.
"""

import numpy as np
from common import arguments, compiled_for, require_multiple, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 256


def build_in_kernel(nr: int, mode: str):
    """All-reduce called by each rank's kernel."""
    # The mesh needs one cell for each peer, the ring a row of them for each of its rounds.
    rows, cells = (nr, 1) if mode == "mesh" else (2 * (nr - 1), nr)

    @pl.program
    class AllReduceInKernel:
        @pl.function(type=pl.FunctionType.InCore)
        def reduce_step(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[rows, cells], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
            data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode=mode)
            y = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[rows, cells], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.reduce_step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def allreduce_in_kernel(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([rows, cells], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [rows, cells], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)
            return y

    return AllReduceInKernel


def build_on_host(nr: int, mode: str):
    """All-reduce called by the host body: it becomes a task on every device that shares the window."""
    cells = [nr] if mode == "mesh" else [2 * (nr - 1) + 1, nr]

    @pl.program
    class AllReduceOnHost:
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
        def allreduce_on_host(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer(cells, dtype=pl.INT32)
            data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, cells, dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.stage(x[r], data, device=r)
            data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode=mode)
            for r in pl.range(pld.world_size()):
                self.fetch(y[r], data, device=r)
            return y

    return AllReduceOnHost


def main() -> int:
    args = arguments(__doc__, modes=("mesh", "ring", "host", "host_ring"))
    nr = len(args.device_ids)
    if args.mode.startswith("host"):
        if args.mode == "host_ring":
            require_multiple(SIZE, nr)
        program = build_on_host(nr, "ring" if args.mode == "host_ring" else "mesh")
    else:
        program = build_in_kernel(nr, args.mode)
    compiled = compiled_for(args, program)
    x = np.random.default_rng(11).standard_normal((nr, 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    expected = np.broadcast_to(x.sum(axis=0), x.shape)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
