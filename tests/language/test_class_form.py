"""The class form: declarations, results, entries."""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig, ir
from a2a3sim.errors import InvalidOperationError, ParserSyntaxError
from a2a3sim.run.compile import DistributedCompiledProgram
from a2a3sim.run.compiled import CompiledProgram

from . import annotated_as_text
from .programs import MACHINE, compiled, floats

N = 8
ROW = pl.Tensor[[1, N], pl.FP32]
OUT = pl.Out[ROW]
HOST = {"level": pl.Level.HOST, "role": pl.Role.Orchestrator}
INCORE, ORCHESTRATION = pl.FunctionType.InCore, pl.FunctionType.Orchestration


def two_results():
    """y = x + 1 and z = x - 1 on each rank, with tuples all the way."""
    all_t = pl.Tensor[[2, 1, N], pl.FP32]

    @pl.program
    class TwoResults:
        @pl.function(type=INCORE)
        def step(self, x: ROW, y: OUT, z: OUT) -> tuple[ROW, ROW]:
            tile = pl.load(x, [0, 0], [1, N])
            y = pl.store(pl.add(tile, 1.0), [0, 0], y)
            z = pl.store(pl.sub(tile, 1.0), [0, 0], z)
            return y, z

        @pl.function(type=ORCHESTRATION)
        def per_rank(self, x: ROW, y: OUT, z: OUT) -> tuple[ROW, ROW]:
            y, z = self.step(x, y, z)
            return y, z

        @pl.function(**HOST)
        def host(self, x: all_t, y: pl.Out[all_t], z: pl.Out[all_t]) -> tuple[all_t, all_t]:
            for r in pl.range(pld.world_size()):
                a, b = self.per_rank(x[r], y[r], z[r], device=r)
                assert (a.name, b.name) == (f"y[{r}]", f"z[{r}]")
            return y, z

    return TwoResults


def test_a_program_is_an_object_with_a_name():
    program = two_results()
    assert program.name == "TwoResults"
    assert not isinstance(program, type)
    assert {n: f.kind for n, f in program.functions.items()} == {
        "step": "kernel",
        "per_rank": "orchestration",
        "host": "host",
    }
    with pytest.raises(AttributeError, match="program TwoResults has no function 'stepp'"):
        program.stepp  # noqa: B018


def test_in_place_calls_return_nothing_and_others_the_results():
    program = compiled(two_results(), 2)
    assert type(program) is DistributedCompiledProgram
    x = floats(2, 1, N)
    y, z = np.zeros_like(x), np.zeros_like(x)
    assert program(x, y, z, config=MACHINE) is None
    assert np.array_equal(y, x + 1) and np.array_equal(z, x - 1)
    a, b = program(x, config=MACHINE)
    assert np.array_equal(a, y) and np.array_equal(b, z)
    for wrong in ((), (x, y), (x, y, z, x)):
        with pytest.raises(TypeError, match=r"TwoResults takes 3 arguments \(x, y, z\)"):
            program(*wrong, config=MACHINE)


def test_results_come_in_the_order_of_the_body():
    @pl.program
    class Swapped:
        @pl.function(type=ORCHESTRATION)
        def per_rank(self, x: ROW, y: OUT, z: OUT):
            y[:] = pl.add(x, 1.0)
            z[:] = pl.add(x, 2.0)

        @pl.function(**HOST)
        def host(self, y: OUT, x: ROW, z: OUT) -> tuple[ROW, ROW]:
            self.per_rank(x, y, z, device=0)
            return z, y

    x = floats(1, N)
    z, y = compiled(Swapped, 1)(x, config=MACHINE)
    assert np.array_equal(z, x + 2) and np.array_equal(y, x + 1)


def test_results_of_unknown_shape_cannot_be_made():
    n = pl.dynamic("N")

    @pl.program
    class Dynamic:
        @pl.function(type=ORCHESTRATION)
        def per_rank(self, x: pl.Tensor[[n, N], pl.FP32], y: pl.Out[pl.Tensor[[n, N], pl.FP32]]):
            y[:] = pl.add(x, x)

        @pl.function(**HOST)
        def host(
            self, x: pl.Tensor[[n, N], pl.FP32], y: pl.Out[pl.Tensor[[n, N], pl.FP32]]
        ) -> pl.Tensor[[n, N], pl.FP32]:
            self.per_rank(x, y, device=0)
            return y

    with pytest.raises(ValueError, match="cannot make y: its shape is not static"):
        compiled(Dynamic, 1)(floats(3, N), config=MACHINE)


def test_annotations_may_be_text():
    x = floats(3, 1, N)
    result = compiled(annotated_as_text.build_class(3, N), 3)(x, config=MACHINE)
    assert np.array_equal(result, 2 * x)
    a, b = floats(5, 7), np.zeros((5, 7), np.float32)
    annotated_as_text.copy(a, b, config=MACHINE)
    assert np.array_equal(a, b)
    assert annotated_as_text.copy.parameters[1].direction == "out"


def test_annotations_that_mean_nothing():
    with pytest.raises(
        InvalidOperationError, match="annotation of x, 'no_such_thing', cannot be evaluated: NameError"
    ):

        @pl.jit
        def function(x: "no_such_thing"):  # noqa: F821
            pass

    for bad, message in [
        (lambda: pl.Tensor[[1, N]], "lacks its dtype"),
        (lambda: pl.Out[3], "takes a tensor annotation, got 3"),
        (lambda: pl.Tensor[4, pl.FP32], r"annotation must be \[\[dims\], dtype\]"),
        (lambda: pl.Tensor[[4], "fp31"], "dtype must be one of fp32"),
        (lambda: pl.dynamic("1x"), "name must be an identifier, got '1x'"),
    ]:
        with pytest.raises(ValueError, match=message):
            bad()


