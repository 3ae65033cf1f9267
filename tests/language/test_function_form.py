"""The function form: ``@pl.jit`` and its variants."""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import DistributedConfig, RunConfig
from a2a3sim.errors import InvalidOperationError, ParserTypeError
from a2a3sim.language.host.program import Program
from a2a3sim.run.compile import DistributedCompiledProgram
from a2a3sim.run.compiled import CompiledProgram

from .programs import MACHINE, copy_tile, floats

N = 8
NR = pl.dynamic("NR")
ROW = pl.Tensor[[1, N], pl.FP32]
OUT = pl.Out[pl.Tensor[[1, N], pl.FP32]]
FOUR = MACHINE.with_(distributed_config=DistributedConfig(device_ids=[0, 1, 2, 3]))


@pl.jit.inline
def scaled(tile, factor):
    return pl.mul(tile, factor)


@pl.jit.incore()
def scale_step(x: ROW, y: OUT, factor: pl.Scalar[pl.FP32]):
    y = pl.store(scaled(pl.load(x, [0, 0], [1, N]), factor), [0, 0], y)
    return y


@pl.jit(auto_scope=True)
def scale(x: ROW, y: OUT, factor: pl.Scalar[pl.FP32]):
    return scale_step(x, y, factor)


@pl.jit.host
def scale_all(
    x: pl.Tensor[[NR, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, N], pl.FP32]], factor: pl.Scalar[pl.FP32]
):
    for r in pl.range(pld.world_size()):
        scale(x[r], y[r], factor, device=r)


def arrays(ranks=4):
    return floats(ranks, 1, N), np.zeros((ranks, 1, N), np.float32)


def test_a_host_entry_compiles_and_runs():
    x, y = arrays()
    program = scale_all.compile(x, y, config=FOUR)
    assert isinstance(program, DistributedCompiledProgram)
    assert program(x, y, 2.0, config=RunConfig(machine="ideal")) is None
    assert np.array_equal(y, x * 2)


def test_calling_compiles_once_per_shape_and_device_set(monkeypatch):
    x, y = arrays()
    count = []
    original = type(scale_all).compile
    monkeypatch.setattr(
        type(scale_all), "compile", lambda self, *a, **k: count.append(1) or original(self, *a, **k)
    )
    for factor in (1.0, 2.0):
        scale_all(x, y, factor, config=FOUR)
    assert len(count) == 1
    scale_all(
        x[:2], y[:2], 2.0, config=MACHINE.with_(distributed_config=DistributedConfig(device_ids=[0, 1]))
    )
    assert len(count) == 2
    assert np.array_equal(y, x * 2)
    assert scale_all.last_run.ranks == 2


def test_arguments_by_name():
    x, y = arrays()
    scale_all(x, factor=3.0, y=y, config=FOUR)
    assert np.array_equal(y, x * 3)


def test_scalars_of_compile_need_not_be_given_again():
    x, y = arrays()
    program = scale_all.compile(x, y, factor=5.0, config=FOUR)
    program(x, y)
    assert np.array_equal(y, x * 5)
    open_one = scale_all.compile(x, y, factor=pl.RUNTIME, config=FOUR)
    with pytest.raises(TypeError, match=r"takes 3 arguments \(x, y, factor\), got 2"):
        open_one(x, y)
    with pytest.raises(TypeError, match="power is no scalar parameter"):
        scale_all.compile(x, y, power=2)


