"""What a call accepts: numpy arrays and torch CPU tensors, in place, views and copies alike."""

import subprocess
import sys

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.errors import InvalidOperationError

from .programs import MACHINE, compiled, floats

N = 16


def doubling(dtype=pl.FP32, ranks=2):
    """y[r] = x[r] + x[r], with a sub-worker that negates y afterwards."""
    row = pl.Tensor[[1, N], dtype]
    whole = pl.Tensor[[ranks, 1, N], dtype]
    kinds = []

    @pl.program
    class Doubling:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def negate(t: pl.InOut[whole]):
            kinds.append((type(t).__module__, str(t.dtype)))
            t[:] = -t

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: row, y: pl.Out[row]):
            y[:] = pl.add(x, x)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: whole, y: pl.Out[whole]) -> whole:
            for r in pl.range(pld.world_size()):
                self.per_rank(x[r], y[r], device=r)
            self.negate(y)
            return y

    program = compiled(Doubling, ranks, num_sub_workers=1)
    program.kinds = kinds
    return program


def test_results_reach_views_and_arrays_with_gaps():
    base_x, base_y = floats(2, 1, 2 * N), np.zeros((2, 1, 2 * N), np.float32)
    doubling()(base_x[..., ::2], base_y[..., 1::2], config=MACHINE)
    assert np.array_equal(base_y[..., 1::2], -2 * base_x[..., ::2])
    assert not base_y[..., ::2].any()
    x = floats(2, 1, N)
    y = np.zeros((N, 1, 2), np.float32).T
    doubling()(x, y, config=MACHINE)
    assert np.array_equal(y, -2 * x)


def test_arguments_may_be_parts_of_one_array():
    both = np.concatenate([floats(2, 1, N), np.zeros((2, 1, N), np.float32)])
    expected = -2 * both[:2]
    doubling()(both[:2], both[2:], config=MACHINE)
    assert np.array_equal(both[2:], expected)


@pytest.mark.parametrize("wrong", [[[1.0]], None, "x", 3.0, {"a": 1}])
def test_other_arguments_are_refused(wrong):
    with pytest.raises(TypeError, match="argument x of Doubling must be a numpy array or a torch CPU tensor"):
        doubling()(wrong, np.zeros((2, 1, N), np.float32), config=MACHINE)


def test_dtypes_and_shapes_must_be_the_declared_ones():
    with pytest.raises(InvalidOperationError, match="argument x is declared FP32"):
        doubling()(np.zeros((2, 1, N), np.int32), np.zeros((2, 1, N), np.float32), config=MACHINE)
    with pytest.raises(
        InvalidOperationError, match=r"argument x has shape \[2, 1, 8\] where \[2, 1, 16\] FP32"
    ):
        doubling()(floats(2, 1, 8), np.zeros((2, 1, N), np.float32), config=MACHINE)
    with pytest.raises(InvalidOperationError, match=r"dtype must be one of fp32, .* got 'float64'"):
        doubling()(np.zeros((2, 1, N)), np.zeros((2, 1, N), np.float32), config=MACHINE)


def test_numbers_of_numpy_are_scalars():
    row = pl.Tensor[[1, N], pl.FP32]

    @pl.jit
    def power(x: row, y: pl.Out[row], factor: pl.Scalar[pl.FP32], times: pl.Scalar[pl.INT32]):
        tile = pl.load(x, [0, 0], [1, N])
        for _ in pl.range(times):
            tile = pl.mul(tile, factor)
        pl.store(tile, [0, 0], y)

    x, y = floats(1, N), np.zeros((1, N), np.float32)
    power(x, y, np.float32(2), np.int64(3), config=MACHINE)
    assert np.array_equal(y, 8 * x)


def test_a_golden_is_compared_with_what_was_written():
    program = doubling()
    x, y = floats(2, 1, N), np.zeros((2, 1, N), np.float32)
    program(x, y, config=MACHINE, golden=-2 * x)
    assert program.last_run.numerics.ok
    program(x, y, config=MACHINE, golden=2 * x)
    assert program.last_run.numerics.wrong == 2 * N


# ---- torch ------------------------------------------------------------------------------------------


def test_torch_is_never_imported():
    code = (
        "import sys, numpy as np, a2a3sim.language as pl, a2a3sim.run.worker, a2a3sim.pypto\n"
        "@pl.jit\n"
        "def f(x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):\n"
        "    y[:] = pl.add(x, x)\n"
        "f(np.ones((1, 8), np.float32), np.zeros((1, 8), np.float32))\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_torch_tensors_are_written_in_place(name):
    torch = pytest.importorskip("torch")
    dtype = {"float32": pl.FP32, "float16": pl.FP16, "bfloat16": pl.BF16}[name]
    torch.manual_seed(0)
    x = torch.randn(2, 1, N).to(getattr(torch, name))
    y = torch.zeros_like(x)
    program = doubling(dtype)
    assert program(x, y, config=MACHINE) is None
    assert torch.equal(y, -(x + x))
    assert program.kinds == [("torch", f"torch.{name}")]
    result = program(x, config=MACHINE)
    assert isinstance(result, torch.Tensor) and result.dtype == x.dtype
    assert torch.equal(result, y)


def test_torch_views_alias_their_storage():
    torch = pytest.importorskip("torch")
    x, base = torch.randn(2, 1, N), torch.zeros(2, 1, 2 * N)
    doubling()(x, base[..., N:], config=MACHINE)
    assert torch.equal(base[..., N:], -2 * x)
    assert not base[..., :N].any()


def test_torch_dtypes_are_understood():
    torch = pytest.importorskip("torch")
    from a2a3sim.language.types import as_dtype

    assert [as_dtype(t) for t in (torch.float32, torch.bfloat16, torch.int32, torch.bool, torch.half)] == [
        pl.FP32, pl.BF16, pl.INT32, pl.BOOL, pl.FP16
    ]  # fmt: skip
