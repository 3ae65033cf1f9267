"""Loops and the values that they carry."""

# ruff: noqa: B007 - what is carried is named as the language's own examples name it

import numpy as np
import pytest

import a2a3sim.language as pl
from a2a3sim.errors import InvalidOperationError, KernelError

from .programs import MACHINE, compiled, floats, run


@pytest.mark.parametrize("loop", [pl.range, pl.parallel, pl.unroll])
def test_loops_take_one_to_three_numbers(loop):
    assert list(loop(3)) == [0, 1, 2]
    assert list(loop(1, 3)) == [1, 2]
    assert list(loop(0, 10, 4)) == [0, 4, 8]
    with pytest.raises(ValueError, match=f"pl.{loop.__name__} takes 1 to 3 numbers, got 0"):
        loop()
    with pytest.raises(TypeError, match=r"expected an integer, got 1.5"):
        loop(1.5)


def test_dynamic_dimensions_are_bounds():
    n = pl.dynamic("N")
    seen = []

    @pl.program
    class Loops:
        @pl.function(type=pl.FunctionType.InCore)
        def step(self, x: pl.Tensor[[n, 8], pl.FP32], y: pl.Out[pl.Tensor[[n, 8], pl.FP32]]):
            for k in pl.range(n):
                pl.store(pl.load(x, [k, 0], [1, 8]), [n - 1 - k, 0], y)
            seen.append(list(pl.range(0, n * 2, n)))

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: pl.Tensor[[n, 8], pl.FP32], y: pl.Out[pl.Tensor[[n, 8], pl.FP32]]):
            self.step(x, y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[n, 8], pl.FP32], y: pl.Out[pl.Tensor[[n, 8], pl.FP32]]):
            self.per_rank(x, y, device=0)

    x, y = floats(5, 8), np.zeros((5, 8), np.float32)
    compiled(Loops, 1)(x, y, config=MACHINE)
    assert np.array_equal(y, x[::-1])
    assert seen == [[0, 5]]


def test_a_loop_carries_what_was_yielded_last():
    x = floats(4, 8)

    def body(x, y):
        zero = pl.tile.full([1, 8], dtype=pl.FP32, value=0.0)
        for i, (acc, count) in pl.range(0, 4, 1, init_values=(zero, 0)):
            total = pl.add(acc, pl.load(x, [i, 0], [1, 8]))
            if i % 2 == 1:
                count = pl.yield_(count + 1)
            acc_out, count_out = pl.yield_(total, count)
        pl.store(pl.add(acc_out, float(count_out)), [0, 0], y)

    assert np.array_equal(run(body, x, (1, 8))[0], x[0] + x[1] + x[2] + x[3] + 2)


def test_nested_loops_have_their_own_values():
    def body(x, y):
        for _, (outer,) in pl.range(3, init_values=(0,)):
            for _, (inner,) in pl.range(4, init_values=(outer,)):
                inner = pl.yield_(inner + 1)
            outer = pl.yield_(inner + 10)
        pl.write(y, [0, 0], outer)

    assert run(body, np.zeros((1, 8), np.int32))[0, 0] == 3 * 14


def test_a_loop_without_trips_gives_its_initial_values():
    @pl.jit.inline
    def body(x, y):
        first = 7
        for _, (a, b) in pl.range(0, 0, 1, init_values=(first, 8)):
            a2, b2 = pl.yield_(a + 1, b + 1)
        for _, (c,) in pl.range(b2 - 8, init_values=(a2,)):
            c2 = pl.yield_(c + 1)
        pl.write(y, [0, 0], a2 + b2 + c2)

    assert run(body, np.zeros((1, 8), np.int32))[0, 0] == 7 + 8 + 7


def test_rewritten_functions_keep_their_lines_closures_and_defaults():
    factor = 3

    @pl.jit.inline
    def body(x, y, extra=4):
        """Documented."""
        for _, (a,) in pl.range(0, init_values=(factor,)):
            a = pl.yield_(a)
        pl.write(y, [0, 0], a + extra)
        pl.read(x, [0, 99])  # line of the error

    first = body.fn.__code__.co_firstlineno
    with pytest.raises(KernelError, match=f"test_loops.py:{first + 6}: rank 0: out of bounds"):
        run(body, np.zeros((1, 8), np.int32))


def test_ranks_do_not_share_carried_values():
    x = floats(1, 8)

    def body(x, y):
        for i, (acc,) in pl.range(3, init_values=(pl.load(x, [0, 0], [1, 8]),)):
            pl.read(x, [0, i])  # lets the other rank go on
            acc = pl.yield_(pl.add(acc, 1.0))
        pl.store(acc, [0, 0], y)

    assert np.array_equal(run(body, x, ranks=3), x + 1 + 1 + 1)


def test_carried_loops_say_what_is_missing():
    def silent(x, y):
        for _, (a,) in pl.range(2, init_values=(1,)):
            pass

    def wrong(x, y):
        for _, (a,) in pl.range(2, init_values=(1,)):
            pl.yield_(a, a)

    x = np.zeros((1, 8), np.int32)
    with pytest.raises(
        InvalidOperationError, match=r"carries 1 values, but this trip ended without pl.yield_"
    ):
        run(silent, x)
    with pytest.raises(InvalidOperationError, match=r"carries 1 values, but pl.yield_ was given 2"):
        run(wrong, x)
    with pytest.raises(InvalidOperationError, match="init_values must be a tuple of values, got 3"):
        pl.range(2, init_values=3)


def test_a_branch_yields_too():
    def body(x, y):
        if pl.read(x, [0, 0]) < 5:
            value = pl.yield_(1)
        else:
            value = pl.yield_(2)
        pl.write(y, [0, 0], value)

    assert run(body, np.full((1, 8), 3, np.int32))[0, 0] == 1
    assert run(body, np.full((1, 8), 9, np.int32))[0, 0] == 2
