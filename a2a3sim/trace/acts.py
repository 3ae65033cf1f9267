"""What each rank did in each phase: how many operations of which kind, how many bytes of whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from a2a3sim.models.operation import UNKNOWN
from a2a3sim.trace.kinds import kind_of, remote, side
from a2a3sim.trace.phases import phase_spans
from a2a3sim.trace.record import Trace

__all__ = ["Act", "acts"]


@dataclass
class Act:
    """One rank's part in one phase; times in the clock's ps."""

    start: int
    end: int
    kinds: Counter[str] = field(default_factory=Counter)
    remote_read: int = 0
    remote_written: int = 0

    @property
    def deeds(self) -> tuple[tuple[tuple[str, int], ...], int, int]:
        """What was done, whenever it was: equal for ranks that did the same."""
        return tuple(self.kinds.items()), self.remote_read, self.remote_written


def acts(trace: Trace) -> dict[str, dict[int, Act]]:
    """What each rank did in each phase, by name and rank, in order of their first operation."""
    found: dict[str, dict[int, Act]] = {}
    table = trace.table
    spans, phases = phase_spans(table)
    for op, phase in zip(table.operations, phases.tolist(), strict=True):
        if phase < 0:
            continue
        name, rank = spans[phase].name, op.lane.rank
        act = found.setdefault(name, {}).get(rank)
        if act is None:
            act = found[name][rank] = Act(op.begun, op.begun)
        act.start, act.end = min(act.start, op.begun), max(act.end, op.end, op.begun)
        kind = kind_of(op.kind)
        if kind.moves or kind.vector:
            act.kinds[op.kind] += 1
        if kind.moves and remote(op) and op.drained != UNKNOWN:
            if side(op) == "read":
                act.remote_read += op.nbytes
            else:
                act.remote_written += op.nbytes
    return found
