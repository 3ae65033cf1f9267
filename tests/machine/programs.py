"""Small programs for the tests: one kernel on every rank, with a data window and a signal window."""

from __future__ import annotations

import tempfile
from contextlib import suppress

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import A2A3Error, DistributedConfig, RunConfig, ir

US = 1_000_000  # ps
NS = 1_000


def build(body, size=256, rows=4, ranks=2, dtype=pl.FP32, blocks=1, window=None):
    """A program whose kernel is ``body(x, y, data, signal)`` on [1, size] tensors and a [rows, 16] signal."""
    window = window or size
    x_t = pl.Tensor[[1, size], dtype]
    y_t = pl.Out[pl.Tensor[[1, size], dtype]]
    data_t = pl.InOut[pld.DistributedTensor[[1, window], dtype]]
    signal_t = pl.InOut[pld.DistributedTensor[[rows, 16], pl.INT32]]

    @pl.program
    class OneKernel:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: x_t, y: y_t, data: data_t, signal: signal_t):
            body(x, y, data, signal)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: x_t, y: y_t, data: data_t, signal: signal_t):
            with pl.spmd(blocks):
                self.kernel(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[ranks, 1, size], dtype], y: pl.Out[pl.Tensor[[ranks, 1, size], dtype]]):
            data_buf = pld.alloc_window_buffer([1, window], dtype=dtype)
            signal_buf = pld.alloc_window_buffer([rows, 16], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, window], dtype=dtype)
                signal = pld.window(signal_buf, [rows, 16], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)

    return OneKernel


class Ran:
    """A finished (or failed) run and how to look at it."""

    def __init__(self, compiled, x, y, error):
        self.x, self.y, self.error = x, y, error
        self.result = compiled.last_run
        self.trace = compiled.last_trace

    def ops(self, rank, kind=None, core=0):
        """A rank's operations (of one kind) in program order."""
        return [
            op
            for lane in self.trace.lanes
            if lane.rank == rank and lane.core == core
            for op in lane.operations
            if kind is None or op.kind == kind
        ]

    def log(self, rank, *kinds, core=0):
        """(kind, start, end) in ps, counted from the run's first kernel start."""
        zero = min(lane.start for lane in self.trace.lanes)
        return [
            (op.kind, op.start - zero, op.end - zero) for op in self.ops(rank, core=core) if op.kind in kinds
        ]


def run(body, ranks=2, machine="ideal", raises=False, x=None, config=None, **shape) -> Ran:
    """Run ``body`` as every rank's kernel; ``config`` are RunConfig fields."""
    program = build(body, ranks=ranks, **shape)
    with tempfile.TemporaryDirectory() as scratch:
        compiled = ir.compile(
            program, output_dir=scratch, distributed_config=DistributedConfig(device_ids=list(range(ranks)))
        )
    size, dtype = shape.get("size", 256), shape.get("dtype", pl.FP32).numpy
    if x is None:
        x = np.arange(ranks * size).reshape(ranks, 1, size).astype(dtype)
    y = np.zeros((ranks, 1, size), dtype)
    fields = {"checks": False, "machine": machine, **(config or {})}
    error = None
    if raises:
        with suppress(A2A3Error):
            try:
                compiled(x, y, config=RunConfig(**fields))
            except A2A3Error as caught:
                error = caught
                raise
    else:
        compiled(x, y, config=RunConfig(**fields))
    return Ran(compiled, x, y, error)


def me(window):
    """This rank."""
    return pld.rank(pld.get_comm_ctx(window))


def add(signal, peer, row=0, column=0, value=1):
    """Notify by adding."""
    pld.system.notify(signal, peer, [row, column], value, op=pld.NotifyOp.AtomicAdd)


def wait(signal, value, row=0, column=0):
    """Wait for at least ``value``."""
    pld.system.wait(signal, [row, column], value, cmp=pld.WaitCmp.Ge)
