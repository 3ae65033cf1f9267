"""Stretches of time that overlap: what they cover together, and how they fit beside each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["slot_for", "unions"]

T = TypeVar("T")


def unions(spans: Iterable[tuple[int, int, T]]) -> list[tuple[int, int, list[T]]]:
    """Maximal stretches covered by (start, end, what), which come by start, with what lies in each.

    Stretches that only abut stay apart.
    """
    found: list[tuple[int, int, list[T]]] = []
    for start, end, what in spans:
        if found and start < found[-1][1]:
            before, until, members = found[-1]
            members.append(what)
            found[-1] = (before, max(until, end), members)
        else:
            found.append((start, end, [what]))
    return found


def slot_for(free: list[int], start: int, until: int, most: int | None = None) -> int:
    """The first slot that is free at ``start``, taken up to ``until``; a new one if there is none.

    Args:
        free: when each slot becomes free; changed.
        most: slots there may be; beyond, what comes shares the one that is free first.
    """
    slot = next((k for k, time in enumerate(free) if time <= start), len(free))
    if slot == most:
        slot = min(range(most), key=lambda k: (free[k], k))
    free[slot : slot + 1] = [until]
    return slot
