"""What every rank did when: stretches per pipe, phases, and the signals that ended waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a2a3sim.models.operation import UNKNOWN, Lane, Operation
from a2a3sim.trace.barriers import numbered
from a2a3sim.trace.intervals import slot_for
from a2a3sim.trace.kinds import kind_of, remote, side
from a2a3sim.trace.phases import Span, phase_spans
from a2a3sim.trace.table import PIPES, Table

__all__ = ["DRAWN", "Arrow", "Bar", "RankLanes", "activity", "held", "rank_lanes", "rank_strips"]

DRAWN = PIPES[:4]  # no operation uses SDMA yet

# What a strip shows where a rank does several things at once: the later one. Moves stand here twice, since
# latency tells less than bytes that flow.
_MOVES = ("local read", "local write", "remote read", "remote write")
_TELLING = (
    *((what, False) for what in _MOVES),
    ("wait", True),
    ("vector", True),
    *((what, True) for what in _MOVES),
)

_MOST_SLOTS = 4  # moves drawn beside each other within one lane


class Bar(NamedTuple):
    """Something one pipe did, in ps from the run's start; ``strong`` is the part in which bytes flowed."""

    what: str
    start: int
    end: int
    strong: tuple[int, int]
    slot: int = 0


class Arrow(NamedTuple):
    """A notify and the wait it ended."""

    src: int
    left: int
    dst: int
    ended: int
    barrier: int  # which barrier of the target's core it belongs to, from 1


@dataclass(slots=True)
class RankLanes:
    """The lanes of one rank: those of its first core, and the phases of that core."""

    rank: int
    cores: int
    bars: dict[str, list[Bar]] = field(default_factory=lambda: {pipe: [] for pipe in DRAWN})
    slots: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DRAWN, 1))
    phases: list[Span] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    barriers: int = 0  # of that core


def activity(op: Operation) -> str | None:
    """``wait notify vector issue`` or ``local read`` … ``remote write``: an operation's own work; None for a marker."""
    kind = kind_of(op.kind)
    if kind.moves:
        return f"{'remote' if remote(op) else 'local'} {side(op)}"
    if kind.synchronises:
        return "wait"
    if kind.notifies:
        return "notify"
    if kind.marker:
        return None
    return "vector" if kind.vector else "issue"


def held(op: Operation) -> str | None:
    """What held the scalar pipe before it turned to an operation: ``fence``, ``space`` or ``pipe``; None if nothing."""
    reason = op.after[0] if op.after is not None else None
    return reason if reason in ("fence", "space", "pipe") else None


def rank_lanes(lanes: Iterable[Lane], ranks: int, first: int, last: int) -> list[RankLanes]:
    """Every rank's lanes; the time ``first`` becomes 0, and a wait that never ended lasts to ``last``."""
    by_rank: dict[int, list[Lane]] = {rank: [] for rank in range(ranks)}
    for lane in lanes:
        by_rank[lane.rank].append(lane)
    found = []
    for rank, own in by_rank.items():
        cores = sorted({lane.core for lane in own})
        view = RankLanes(rank, len(cores))
        shown = (
            sorted((lane for lane in own if lane.core == cores[0]), key=lambda lane: lane.start)
            if own
            else []
        )
        view.phases = [
            s._replace(start=s.start - first, end=s.end - first) for s in phase_spans(Table(shown))[0]
        ]
        for lane in shown:
            _add_lane(view, lane, first, last)
        for pipe in ("MTE2", "MTE3"):
            _assign_slots(view, pipe)
        found.append(view)
    return found


def _add_lane(view: RankLanes, lane: Lane, first: int, last: int) -> None:
    scalar = view.bars["S"]
    before = view.barriers
    free = lane.start - first  # when the scalar pipe was done with the operation before
    for number, op in numbered(lane):
        view.barriers = before + number
        what = activity(op)
        if op.begun == UNKNOWN or what is None:
            continue
        if held(op):
            _extend(scalar, "held", free, op.begun - first)
        free = op.issued - first
        _extend(scalar, "notify" if what == "notify" else "issue", op.begun - first, op.issued - first)
        if what == "wait":
            end = op.end if op.end != UNKNOWN else last
            if end > op.start:
                _extend(scalar, "wait", op.start - first, end - first)
                by = op.by
                if kind_of(op.kind).waits and by is not None and op.start < by.applied <= op.end:
                    arrow = Arrow(by.lane.rank, by.start - first, view.rank, op.end - first, view.barriers)
                    view.arrows.append(arrow)
            continue
        if what in (None, "notify", "issue") or UNKNOWN in (op.start, op.end):
            continue
        start, end = op.start - first, op.end - first
        strong = (start, end)
        if what != "vector":
            flow = op.flow
            strong = (flow.start - first, flow.finish - first) if flow is not None else (end, end)
        view.bars[op.pipe].append(Bar(what, start, end, strong))


def _extend(bars: list[Bar], what: str, start: int, end: int) -> None:
    """Append a bar of the scalar pipe; what abuts and is the same becomes one."""
    if end <= start:
        return
    if bars and bars[-1].what == what and bars[-1].end == start:
        start = bars.pop().start
    bars.append(Bar(what, start, end, (start, end)))


def _assign_slots(view: RankLanes, pipe: str) -> None:
    free: list[int] = []
    bars = []
    for bar in view.bars[pipe]:
        # A store's slot is free once its bytes have left; its acknowledgement may overlap the next one.
        until = bar.strong[1] if pipe == "MTE3" else bar.end
        bars.append(bar._replace(slot=slot_for(free, bar.start, until, _MOST_SLOTS)))
    view.bars[pipe] = bars
    view.slots[pipe] = max(len(free), 1)


def rank_strips(
    lanes: Iterable[Lane], ranks: int, span: tuple[int, int], longest: int, bins: int
) -> tuple[NDArray[np.int8], list[tuple[str, bool]]]:
    """What each rank did most tellingly in each of ``bins`` equal stretches of ``longest`` ps, on any core.

    ``span`` holds the first instant shown and the last end of the run.

    Returns:
        An int8 array [rank, bin] of indices into the returned list of (activity, bytes flowed or it is no
        move); -1 where the rank did nothing.
    """
    first, last = span
    strips = np.full((ranks, bins), -1, np.int8)
    level: dict[tuple[str | None, bool], int] = {entry: k for k, entry in enumerate(_TELLING)}

    def paint(strip: NDArray[np.int8], what: int, start: int, end: int) -> None:
        if end > start:
            a = (start - first) * bins // longest
            b = max((end - first) * bins // longest, a + 1)
            if b > 0:  # what lies before a zoomed-in stretch is not seen
                a = max(a, 0)
                np.maximum(strip[a:b], what, out=strip[a:b])

    for lane in lanes:
        strip = strips[lane.rank]
        for op in lane.operations:
            what = activity(op)
            if what is None or op.start == UNKNOWN or (what, True) not in level:
                continue
            if op.end == UNKNOWN:
                if what == "wait":
                    paint(strip, level[what, True], op.start, last)
                continue
            if what in _MOVES:
                paint(strip, level[what, False], op.start, op.end)
                if op.flow is not None:
                    paint(strip, level[what, True], op.flow.start, op.flow.finish)
            else:
                paint(strip, level[what, True], op.start, op.end)
    return strips, list(_TELLING)
