"""The one rule of a barrier, and everybody who reads barriers off a trace: all must count the same."""

import pytest

from a2a3sim.checks.faults.performance import _Run
from a2a3sim.models.memory import Memory
from a2a3sim.models.operation import Lane, operation
from a2a3sim.trace.barriers import barrier_count, barriers_of
from a2a3sim.trace.lanes import rank_lanes
from a2a3sim.trace.phases import phase_spans
from a2a3sim.trace.record import Trace
from a2a3sim.trace.table import Table

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
        barrier_count(Table(lanes)),
        len(barriers_of(Trace(lanes))),
        len({arrow.barrier for arrow in view.arrows}),
        max(_Run(ending, last.end).starts),
    )


@pytest.mark.parametrize(
    "text, count",
    [
        ("", 0), ("www", 1), ("wpw", 1), ("wsw", 1), ("sw", 1), ("ws", 1), ("snw", 1), ("s", 0),
        ("wfw", 1), ("wdw", 1), ("wfspdw", 1),  # the arrows counted 2
        ("wnw", 2), ("wfnfw", 2), ("wsnw", 2), ("wvw", 2), ("wcw", 2),  # the notes counted 1
        ("wmw", 2), ("wrw", 2), ("wow", 2), ("wxw", 2), ("nnwwmnnwwm", 2),
    ],
)  # fmt: skip
def test_all_readers_count_a_barrier_by_the_one_rule(text, count):
    assert _counted(text) == (count,) * 4


def test_a_dispatch_ends_a_barrier():
    # The notes look at each dispatch alone.
    assert _counted("w|w") == (2, 2, 2, 1)
    assert _counted("wmw|fw") == (3, 3, 3, 1)


def test_unnamed_phases_lie_between_stretches_of_synchronisation():
    # A device barrier parts phases too, a notify between two waits does not: nothing is done there.
    names = {
        text: [span.name for span in phase_spans(Table(_lanes(text)))[0]]
        for text in ("mwfwm", "mwnwm", "msm", "mfm")
    }
    assert names["mwfwm"] == names["mwnwm"] == names["msm"] == ["phase 1", "phase 2"]
    assert names["mfm"] == ["phase 1"]
