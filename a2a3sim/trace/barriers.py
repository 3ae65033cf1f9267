"""The one rule of a barrier: where a core stops for others.

A barrier is a maximal run of consecutive waits of one core within one dispatch, with nothing between them but
phase markers, fences, drains and device barriers (``sync_all``, itself no wait). A notify, a move or a
computation between two waits makes them two barriers: what it publishes or needs may depend on the first.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from a2a3sim.models.operation import Lane, Operation
from a2a3sim.trace.kinds import KINDS
from a2a3sim.trace.table import Table, summed

__all__ = ["barrier_count", "waits_of"]

_TRANSPARENT = frozenset(kind.name for kind in KINDS.values() if kind.transparent)
_WAITS = frozenset(kind.name for kind in KINDS.values() if kind.waits)


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
