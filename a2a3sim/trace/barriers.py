"""The one rule of a barrier: where a core stops for others.

A barrier is a maximal run of consecutive waits of one core within one dispatch, with nothing between them but
phase markers, fences, drains and device barriers (``sync_all``, itself no wait). A notify, a move or a
computation between two waits makes them two barriers: what it publishes or needs may depend on the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from a2a3sim.models.operation import UNKNOWN, Lane, Operation
from a2a3sim.trace.kinds import KINDS, took
from a2a3sim.trace.record import Site, Trace, resolve_site
from a2a3sim.trace.table import Table, summed

__all__ = ["Barrier", "barrier_count", "barriers_of", "by_core", "numbered"]

_TRANSPARENT = frozenset(kind.name for kind in KINDS.values() if kind.transparent)
_WAITS = frozenset(kind.name for kind in KINDS.values() if kind.waits)


def numbered(lane: Lane) -> Iterator[tuple[int, Operation]]:
    """Every operation of a lane with the number of barriers that have begun by then, a wait's own included."""
    number, waiting = 0, False
    for op in lane.operations:
        kind = op.kind
        if kind in _WAITS:
            number += not waiting
            waiting = True
        elif waiting and kind not in _TRANSPARENT:
            waiting = False
        yield number, op


def by_core(lanes: Iterable[Lane]) -> list[list[Lane]]:
    """The lanes of each core in order of their start; cores by rank and number."""
    return [own for _, own in sorted(_cores(lanes).items(), key=lambda item: item[0])]


def _cores(lanes: Iterable[Lane]) -> dict[tuple[int, int], list[Lane]]:
    """The same by (rank, core), cores in order of their first lane."""
    cores: dict[tuple[int, int], list[Lane]] = {}
    for lane in lanes:
        cores.setdefault((lane.rank, lane.core), []).append(lane)
    for own in cores.values():
        own.sort(key=lambda lane: (lane.start, lane.index))
    return cores


def barrier_count(table: Table) -> int:
    """The barriers of the core that has most of them."""
    shown = np.flatnonzero(~table.where(lambda kind: kind.transparent))
    waits, lane = table.where(lambda kind: kind.waits)[shown], table.lane[shown]
    begins = waits.copy()
    begins[1:] &= ~(waits[:-1] & (lane[1:] == lane[:-1]))
    cores: Counter[tuple[int, int]] = Counter()
    for owner, count in zip(table.lanes, summed(begins, lane, len(table.lanes)).tolist(), strict=True):
        cores[owner.rank, owner.core] += count
    return max(cores.values(), default=0)


@dataclass
class Barrier:
    """The k-th barrier of every core; times in the clock's ps.

    Attributes:
        number: k, from 1.
        waits: all its waits.
        longest: by rank, the wait that took most of its time.
        waited: by rank, time in waits, summed over its cores, ps.
    """

    number: int
    waits: list[Operation] = field(default_factory=list)
    waited: Counter[int] = field(default_factory=Counter)
    longest: dict[int, Operation] = field(default_factory=dict)

    def add(self, op: Operation) -> None:
        """One more wait."""
        rank = op.lane.rank
        self.waits.append(op)
        self.waited[rank] += took(op)
        before = self.longest.get(rank)
        if before is None or _length(op) > _length(before):
            self.longest[rank] = op

    @property
    def start(self) -> int:
        """When the first rank came."""
        return min(op.begun for op in self.waits)

    @property
    def end(self) -> int:
        """When the last rank went on; a wait that never ended counts up to its start."""
        return max(op.start + took(op) for op in self.waits)

    @property
    def unfinished(self) -> list[int]:
        """Ranks that never got past it."""
        return sorted({op.lane.rank for op in self.waits if op.end == UNKNOWN})

    @property
    def last(self) -> Operation | None:
        """The notify that ended a wait and left last: of the rank for which the others waited."""
        ends = [op.by for op in self.waits if op.by is not None and op.by.applied > op.start]
        return max(ends, key=lambda n: (n.start, n.applied), default=None)

    @property
    def place(self) -> Site:
        """Where most of its time was spent."""
        return resolve_site(max(self.longest.values(), key=_length).site)


def _length(op: Operation) -> int:
    return (1 << 62) if op.end == UNKNOWN else op.end - op.start


def barriers_of(trace: Trace) -> list[Barrier]:
    """The barriers of a run, in the order in which each core meets them."""
    found: list[Barrier] = []
    for lanes in _cores(lane for lane in trace.lanes if lane.start != UNKNOWN).values():
        before = 0
        for lane in lanes:
            number = 0
            for number, op in numbered(lane):
                if op.kind not in _WAITS:
                    continue
                while len(found) < before + number:
                    found.append(Barrier(len(found) + 1))
                found[before + number - 1].add(op)
            before += number
    return found
