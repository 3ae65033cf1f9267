"""What a notify published, and what it left before it could be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from a2a3sim.models.operation import UNKNOWN, Operation
from a2a3sim.trace.kinds import kind_of
from a2a3sim.trace.record import Trace

__all__ = ["Publication", "publications"]


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
            elif kind_of(op.kind).notifies and op.start != UNKNOWN:
                open_writes = [w for w in open_writes if w.visible == UNKNOWN or w.visible > op.start]
                for write in open_writes:
                    if write.visible != UNKNOWN:
                        yield Publication(
                            lane.rank, write, op, write.drained <= op.start, write.visible - op.start,
                            write.visible - op.applied,
                        )  # fmt: skip
