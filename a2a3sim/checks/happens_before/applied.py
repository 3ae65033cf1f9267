"""Which updates are certain to be applied before a given point.

Issued before is not applied before: a relay over two hops may overtake a slow credit. An update is applied
for certain if it is the target rank's own; if its thread is known to be over; or if a wait of the target
rank could not have ended without it or a later update of the same core, since those arrive in order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from a2a3sim.checks.happens_before.events import Order, Update, Wait
from a2a3sim.checks.happens_before.execution import Execution

__all__ = ["Applied"]


class _Facts:
    """What one thread's waits say about one writer: up to which update its notifies are then applied."""

    __slots__ = ("posts", "tops", "waits")

    def __init__(self) -> None:
        self.posts: list[int] = []
        self.waits: list[int] = []
        self.tops: list[int] = []


class Applied:
    """The relation, under the clocks of the moment."""

    def __init__(self, execution: Execution, clocks: Order) -> None:
        self.execution = execution
        self.clocks = clocks
        self._facts: dict[int, dict[int, list[tuple[int, _Facts]]]] = {}
        self._slots: dict[int, list[tuple[int, _Facts, int]]] = {}

    def watch(self, rank: int) -> dict[int, list[tuple[int, _Facts]]]:
        """Collect what the waits of a rank say: writer → (waiting thread, facts)."""
        found = self._facts.get(rank)
        if found is None:
            found = self._facts[rank] = {}
            for column in self.execution.columns_of_rank.get(rank, ()):
                facts: dict[int, _Facts] = {}
                for wait in self.execution.waits_of[column]:
                    if not wait.done:
                        continue
                    slots = self._slots[wait.index] = []
                    for writer in wait.cell.by:
                        if writer == column:
                            continue
                        fact = facts.get(writer)
                        if fact is None:
                            fact = facts[writer] = _Facts()
                            found.setdefault(writer, []).append((column, fact))
                        slots.append((writer, fact, len(fact.posts)))
                        fact.posts.append(self.execution.segment_of[wait.row])
                        fact.waits.append(wait.index)
                        fact.tops.append(-1)
                    self.record(wait)
        return found

    def record(self, wait: Wait) -> None:
        """A wait's needs have been computed (again), after those of all earlier waits of its thread."""
        for writer, fact, k in self._slots.get(wait.index, ()):
            top = wait.needs.get(writer, -1)
            if k and fact.tops[k - 1] > top:
                top = fact.tops[k - 1]
            fact.tops[k] = top

    def before(self, update: Update, clock: np.ndarray, wait: Wait | None = None) -> bool:
        """Is the update applied at a point with this clock?

        Args:
            wait: the point is just before this wait of its thread.
        """
        column = update.column
        cell = update.cell
        if update.plain or self.execution.rank_of[column] == cell.rank:
            return bool(clock[column] >= self.clocks.segment_of[update.row])
        end = update.thread.end_segment
        if end is not None and clock[column] >= end:
            return True
        for reader, fact in self.watch(cell.rank).get(column, ()):
            if wait is not None and reader == wait.column:
                k = bisect_left(fact.waits, wait.index) - 1
            else:
                k = bisect_right(fact.posts, clock[reader]) - 1
            if k >= 0 and fact.tops[k] >= update.index:
                return True
        return False

    def pair(self, first: Update, second: Update) -> bool:
        """Is ``first`` applied before ``second`` on every schedule?"""
        if first.column == second.column:
            return first.index < second.index
        return self.before(first, self.clocks.matrix[second.row])