def test_annotations_with_layout_and_local_tiles():
    assert pl.Tensor[[4, 4], pl.FP32, "ND"].dims == (4, 4)
    assert pl.Tile[[1, 4], pl.FP32].kind == "tile"
    assert pl.InOut[pld.DistributedTensor[[4], pl.INT32]].direction == "inout"
    assert pl.Scalar[pl.INT32].dtype is pl.INT32


def test_same_names_in_different_functions_are_bound_apart():
    m = pl.dynamic("M")
    seen = []

    @pl.program
    class Bindings:
        @pl.function(type=INCORE)
        def step(self, x: pl.Tensor[[m, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N * m], pl.FP32]]):
            seen.append(int(m))

        @pl.function(type=ORCHESTRATION)
        def per_rank(self, x: pl.Tensor[[m, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]):
            self.step(x[0:1], y)
            seen.append(int(m * 2))

        @pl.function(**HOST)
        def host(self, x: pl.Tensor[[m, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]):
            self.per_rank(x, y, device=0)
            seen.append(int(m))

    compiled(Bindings, 1)(floats(5, N), np.zeros((1, N), np.float32), config=MACHINE)
    assert seen == [5, 1, 10]  # the host body is recorded first


def test_a_class_without_host_body_is_a_program_for_one_device():
    @pl.program
    class Single:
        @pl.function(type=INCORE)
        def step(self, x: ROW, y: OUT):
            pl.store(pl.mul(pl.load(x, [0, 0], [1, N]), 3.0), [0, 0], y)

        @pl.function(type=ORCHESTRATION)
        def main(self, x: ROW, y: OUT) -> ROW:
            return self.step(x, y)

    program = ir.compile(Single)
    assert type(program) is CompiledProgram
    x = floats(1, N)
    assert np.array_equal(program(x, config=RunConfig(machine="ideal", device_id=5)), 3 * x)
    assert program.last_run.device_labels == [5]


def test_one_of_several_orchestrations_is_selected():
    @pl.program
    class Several:
        @pl.function(type=ORCHESTRATION)
        def up(self, x: ROW, y: OUT):
            y[:] = pl.add(x, 1.0)

        @pl.function(type=ORCHESTRATION)
        def down(self, x: ROW, y: OUT):
            y[:] = pl.sub(x, 1.0)

    program = ir.compile(Several)
    x, y = floats(1, N), np.zeros((1, N), np.float32)
    with pytest.raises(TypeError, match="select one explicitly"):
        program(x, y)
    program["down"](x, y, config=RunConfig(machine="ideal"))
    assert np.array_equal(y, x - 1)
    program.up(x, y, config=RunConfig(machine="ideal"))
    assert np.array_equal(y, x + 1)
    with pytest.raises(KeyError, match="did you mean 'down'"):
        program["dwon"]
    with pytest.raises(AttributeError):
        program.sideways  # noqa: B018


def test_a_method_without_type_is_what_its_body_needs():
    @pl.program
    class Plain:
        @pl.function
        def step(self, x: ROW, y: OUT):
            pl.store(pl.load(x, [0, 0], [1, N]), [0, 0], y)

        @pl.function()
        def main(self, x: ROW, y: OUT):
            self.step(x, y)

    assert {n: f.kind for n, f in Plain.functions.items()} == {"step": "kernel", "main": "orchestration"}
    x, y = floats(1, N), np.zeros((1, N), np.float32)
    ir.compile(Plain)(x, y, config=MACHINE)
    assert np.array_equal(x, y)


def test_programs_need_functions_and_one_host_entry():
    with pytest.raises(ParserSyntaxError, match="program Empty has no function"):

        @pl.program
        class Empty:
            pass

    with pytest.raises(ParserSyntaxError, match=r"must have one host entry .* found 2"):

        @pl.program
        class Two:
            @pl.function(**HOST)
            def first(self):
                pass

            @pl.function(**HOST)
            def second(self):
                pass

        ir.compile(Two)
    with pytest.raises(TypeError, match=r"ir.compile takes a program"):
        ir.compile(object())
    with pytest.raises(ParserSyntaxError, match="external_source is not supported"):
        pl.function(external_source="x.cpp")


def test_kernels_return_tiles_as_tensors():
    @pl.program
    class Returning:
        @pl.function(type=INCORE)
        def doubled(self, x: ROW) -> ROW:
            return pl.mul(pl.load(x, [0, 0], [1, N]), 2.0)

        @pl.function(type=ORCHESTRATION)
        def main(self, x: ROW, y: OUT):
            pl.assemble(y, self.doubled(x), [0, 0])

    x, y = floats(1, N), np.zeros((1, N), np.float32)
    ir.compile(Returning)(x, y, config=MACHINE)
    assert np.array_equal(y, 2 * x)


def test_the_output_directory(tmp_path, monkeypatch):
    program = ir.compile(two_results())
    assert program.output_dir.is_dir()
    assert program.output_dir.parent == tmp_path
    assert program.output_dir.name.startswith("TwoResults_")
    assert ir.compile(two_results()).output_dir != program.output_dir
    assert ir.compile(two_results(), output_dir=tmp_path / "here").output_dir == tmp_path / "here"
    monkeypatch.delenv("PYPTO_PROG_BUILD_DIR")
    monkeypatch.chdir(tmp_path)
    assert ir.compile(two_results()).output_dir.parts[0] == "build_output"
