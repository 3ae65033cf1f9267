"""What the timeline shows of a trace: bars per rank and pipe, phases, and the signals that ended waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from a2a3sim.models.operation import UNKNOWN
from a2a3sim.reports.style import activity
from a2a3sim.trace.phases import Span, phase_spans

__all__ = ["PIPES", "Arrow", "Bar", "RankLanes", "rank_lanes", "rank_strips"]

PIPES = ("S", "MTE2", "V", "MTE3")

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
    barrier: int  # which run of waits of the target it belongs to


@dataclass(slots=True)
class RankLanes:
    """The lanes of one rank: those of its first core, and the phases of that core."""

    rank: int
    cores: int
    bars: dict[str, list[Bar]] = field(default_factory=lambda: {pipe: [] for pipe in PIPES})
    slots: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PIPES, 1))
    phases: list[Span] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)


def rank_lanes(lanes, ranks: int, first: int, last: int) -> list[RankLanes]:
    """Every rank's lanes; the time ``first`` becomes 0, and a wait that never ended lasts to ``last``."""
    by_rank: dict[int, list] = {rank: [] for rank in range(ranks)}
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
        view.phases = [s._replace(start=s.start - first, end=s.end - first) for s in phase_spans(shown)]
        for lane in shown:
            _add_lane(view, lane, first, last)
        for pipe in ("MTE2", "MTE3"):
            _assign_slots(view, pipe)
        found.append(view)
    return found


def _add_lane(view: RankLanes, lane, first: int, last: int) -> None:
    scalar = view.bars["S"]
    barrier, waiting = len(view.arrows) and view.arrows[-1].barrier + 1, False
    free = lane.start - first  # when the scalar pipe was done with the operation before
    for op in lane.operations:
        if op.begun == UNKNOWN or op.kind == "phase":
            continue
        if op.after is not None and op.after[0] in ("fence", "space", "pipe"):
            _extend(scalar, "held", free, op.begun - first)
        free = op.issued - first
        what = activity(op)
        _extend(scalar, "notify" if what == "notify" else "issue", op.begun - first, op.issued - first)
        if what == "wait":
            if not waiting:
                waiting, barrier = True, barrier + 1
            end = op.end if op.end != UNKNOWN else last
            if end > op.start:
                _extend(scalar, "wait", op.start - first, end - first)
                by = op.by
                if op.kind == "wait" and by is not None and op.start < by.applied <= op.end:
                    view.arrows.append(
                        Arrow(by.lane.rank, by.start - first, view.rank, op.end - first, barrier)
                    )
            continue
        waiting = False
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
        slot = next((k for k, time in enumerate(free) if time <= bar.start), None)
        if slot is None and len(free) < _MOST_SLOTS:
            free.append(0)
            slot = len(free) - 1
        elif slot is None:
            slot = min(range(len(free)), key=lambda k: (free[k], k))
        free[slot] = until
        bars.append(bar._replace(slot=slot))
    view.bars[pipe] = bars
    view.slots[pipe] = max(len(free), 1)


def rank_strips(lanes, ranks: int, span: tuple[int, int], longest: int, bins: int):
    """What each rank did most tellingly in each of ``bins`` equal stretches of ``longest`` ps, on any core.

    ``span`` holds the first instant shown and the last end of the run.

    Returns:
        An int8 array [rank, bin] of indices into the returned list of (activity, bytes flowed or it is no
        move); -1 where the rank did nothing.
    """
    import numpy as np

    first, last = span
    strips = np.full((ranks, bins), -1, np.int8)
    level: dict[tuple[str | None, bool], int] = {entry: k for k, entry in enumerate(_TELLING)}

    def paint(strip, what, start: int, end: int) -> None:
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
            if op.start == UNKNOWN or (what, True) not in level:
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
