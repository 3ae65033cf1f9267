"""Cells that do not only rise: Sets, plain writes, negative adds of other cores, sums told apart exactly.

Sets cut a cell's history into epochs. If every Set is ordered with every other update, the oldest epoch in
which the predicate can become true says what a wait guarantees; if not, it guarantees nothing.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from a2a3sim.checks.happens_before.events import Cell, Order, Relation, Update, Wait

__all__ = ["Epoch", "Epochs", "weighted_statistic"]


class Epoch:
    """A Set (or the start value) and the adds up to the next: ``base`` counts those known to be applied."""

    __slots__ = ("base", "opening", "rest")

    def __init__(self, opening: Update | None, base: int | None) -> None:
        self.opening = opening
        self.base = base  # None: unknown, by a plain write
        self.rest: dict[int, list[Update]] = {}  # writer -> adds that may or may not be applied

    def total(self) -> int | None:
        """The value at the end of the epoch."""
        total = self.base
        for updates in self.rest.values():
            for update in updates:
                if total is None or update.value is None:
                    return None
                total += update.value
        return total


class Epochs:
    """The waits of one thread on one such cell."""

    by_sum = False  # when such a wait ended is read off the observed order

    def __init__(self, cell: Cell, column: int) -> None:
        self.cell = cell
        self.column = column
        self.others = {q: updates for q, updates in cell.by.items() if q != column}
        self.own = cell.by.get(column, [])

    def begin(self, _clocks: Order) -> None:
        """A new pass: forget which epochs are over."""
        self.opening: Update | None = None
        self.start_at: dict[int, int] = {}

    def solve(self, wait: Wait, clocks: Order, before: np.ndarray) -> None:
        """Set the clock that the wait acquires and the updates it cannot do without.

        Args:
            before: the thread's clock just before the wait.
        """
        wait.gain, wait.needs, wait.by_data = None, {}, False
        epochs = self.epochs(wait, clocks, before)
        for epoch in epochs or ():
            if self._from(epoch, wait, clocks):
                opening = epoch.opening
                known = opening is not None and opening.plain and epoch.base is not None
                wait.by_data = known and not wait.needs
                if opening is not None and opening.column != self.column:
                    clock = clocks.matrix[opening.row]
                    wait.gain = clock.copy() if wait.gain is None else np.maximum(wait.gain, clock)
                    wait.needs[opening.column] = max(wait.needs.get(opening.column, -1), opening.index)
                return

    # ---- the history of the cell, as far as it can matter to a wait ---------------------------------

    def epochs(self, wait: Wait, clocks: Order, before: np.ndarray) -> list[Epoch] | None:
        """The epochs in which the wait may end, oldest first; None if a Set is unordered."""
        matrix, column, applied = clocks.matrix, self.column, clocks.applied
        post = clocks.segment_of[wait.row]
        items: list[tuple[Update, bool]] = []
        for q, updates in self.others.items():
            low = self.start_at.get(q, 0)
            high = bisect_left(updates, post, low, key=lambda u: matrix[u.row, column])
            known = bisect_left(updates, True, low, high, key=lambda u: not applied.before(u, before, wait))
            items += [(u, k < known) for k, u in enumerate(updates[low:high], low)]
        items += [(u, True) for u in self.own[self.start_at.get(column, 0) : wait.own]]
        opening = self.opening
        if self.cell.replaced or self.cell.plain:
            position = clocks.position
            items.sort(key=lambda item: (position[item[0].row], item[0].index))
            last = max((k for k, (u, known) in enumerate(items) if known and u.replaces), default=-1)
            if last >= 0:
                opening = items[last][0]
                ordered = all(applied.pair(u, opening) for u, _ in items[:last])
                if not ordered or not all(applied.pair(opening, u) for u, _ in items[last + 1 :]):
                    return None
                for u, _ in items[: last + 1]:
                    self.start_at[u.column] = self.start_at.get(u.column, 0) + 1
                self.opening = opening
                items = items[last + 1 :]
            if not _in_order(opening, [u for u, _ in items], applied):
                return None
        else:
            given = sum(v for u, known in items if known and ((v := u.value or 0) < 0 or u.column == column))
            wait.asked = wait.value - given
        epochs = [Epoch(opening, self.cell.start if opening is None else opening.value)]
        for update, known in items:
            if update.replaces:
                epochs.append(Epoch(update, update.value))
            elif known and update.value is not None:
                if epochs[-1].base is not None:
                    epochs[-1].base += update.value
            else:
                epochs[-1].rest.setdefault(update.column, []).append(update)
        return epochs

    # ---- one epoch ----------------------------------------------------------------------------------

    def _from(self, epoch: Epoch, wait: Wait, clocks: Order) -> bool:
        """Can the wait end in this epoch? Then set what it acquires from the epoch's adds."""
        if epoch.base is None or wait.holds(epoch.base):
            return True
        need = wait.value - epoch.base
        sign = -1 if need < 0 else 1
        rest = epoch.rest
        if wait.equal and len(rest) == 1:
            return self._exact(next(iter(rest.values())), wait, need, clocks)
        need *= sign
        rises = {q: _rises(updates, sign, need) for q, updates in rest.items()}
        total = sum(sum(r) for r in rises.values())
        if total < need:
            return False
        rows, weights = [], []
        for q, updates in rest.items():
            for update, rise in zip(updates, rises[q], strict=True):
                if rise:
                    rows.append(update.row)
                    weights.append(rise)
        wait.gain = weighted_statistic(clocks.matrix[rows], np.array(weights), need)
        for q, updates in rest.items():
            spare = sum(rises[q]) - (total - need)
            reached = 0
            for update, rise in zip(updates, rises[q], strict=True):
                if reached >= spare:
                    break
                wait.needs[q] = update.index
                reached += rise
        return True

    @staticmethod
    def _exact(updates: list[Update], wait: Wait, need: int, clocks: Order) -> bool:
        """One writer's adds: the first prefix that sums to the need."""
        reached = 0
        for update in updates:
            if update.value is not None:
                reached += update.value
            if update.value is None or reached == need:
                wait.gain = clocks.matrix[update.row].copy()
                wait.needs[update.column] = update.index
                return True
        return False


def _rises(updates: list[Update], sign: int, need: int) -> list[int]:
    """How much each update lifts the running sum above its highest so far."""
    rises, reached, highest = [], 0, 0
    for update in updates:
        if update.value is None:
            rises.append(need)
            continue
        reached += sign * update.value
        rises.append(max(0, reached - highest))
        highest = max(highest, reached)
    return rises


def _in_order(opening: Update | None, updates: list[Update], applied: Relation) -> bool:
    """Is every Set ordered with every other update? Neighbours suffice, since the order is transitive."""
    adds: list[Update] = []
    for update in updates:
        if opening is not None and not applied.pair(opening, update):
            return False
        if update.replaces:
            if not all(applied.pair(add, update) for add in adds):
                return False
            opening, adds = update, []
        else:
            adds.append(update)
    return True


def weighted_statistic(stack: np.ndarray, weights: np.ndarray, need: int) -> np.ndarray:
    """Per column the smallest clock such that the updates with at most that clock weigh at least ``need``."""
    order = np.argsort(stack, axis=0, kind="stable")
    short = np.cumsum(np.asarray(weights)[order], axis=0) < need
    at = np.take_along_axis(order, short.sum(axis=0)[None], 0)
    found: np.ndarray = np.take_along_axis(stack, at, 0)[0]
    return found
