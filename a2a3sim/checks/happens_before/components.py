"""Which threads share a component of the vector clocks: those that certainly follow one another on a rank.

A device works off its kernels one at a time, but only declared tensor directions *order* them. Kernels that
are not ordered by any are threads of their own, however the run happened to place them in time.
"""

from __future__ import annotations

from collections.abc import Iterable

from a2a3sim.checks.happens_before.events import ThreadSpec

__all__ = ["components"]


def components(threads: list[ThreadSpec], edges: Iterable[tuple[int, int]]) -> tuple[list[int], int]:
    """Each thread's component: that of an earlier thread of its rank which is over before it starts, if any.

    Returns:
        The components of the threads, and how many there are.
    """
    before: dict[int, list[int]] = {}
    for earlier, later in edges:
        before.setdefault(later, []).append(earlier)
    tails: list[tuple[int, int]] = []  # per component: core and group of its last thread
    of_rank: dict[int, list[int]] = {}
    columns = []
    for t in threads:
        mine = of_rank.setdefault(t.rank, [])
        over = _among(before, t.group, {tails[c][1] for c in mine} - {t.group})
        free = [c for c in mine if tails[c][1] in over]
        same = [c for c in free if tails[c][0] == t.core]
        if free:
            column = same[0] if same else free[0]
            tails[column] = (t.core, t.group)
        else:
            column = len(tails)
            tails.append((t.core, t.group))
            mine.append(column)
        columns.append(column)
    return columns, len(tails)


def _among(before: dict[int, list[int]], group: int, wanted: set[int]) -> set[int]:
    """Which of some groups come before a group, found walking back until all are."""
    found: set[int] = set()
    seen: set[int] = set()
    edge = list(before.get(group, ()))
    while edge and len(found) < len(wanted):
        earlier: list[int] = []
        for g in edge:
            if g not in seen:
                seen.add(g)
                if g in wanted:
                    found.add(g)
                earlier += before.get(g, ())
        edge = earlier
    return found
