"""Small programs for the tests of the language: one body, on one rank or several."""

import numpy as np
from running import compiled

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig

MACHINE = RunConfig(machine="ideal", checks=False, keep_trace=True)


def per_rank_program(body, x_shape, y_shape, dtype, out_dtype, kernel=True):
    """``body(x, y)`` on every rank, as a kernel or as an orchestration."""
    x_t, y_t = pl.Tensor[x_shape, dtype], pl.Out[pl.Tensor[y_shape, out_dtype]]
    nr = pl.dynamic("NR")

    @pl.program
    class PerRank:
        @pl.function(type=pl.FunctionType.InCore)
        def step(self, x: x_t, y: y_t):
            return body(x, y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: x_t, y: y_t):
            if kernel:
                self.step(x, y)
            else:
                body(x, y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[nr, *x_shape], dtype], y: pl.Out[pl.Tensor[[nr, *y_shape], out_dtype]]):
            for r in pl.range(pld.world_size()):
                self.per_rank(x[r], y[r], device=r)

    return PerRank


def run(body, x, y_shape=None, *, out_dtype=None, ranks=1, kernel=True, config=MACHINE, keep=None):
    """What ``body(x, y)`` wrote to y, a zeroed tensor of ``y_shape`` (default: x's), on the first rank.

    Args:
        keep: a list that gets the compiled program, to look at its run.
    """
    x = np.asarray(x)
    dtype = dtype_of(x)
    out = dtype if out_dtype is None else out_dtype
    shape = list(x.shape if y_shape is None else y_shape)
    program = compiled(per_rank_program(body, list(x.shape), shape, dtype, out, kernel), ranks)
    if keep is not None:
        keep.append(program)
    y = np.zeros((ranks, *shape), out.numpy)
    program(np.repeat(x[None], ranks, axis=0), y, config=config)
    return y[0]


def dtype_of(array):
    """The language's dtype of an array."""
    return next(d for d in (pl.FP32, pl.FP16, pl.BF16, pl.INT32, pl.INT16, pl.INT8) if d.numpy == array.dtype)


def floats(*shape, seed=0, dtype=np.float32):
    """Random numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def operations(program, *kinds):
    """(kind, rank) of the operations of the last run, lane by lane."""
    return [
        (op.kind, op.lane.rank) for op in program.last_trace.operations() if not kinds or op.kind in kinds
    ]


def copy_tile(x, y):
    """y = x, by way of UB."""
    return pl.store(pl.load(x, [0] * len(x.shape), x.shape), [0] * len(x.shape), y)
