"""The one rule of a barrier: where a core stops for others.

A barrier is a maximal run of consecutive waits of one core within one dispatch, with nothing between them but
phase markers, fences, drains and device barriers (``sync_all``, itself no wait). A notify, a move or a
computation between two waits makes them two barriers: what it publishes or needs may depend on the first.
"""

from __future__ import annotations

from collections.abc import Iterable

from a2a3sim.models.operation import Lane, Operation
from a2a3sim.trace.kinds import KINDS

__all__ = ["barrier_count", "by_core", "waits_of"]

_TRANSPARENT = frozenset(kind.name for kind in KINDS.values() if kind.transparent)
_WAITS = frozenset(kind.name for kind in KINDS.values() if kind.waits)


def by_core(lanes: Iterable[Lane]) -> list[list[Lane]]:
    """The lanes of each core in order of their start; cores by rank and number."""
    cores: dict[tuple[int, int], list[Lane]] = {}
    for lane in sorted(lanes, key=lambda lane: (lane.start, lane.index)):
        cores.setdefault((lane.rank, lane.core), []).append(lane)
    return [cores[key] for key in sorted(cores)]


def waits_of(lane: Lane) -> list[list[Operation]]:
    """The barriers of one lane in program order, each as its waits."""
    found: list[list[Operation]] = []
    waiting = False
    for op in lane.operations:
        kind = op.kind
        if kind in _WAITS:
            if not waiting:
                found.append([])
                waiting = True
            found[-1].append(op)
        elif waiting and kind not in _TRANSPARENT:
            waiting = False
    return found


def barrier_count(lanes: Iterable[Lane]) -> int:
    """The barriers of the core that has most of them."""
    return max((sum(len(waits_of(lane)) for lane in core) for core in by_core(lanes)), default=0)
