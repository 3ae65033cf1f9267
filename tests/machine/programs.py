"""Small programs for the tests: one kernel on every rank, with a data window and a signal window."""

import numpy as np
import running
from running import Ran

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

US = 1_000_000  # ps
NS = 1_000


def build(body, size=256, rows=4, ranks=2, dtype=pl.FP32, blocks=1, window=None):
    """A program whose kernel is ``body(x, y, data, signal)`` on [1, size] tensors and a [rows, 16] signal."""
    tensor = [1, size]
    return running.one_kernel(
        lambda x, y, data, signal, e: body(x, y, data, signal), ranks, tensor, tensor, [1, window or size],
        [rows, 16], dtype, lambda rank: blocks,
    )  # fmt: skip


def run(body, ranks=2, machine="ideal", raises=False, x=None, config=None, **shape) -> Ran:
    """Run ``body`` as every rank's kernel; ``config`` are RunConfig fields."""
    program = build(body, ranks=ranks, **shape)
    size, dtype = shape.get("size", 256), shape.get("dtype", pl.FP32).numpy
    if x is None:
        x = np.arange(ranks * size).reshape(ranks, 1, size).astype(dtype)
    y = np.zeros((ranks, 1, size), dtype)
    fields = {"checks": False, "machine": machine, **(config or {})}
    return running.run(program, ranks, x, y, raises=raises, **fields)


def me(window):
    """This rank."""
    return pld.rank(pld.get_comm_ctx(window))


def add(signal, peer, row=0, column=0, value=1):
    """Notify by adding."""
    pld.system.notify(signal, peer, [row, column], value, op=pld.NotifyOp.AtomicAdd)


def wait(signal, value, row=0, column=0):
    """Wait for at least ``value``."""
    pld.system.wait(signal, [row, column], value, cmp=pld.WaitCmp.Ge)
