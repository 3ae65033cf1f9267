"""07 dynamic rank count: one source for any number of ranks, in two ways.

Every rank collects all ranks' slices as the rows of a table, so shapes and loops depend on the number of
ranks. --mode jit leaves the number open (pl.dynamic) and binds it from the arguments' shapes; --mode
class builds the program by a factory for a number that is known beforehand.
"""

import numpy as np
from common import arguments, compiled_for, run, verdict

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

SIZE = 64
NR = pl.dynamic("NR")


# ---- the number of ranks is open: NR stands in annotations and, in bodies, for the number it is bound to


@pl.jit.incore
def collect(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    my_rank = pld.rank(pld.get_comm_ctx(data))
    data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
    for peer in pl.range(NR):
        if peer != my_rank:
            pld.system.notify(signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    for src in pl.range(NR):
        if src != my_rank:
            pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
    for src in pl.range(NR):
        row = pld.tile.remote_load(data, peer=src, offsets=[0, 0], shape=[1, SIZE])
        y = pl.store(row, [src, 0], y)
    return y


@pl.jit
def per_rank(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return collect(x, y, data, signal)


@pl.jit.host
def table(
    x: pl.Tensor[[NR, 1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [NR, 1], dtype=pl.INT32)
        per_rank(x[r], y[r], data, signal, device=r)


# ---- the number of ranks is fixed: an argument of the factory, a plain Python number in the program


def build_table(nr: int):
    """The program for nr ranks."""

    @pl.program
    class Table:
        @pl.function(type=pl.FunctionType.InCore)
        def collect(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            my_rank = pld.rank(pld.get_comm_ctx(data))
            data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
            for peer in pl.range(nr):
                if peer != my_rank:
                    pld.system.notify(
                        signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd
                    )
            for src in pl.range(nr):
                if src != my_rank:
                    pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
            for src in pl.range(nr):
                row = pld.tile.remote_load(data, peer=src, offsets=[0, 0], shape=[1, SIZE])
                y = pl.store(row, [src, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            return self.collect(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def table(
            self,
            x: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, nr, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, nr, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([nr, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)
            return y

    return Table


def main() -> int:
    args = arguments(__doc__, modes=("jit", "class"))
    nr = len(args.device_ids)
    x = np.random.default_rng(7).standard_normal((nr, 1, SIZE), dtype=np.float32)
    y = np.zeros((nr, nr, SIZE), dtype=np.float32)
    compiled = compiled_for(args, table, x, y) if args.mode == "jit" else compiled_for(args, build_table(nr))
    expected = np.broadcast_to(x[:, 0], y.shape)
    compiled(x, y, config=RunConfig(platform=args.platform), golden=expected)
    return verdict(y, expected)


if __name__ == "__main__":
    run(main)
