"""What happened in a run, phase by phase and barrier by barrier: the facts that the story tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from a2a3sim.checks.wording import ranks_text
from a2a3sim.models.operation import UNKNOWN, Operation
from a2a3sim.trace.critical_path import group_of, walk
from a2a3sim.trace.phases import phase_spans
from a2a3sim.trace.record import Site, Trace, resolve_site
from a2a3sim.trace.table import Table

__all__ = ["Act", "Barrier", "PathPart", "Publication", "acts", "barriers", "path_parts", "publications"]

_TRANSPARENT = frozenset({"phase", "sync_all", "fence", "drain"})


@dataclass
class Act:
    """One rank's part in one phase; times in the clock's ps."""

    start: int
    end: int
    kinds: Counter = field(default_factory=Counter)
    remote_read: int = 0
    remote_written: int = 0

    @property
    def deeds(self) -> tuple:
        """What was done, whenever it was: equal for ranks that did the same."""
        return tuple(self.kinds.items()), self.remote_read, self.remote_written


def acts(trace: Trace) -> dict[str, dict[int, Act]]:
    """What each rank did in each phase, by name and rank, in order of their first operation."""
    found: dict[str, dict[int, Act]] = {}

    table = Table(lane for lane in trace.lanes if lane.start != UNKNOWN)
    spans, phases = phase_spans(table)
    for op, phase in zip(table.operations, phases.tolist(), strict=True):
        if phase < 0:
            continue
        name, rank = spans[phase].name, op.lane.rank
        act = found.setdefault(name, {}).get(rank)
        if act is None:
            act = found[name][rank] = Act(op.begun, op.begun)
        act.start, act.end = min(act.start, op.begun), max(act.end, op.end, op.begun)
        if op.kind not in ("phase", "notify", "wait", "sync_all", "fence", "drain", "create"):
            act.kinds[op.kind] += 1
        if op.peer not in (None, rank) and op.drained != UNKNOWN and op.kind != "notify":
            if op.pipe == "MTE2":
                act.remote_read += op.nbytes
            else:
                act.remote_written += op.nbytes

    return found


@dataclass
class Barrier:
    """The k-th run of consecutive waits of every core.

    Attributes:
        waits: all its waits.
        longest: by rank, the wait that took most of its time.
        waited: by rank, time in waits, summed over its cores, ps.
    """

    number: int
    waits: list[Operation] = field(default_factory=list)
    waited: Counter = field(default_factory=Counter)
    longest: dict[int, Operation] = field(default_factory=dict)

    def add(self, op: Operation) -> None:
        """One more wait."""
        rank = op.lane.rank
        self.waits.append(op)
        self.waited[rank] += max(op.end, op.start) - op.start
        before = self.longest.get(rank)
        if before is None or _length(op) > _length(before):
            self.longest[rank] = op

    @property
    def start(self) -> int:
        """When the first rank came."""
        return min(op.begun for op in self.waits)

    @property
    def end(self) -> int:
        """When the last rank went on; None if somebody still waits."""
        return max(max(op.end, op.start) for op in self.waits)

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


def barriers(trace: Trace) -> list[Barrier]:
    """The barriers of a run, in the order in which each core meets them."""
    found: list[Barrier] = []
    cores: dict[tuple[int, int], list] = {}
    for lane in trace.lanes:
        if lane.start != UNKNOWN:
            cores.setdefault((lane.rank, lane.core), []).append(lane)
    for lanes in cores.values():
        number = 0
        for lane in sorted(lanes, key=lambda lane: (lane.start, lane.index)):
            waiting = False
            for op in lane.operations:
                if op.kind == "wait":
                    number += not waiting
                    waiting = True
                    while len(found) < number:
                        found.append(Barrier(len(found) + 1))
                    found[number - 1].add(op)
                elif op.kind not in _TRANSPARENT:
                    waiting = False
    return found


@dataclass
class PathPart:
    """A stretch of the critical path on one rank at one line; times in the clock's ps."""

    rank: int
    kind: str
    site: Site | None
    start: int
    end: int
    spent: Counter = field(default_factory=Counter)
    operations: dict[Operation, None] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """``3 remote_load from ranks 1..3``."""
        number = len(self.operations)
        text = f"{number} {self.kind}" if number > 1 else self.kind
        peers = sorted({op.peer for op in self.operations if op.peer not in (None, self.rank)})
        if not peers:
            return text
        towards = all(op.pipe == "MTE2" for op in self.operations)
        return f"{text} {'from' if towards else 'to'} {ranks_text(peers)}"


def path_parts(trace: Trace) -> list[PathPart]:
    """The critical path in order of time, cut where the rank, the line or the operation changes."""
    parts: list[PathPart] = []
    for step in walk(trace):
        op = step.op
        site = resolve_site(op.site) if op is not None and op.site is not None else None
        kind = "launch" if op is None else op.kind
        last = parts[-1] if parts else None
        if last is None or (last.rank, last.kind, last.site) != (step.lane.rank, kind, site):
            last = PathPart(step.lane.rank, kind, site, step.start, step.end)
            parts.append(last)
        last.end = step.end
        if op is not None:
            last.operations[op] = None
        last.spent[group_of(step.spent_on)] += step.end - step.start
    return parts


@dataclass
class Publication:
    """A notify that left while an earlier write of its core could not be seen yet (explicit fences).

    Attributes:
        drained: the write's bytes had left the core when the notify left.
        late_ps: how long after the notify had left the write became visible.
        missed_ps: how long after the notify was applied it did; negative if it came in time.
    """

    rank: int
    write: Operation
    notify: Operation
    drained: bool
    late_ps: int
    missed_ps: int


def publications(trace: Trace) -> Iterator[Publication]:
    """All pairs of a notify and an earlier write of its core that was not visible when the notify left."""
    for lane in trace.lanes:
        open_writes: list[Operation] = []
        for op in lane.operations:
            if op.writes:
                open_writes.append(op)
            elif op.kind == "notify" and op.start != UNKNOWN:
                open_writes = [w for w in open_writes if w.visible == UNKNOWN or w.visible > op.start]
                for write in open_writes:
                    if write.visible != UNKNOWN:
                        yield Publication(
                            lane.rank, write, op, write.drained <= op.start, write.visible - op.start,
                            write.visible - op.applied,
                        )  # fmt: skip
