"""Phases: what a core does between two stretches of synchronisation.

A phase is called ``phase k`` after the stretches before it, unless the program names it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from a2a3sim.models.operation import UNKNOWN
from a2a3sim.trace.barriers import by_core
from a2a3sim.trace.kinds import KINDS, remote

__all__ = ["Span", "phase_spans", "phase_union"]

_SYNCHRONISE = frozenset(kind.name for kind in KINDS.values() if kind.synchronises)
_SIGNAL = frozenset(kind.name for kind in KINDS.values() if kind.signal)


class Span(NamedTuple):
    """One phase of one core, in the clock's ps."""

    name: str
    rank: int
    start: int
    end: int
    remote_bytes: int


class _Open:
    """A phase of one core that still grows."""

    __slots__ = ("end", "name", "remote", "start")

    def __init__(self, name: str) -> None:
        self.name = name
        self.start = self.end = UNKNOWN
        self.remote = 0


def phase_spans(lanes, visit: Callable | None = None) -> list[Span]:
    """Every core's phases in order.

    Named phases last from their first operation to the last end of one, whatever they contain. In between, a
    phase holds moves, computation and scalar accesses; the notifies that end it are part of the barrier. Its
    number counts all stretches of synchronisation before it, so ranks and cores that skip one keep step.

    Args:
        visit: called with (name of the phase, operation) for each operation that belongs to one.
    """
    spans: list[Span] = []
    for core in by_core(lanes):
        number = 1
        for lane in core:
            if lane.operations and lane is not core[0]:
                number += 1
            number = _lane_spans(lane, number, spans, visit)
    return spans


def _lane_spans(lane, number: int, spans: list[Span], visit=None) -> int:
    rank = lane.rank
    names: list[str] = []
    found: list[_Open] = []
    phase: _Open | None = None
    synchronising = False
    for op in lane.operations:
        kind = op.kind
        if kind == "phase":
            if op.value:
                names.append(op.value)
            elif names:
                names.pop()
            phase = None
            continue
        if kind in _SYNCHRONISE:
            synchronising = True
            if not names:
                phase = None
                continue
        elif kind in _SIGNAL:
            if not names:
                continue
        elif synchronising:
            synchronising = False
            number += 1
        if op.begun < 0:
            continue
        if phase is None:
            phase = _Open(names[-1] if names else f"phase {number}")
            phase.start = phase.end = op.begun
            found.append(phase)
        phase.end = max(phase.end, op.end)
        if visit is not None:
            visit(phase.name, op)
        if remote(op) and op.drained >= 0:
            phase.remote += op.nbytes
    spans += [Span(p.name, rank, p.start, p.end, p.remote) for p in found]
    return number


def phase_union(spans, origin: int = 0) -> list[dict]:
    """The entries of ``phases``: each name from its first start to its last end on any rank."""
    union: dict[str, list[int]] = {}
    for span in spans:
        seen = union.get(span.name)
        if seen is None:
            union[span.name] = [span.start, span.end, span.remote_bytes]
        else:
            seen[0] = min(seen[0], span.start)
            seen[1] = max(seen[1], span.end)
            seen[2] += span.remote_bytes
    order = sorted(union, key=lambda name: (union[name][0], union[name][1]))  # stable: then first appearance
    return [
        {
            "name": name,
            "start_ps": union[name][0] - origin,
            "end_ps": union[name][1] - origin,
            "remote_bytes": union[name][2],
        }
        for name in order
    ]
