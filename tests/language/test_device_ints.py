"""Numbers of the device: Python's answers, with a note where the machine would give others."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import a2a3sim.language as pl
from a2a3sim.language.context import enter, leave
from a2a3sim.language.kernel.device_int import DeviceInt, device_int, device_ints

from .programs import MACHINE, compiled, per_rank_program


class Kernel:
    """Stands for a running kernel."""

    level = "kernel"

    def __init__(self):
        self.notes = []

    def note(self, kind, message, _site):
        self.notes.append((kind, message))


@pytest.fixture
def kernel():
    context = Kernel()
    token = enter(context)
    yield context
    leave(token)


def c_divide(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


numbers = st.integers(-50, 50)


@given(numbers, numbers.filter(bool))
def test_a_note_is_taken_exactly_where_c_differs(a, b):
    context = Kernel()
    token = enter(context)
    try:
        assert DeviceInt(a) // b == a // b
        quotient = bool(context.notes)
        assert a % DeviceInt(b) == a % b
        remainder = len(context.notes) > quotient
    finally:
        leave(token)
    assert quotient == (c_divide(a, b) != a // b)
    assert remainder == (a - b * c_divide(a, b) != a % b)


def test_the_note_says_what_the_machine_gives(kernel):
    rank, ranks = device_int(0), device_int(4)
    assert (rank - 1) % ranks == 3
    assert (rank + ranks - 1) % ranks == 3
    ((kind, message),) = kernel.notes
    assert kind == "remainder"
    assert "-1 % 4 is 3 in Python but -1 on the machine" in message
    assert "(x + 4) % 4" in message
    assert DeviceInt(-7) // 2 == -4
    assert "-7 // 2 is -4 in Python but -3 on the machine" in kernel.notes[1][1]


def test_arithmetic_stays_on_the_device_and_comparisons_are_pythons(kernel):
    a = device_int(5)
    for value in (a + 1, 1 + a, a - 6, 6 - a, a * 2, -a, abs(a), a // 2, a % 3, 7 % a, a << 1, a & 4):
        assert type(value) is DeviceInt
    assert type(a / 2) is float
    assert type(a + 0.5) is float
    assert (a == 5, a < 6, a != 4, bool(a)) == (True,) * 4
    assert {a: 1}[5] == 1
    assert json.dumps([a]) == "[5]"
    assert [10, 20, 30, 40, 50, 60][a] == 60
    assert divmod(a, 3) == (1, 2)
    assert kernel.notes == []


def test_nothing_is_noted_on_the_host():
    assert DeviceInt(-1) % 4 == 3


def test_ranges_hand_out_device_numbers():
    for bounds in ((5,), (2, 9, 3), (5, 0, -1), (-2, 2), (1020, 1030)):
        found = list(device_ints(range(*bounds)))
        assert found == list(range(*bounds))
        assert all(type(v) is DeviceInt for v in found)
    long = device_ints(range(2000))
    assert (len(long), long[-1], long[1:3][1], list(long) == list(long)) == (2000, 1999, 2, True)


def test_a_run_collects_its_notes_once_per_line_and_rank():
    def body(x, y):
        me = pl.read(x, [0, 0])
        for _ in pl.range(3):
            left = (me - 1) % 4
        pl.write(y, [0, 0], left)

    launches = []
    program = compiled(per_rank_program(body, [1, 8], [1, 8], pl.INT32, pl.INT32), 2)
    from a2a3sim.run import launch

    original = launch.Launch.run

    def spied(self):
        launches.append(self)
        return original(self)

    launch.Launch.run = spied
    try:
        y = np.zeros((2, 1, 8), np.int32)
        program(np.array([[[0] * 8], [[1] * 8]], np.int32), y, config=MACHINE)
    finally:
        launch.Launch.run = original
    assert y[:, 0, 0].tolist() == [3, 0]
    (note,) = launches[0].notes.values()
    assert (note.kind, note.rank, note.lane.kernel) == ("remainder", 0, "step")
    assert (
        program.last_trace.site(program.last_trace.lanes[0].operations[0]).line
        == body.__code__.co_firstlineno + 1
    )