def test_compiling_without_samples_needs_declared_shapes():
    @pl.jit.host
    def bare(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        scale(x[0], y[0], 2.0, device=0)

    assert scale_all.compile(config=FOUR).name == "scale_all"
    with pytest.raises(TypeError, match="needs declared shapes: x is bare"):
        bare.compile()
    x, y = arrays(1)
    bare(x, y, config=MACHINE)
    assert np.array_equal(y, x * 2)


def test_samples_must_be_tensors():
    with pytest.raises(
        TypeError, match="sample x of scale_all must be a numpy array or a torch CPU tensor, got list"
    ):
        scale_all.compile([1, 2], config=FOUR)


def test_a_program_for_one_device():
    x, y = floats(1, N), np.zeros((1, N), np.float32)
    program = scale.compile(x, y, config=RunConfig(device_id=3))
    assert type(program) is CompiledProgram
    program(x, y, 2.0, config=RunConfig(machine="ideal", device_id=3))
    assert np.array_equal(y, x * 2)
    assert program.last_run.device_labels == [3]


def test_lowering_shows_the_functions():
    lowered = scale_all.lower()
    assert isinstance(lowered, Program)
    assert {n: f.kind for n, f in lowered.functions.items()} == {
        "scale_all": "host",
        "scale": "orchestration",
        "scale_step": "kernel",
        "scaled": "inline",
    }


def test_an_opaque_function_is_what_its_body_needs():
    @pl.jit.opaque
    def kernel_like(x: ROW, y: OUT):
        copy_tile(x, y)

    @pl.jit.opaque
    def orchestrating(x: ROW, y: OUT):
        scale_step(x, y, 2.0)

    @pl.jit
    def both(x: ROW, y: OUT):
        z = pl.create_tensor([1, N], dtype=pl.FP32)
        orchestrating(x, z)
        kernel_like(z, y)

    x, y = floats(1, N), np.zeros((1, N), np.float32)
    both(x, y, config=MACHINE)
    assert np.array_equal(y, x * 2)
    assert (kernel_like.kind, orchestrating.kind, both.kind) == ("kernel", "orchestration", "orchestration")


def test_a_bare_window_is_inout_and_results_pass_through():
    @pl.jit.incore
    def step(x: ROW, win: pld.DistributedTensor[[1, N], pl.FP32]):
        win = pl.store(pl.load(x, [0, 0], [1, N]), [0, 0], win)
        return win

    @pl.jit
    def per_rank(x: ROW, y: OUT, win: pld.DistributedTensor[[1, N], pl.FP32]):
        win = step(x, win)
        assert isinstance(win, pld.DistributedTensor)
        return scale_step(win, y, 1.0)

    @pl.jit.host
    def host(x: pl.Tensor[[NR, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, N], pl.FP32]]):
        buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            per_rank(x[r], y[r], pld.window(buf, [1, N], dtype=pl.FP32), device=r)

    assert step.parameters[1].direction == "inout"
    x, y = arrays()
    program = host.compile(x, y, config=FOUR)
    program(x, y, config=FOUR)
    assert np.array_equal(y, x)
    # The second kernel of each rank reads what the first wrote.
    assert set(program.last_trace.edges) == {((r, 0), (r, 1)) for r in range(4)}


def test_closures_and_later_definitions():
    def build(offset):
        @pl.jit
        def outer(x: ROW, y: OUT):
            inner(x, y)

        @pl.jit.incore
        def inner(x: ROW, y: OUT):
            pl.store(pl.add(pl.load(x, [0, 0], [1, N]), offset), [0, 0], y)

        return outer

    x, y = floats(1, N), np.zeros((1, N), np.float32)
    for offset in (1.0, 2.0):
        build(offset)(x, y, config=MACHINE)
        assert np.array_equal(y, x + np.float32(offset))


def test_what_the_function_form_refuses():
    with pytest.raises(InvalidOperationError, match=r"pl.jit.extern is not supported by the simulator"):
        pl.jit.extern("kernel.cpp")
    with pytest.raises(AttributeError, match=r"pl.jit has no 'inkore' .did you mean 'incore'"):
        pl.jit.inkore  # noqa: B018

    @pl.jit
    def with_device(x: ROW, y: OUT):
        scale_step(x, y, 2.0, device=0)

    with pytest.raises(
        ParserTypeError, match="device= belongs to calls in a host body, not to scale_step in a orch"
    ):
        with_device(*[floats(1, N)] * 2, config=MACHINE)
    with pytest.raises(TypeError, match="scale_step has no parameter 'size'"):

        @pl.jit
        def misnamed(x: ROW, y: OUT):
            scale_step(x, y, size=2.0)

        misnamed(*[floats(1, N)] * 2, config=MACHINE)


def test_a_function_keeps_its_last_compiled_forms_only(monkeypatch):
    monkeypatch.setattr("a2a3sim.jit._KEPT", 2)

    @pl.jit
    def doubled(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        return pl.store(pl.add(tile := pl.load(x, [0, 0], x.shape), tile), [0, 0], y)

    first = None
    for size in (8, 16, 24, 16):
        x, y = floats(1, size), np.zeros((1, size), np.float32)
        doubled(x, y, config=MACHINE)
        assert np.array_equal(y, x + x)
        first = first or doubled._last
    assert len(doubled._compiled) == 2
    assert first not in doubled._compiled.values()
    assert [key[2][0][0] for key in doubled._compiled] == [(1, 24), (1, 16)]  # the last used one last
