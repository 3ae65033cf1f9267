"""What all shipped programs have in common: windows, one dispatch per rank, one kernel on its cores."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.collective import SHAPES, Job
from a2a3sim.kernels.partition import behind, signal_row

__all__ = ["Kernel", "Tiles", "Window", "assemble", "published"]

Window: TypeAlias = pld.DistributedTensor
Kernel: TypeAlias = Callable[[pl.Tensor, pl.Tensor, Window, Window], None]  # (x, y, data, signal)
Tiles: TypeAlias = Iterable[tuple[list[int], pl.Tile]]  # (offsets, tile) of each

# No `from __future__ import annotations`: a program's annotations hold variables and are evaluated here.


def assemble(
    collective: str, job: Job, kernel: Kernel, data_shape: tuple[int, int], cells: int
) -> pl.Program:
    """The program that runs ``kernel(x, y, data, signal)`` on every core of every rank.

    Args:
        data_shape: extents of the one data window.
        cells: signal cells that a core needs; each core has a row of its own.
    """
    ranks, dtype, cores = job.ranks, job.dtype, job.cores
    x_shape, y_shape = SHAPES[collective](ranks, job.count)
    signal_shape = [cores, signal_row(cells)]
    x_t = pl.Tensor[[*x_shape], dtype]
    y_t = pl.Out[pl.Tensor[[*y_shape], dtype]]
    data_t = pl.InOut[pld.DistributedTensor[[*data_shape], dtype]]
    signal_t = pl.InOut[pld.DistributedTensor[signal_shape, pl.INT32]]

    def on_core(self, x: x_t, y: y_t, data: data_t, signal: signal_t) -> None:
        kernel(x, y, data, signal)

    on_core.__name__ = kernel.__name__

    class Shipped:
        step = pl.function(type=pl.FunctionType.InCore)(on_core)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: x_t, y: y_t, data: data_t, signal: signal_t) -> None:
            with pl.spmd(cores):
                self.step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self, x: pl.Tensor[[ranks, *x_shape], dtype], y: pl.Out[pl.Tensor[[ranks, *y_shape], dtype]]
        ) -> None:
            data_buf = pld.alloc_window_buffer([*data_shape], dtype=dtype)
            signal_buf = pld.alloc_window_buffer(signal_shape, dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [*data_shape], dtype=dtype)
                signal = pld.window(signal_buf, signal_shape, dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)

    program = pl.program(Shipped)
    program.name = kernel.__name__
    return program


def published(tiles: Tiles, window: Window, notify: Callable[[], None]) -> Tiles:
    """Store tiles into a window, ``notify()`` behind the last, and hand them out again for the output.

    The window comes first: tiles are handed out one late, so that the store of the last one into the output
    does not keep the notify back.
    """

    def stored() -> Tiles:
        for where, tile in behind(tiles):
            pl.store(tile, where, window)
            yield where, tile
        notify()

    return behind(stored(), 1)
