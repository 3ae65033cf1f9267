"""Equal numbers of a kept trace as one object each: cores that do the same at the same time share their times."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from inspect import ismemberdescriptor
from typing import Any

from a2a3sim.models.operation import Lane, Move, Signal, Vector

__all__ = ["share_equal"]

_NUMBERS = ("seq", "begun", "issued", "start", "drained", "visible", "end", "applied", "order", "cell")


def share_equal(lanes: Iterable[Lane]) -> None:
    """Replace equal times, numbers and cells of operations by one object; done once, after a run."""
    known: dict[Any, Any] = {}
    for lane in lanes:
        for made in (Move, Vector, Signal):
            own = [op for op in lane.operations if type(op) is made]
            for name in _NUMBERS:
                slot: Any = getattr(made, name)
                if ismemberdescriptor(slot):  # without bytecodes for each
                    values = list(map(slot.__get__, own))
                    deque(map(slot.__set__, own, map(known.setdefault, values, values)), 0)
