"""The critical path in stretches that people can follow: by rank, line and operation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from a2a3sim.models.operation import Operation
from a2a3sim.trace.critical_path import group_of, walk
from a2a3sim.trace.kinds import side
from a2a3sim.trace.record import Site, Trace, resolve_site

__all__ = ["PathPart", "path_parts"]


@dataclass
class PathPart:
    """A stretch of the critical path on one rank at one line; times in the clock's ps."""

    rank: int
    kind: str
    site: Site | None
    start: int
    end: int
    spent: Counter[str] = field(default_factory=Counter)
    operations: dict[Operation, None] = field(default_factory=dict)

    @property
    def peers(self) -> list[int]:
        """The other ranks at the ends of its operations."""
        return sorted({op.peer for op in self.operations if op.peer is not None and op.peer != self.rank})

    @property
    def reads(self) -> bool:
        """All its operations bring bytes to the core."""
        return all(side(op) == "read" for op in self.operations)


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
