"""Phases: what a core does between two stretches of synchronisation.

A phase is called ``phase k`` after the stretches before it, unless the program names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from a2a3sim.trace.table import Column, Mask, Table

__all__ = ["Span", "phase_spans", "phase_union"]


class Span(NamedTuple):
    """One phase of one core, in the clock's ps."""

    name: str
    rank: int
    start: int
    end: int
    remote_bytes: int


def phase_spans(table: Table) -> tuple[list[Span], Column]:
    """Every core's phases in order, and for each operation the index of its own, -1 where it belongs to none.

    Named phases last from their first operation to the last end of one, whatever they contain. In between, a
    phase holds moves, computation and scalar accesses; the notifies that end it are part of the barrier. Its
    number counts all stretches of synchronisation before it, so ranks and cores that skip one keep step.
    """
    found = np.full(len(table), -1)
    markers = table.where(lambda kind: kind.name == "phase")
    stops = table.where(lambda kind: kind.synchronises)
    rest = ~(markers | stops | table.where(lambda kind: kind.signal))
    stretch, names = _stretches(table, markers)
    named = np.array([name is not None for name in names], np.bool_)[stretch]
    number = np.where(named, 0, _numbered(table, stops, rest))
    members = np.flatnonzero((named | rest) & ~markers & (table.begun >= 0))
    if not len(members):
        return [], found
    begins = np.ones(len(members), np.bool_)
    begins[1:] = (np.diff(stretch[members]) != 0) | (np.diff(number[members]) != 0)
    found[members] = np.cumsum(begins) - 1
    at = np.flatnonzero(begins)
    first = members[at]
    start = table.begun[first]
    end = np.maximum(start, np.maximum.reduceat(table.end[members], at))
    moved = np.where(table.remote & (table.drained >= 0), table.nbytes, 0)
    columns = (
        stretch[first],
        number[first],
        table.rank[first],
        start,
        end,
        np.add.reduceat(moved[members], at),
    )
    return [
        Span(names[where] or f"phase {count}", rank, begun, over, nbytes)
        for where, count, rank, begun, over, nbytes in zip(*(c.tolist() for c in columns), strict=True)
    ], found


def _stretches(table: Table, markers: Mask) -> tuple[Column, list[str | None]]:
    """Numbers of the stretches between phase markers or ends of lanes, by operation, and the name of each stretch."""
    breaks: Mask = markers.copy()
    breaks[table.first[:-1][np.diff(table.first) > 0]] = True
    stretch = np.cumsum(breaks, dtype=np.int64)
    names: list[str | None] = [None] * (int(breaks.sum()) + 1)
    inside: list[str] = []
    lane = None
    for k in np.flatnonzero(markers).tolist():
        op = table.operations[k]
        if op.lane is not lane:
            lane, inside = op.lane, []
        if op.value:
            inside.append(str(op.value))
        elif inside:
            inside.pop()
        names[stretch[k]] = inside[-1] if inside else None
    return stretch, names


def _numbered(table: Table, stops: Mask, rest: Mask) -> Column:
    """The number that an unnamed phase would have at each operation."""
    lane, first = table.lane, table.first
    steps = np.flatnonzero(stops | rest)
    turns = np.zeros(len(table) + 1, np.int64)
    turns[steps[1:] + 1] = rest[steps[1:]] & stops[steps[:-1]] & (lane[steps[1:]] == lane[steps[:-1]])
    passed = np.cumsum(turns)
    own = np.diff(passed[first]).tolist()
    bases, number, core = [], 0, None
    for owner, turned in zip(table.lanes, own, strict=True):
        if core != (owner.rank, owner.core):
            core, number = (owner.rank, owner.core), 1
        elif owner.operations:
            number += 1
        bases.append(number)
        number += turned
    return passed[1:] - passed[first[:-1]][lane] + np.array(bases, np.int64)[lane]


def phase_union(spans: Iterable[Span], origin: int = 0) -> list[dict[str, Any]]:
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
