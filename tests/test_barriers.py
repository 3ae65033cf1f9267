"""The one rule of a barrier, and everybody who reads barriers off a trace: all must count the same."""

import pytest

from a2a3sim.checks.faults.performance import _Run
from a2a3sim.models.memory import Memory
from a2a3sim.models.operation import Lane, operation
from a2a3sim.reports.chapters import barriers
from a2a3sim.reports.lanes import rank_lanes
from a2a3sim.trace.barriers import barrier_count
from a2a3sim.trace.record import Trace

_PATH = object()  # a move has one
_SITE = ((lambda: None).__code__, 0)
_LETTERS = {
    "w": ("wait", "S"), "n": ("notify", "S"), "f": ("fence", "S"), "d": ("drain", "S"), "s": ("sync_all", "S"),
    "p": ("phase", "S"), "c": ("create", "S"), "x": ("read", "S"), "v": ("add", "V"), "m": ("load", "MTE2"),
    "r": ("remote_load", "MTE2"), "o": ("store", "MTE3"),
}  # fmt: skip


def _lanes(text):
    """Dispatches of one core, parted by ``|``: one operation a letter, 10 ps each, every wait ended by rank 1."""
    memory, now, lanes = Memory(0, "w", "window", 0, 0, 64, None, 0), 0, []
    sender = Lane(99, 0, 0, 0, 1, 1, 0, "kernel")
    for index, word in enumerate(text.split("|")):
        lane = Lane(index, 0, index, 0, 0, 0, 0, "kernel")
        lane.start = now
        for seq, letter in enumerate(word):
            op = operation(lane, *_LETTERS[letter], _SITE)
            op.seq, op.begun, op.issued, op.start, op.end = seq, now, now + 1, now + 1, now + 10
            if op.kind in ("wait", "notify"):
                op.cell = (memory, 0)
            if op.kind in ("remote_load", "notify"):
                op.peer = 1
            if op.pipe.startswith("MTE") or op.kind == "read":
                op.path, op.drained, op.visible = _PATH, op.end, op.end
            if op.kind == "wait":
                op.by = operation(sender, "notify", "S", _SITE)
                op.by.start, op.by.applied = now, now + 5
            lane.operations.append(op)
            now += 10
        lane.end = now
        lanes.append(lane)
    return lanes


def _counted(text):
    """Barriers by the cost card, `explain`, the timeline's arrows, and the performance notes (last dispatch)."""
    lanes = _lanes(text)
    last = lanes[-1]
    view = rank_lanes(lanes, 2, 0, last.end)[0]
    ending = _lanes(text + "r")  # the notes only keep where moves to a peer begin
    return (
        barrier_count(lanes),
        len(barriers(Trace(lanes))),
        len({arrow.barrier for arrow in view.arrows}),
        max(_Run(ending, last.end).starts),
    )


@pytest.mark.parametrize(
    "text, counted",
    [
        ("", (0, 0, 0, 0)), ("www", (1, 1, 1, 1)), ("wpw", (1, 1, 1, 1)), ("wsw", (1, 1, 1, 1)),
        ("sw", (1, 1, 1, 1)), ("ws", (1, 1, 1, 1)), ("snw", (1, 1, 1, 1)), ("s", (0, 0, 0, 0)),
        ("wfw", (1, 1, 2, 1)), ("wdw", (1, 1, 2, 1)), ("wfspdw", (1, 1, 2, 1)),
        ("wnw", (2, 2, 2, 1)), ("wfnfw", (2, 2, 2, 1)), ("wsnw", (2, 2, 2, 1)),
        ("wvw", (2, 2, 2, 1)), ("wcw", (2, 2, 2, 1)),
        ("wmw", (2, 2, 2, 2)), ("wrw", (2, 2, 2, 2)), ("wow", (2, 2, 2, 2)), ("wxw", (2, 2, 2, 2)),
        ("w|w", (2, 2, 2, 1)), ("wmw|fw", (3, 3, 3, 1)), ("nnwwmnnwwm", (2, 2, 2, 2)),
    ],
)  # fmt: skip
def test_what_a_barrier_is(text, counted):
    assert _counted(text) == counted
