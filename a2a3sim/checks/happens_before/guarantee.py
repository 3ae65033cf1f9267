"""What a wait guarantees: the credits without which its predicate could not have become true.

A wait acquires, per component, the need-th smallest clock among the updates of its cell that do not come
after it. With one writer whose updates only raise the cell that is the clock of the need-th update, known
without any clocks (`settle`); with several writers of Adds it is an order statistic (`Tally`); Sets,
negative adds and plain writes go to `a2a3sim.checks.happens_before.epochs`.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

import numpy as np

from a2a3sim.checks.happens_before.epochs import Epochs, weighted_statistic
from a2a3sim.checks.happens_before.events import Cell, Order, Solver, Wait
from a2a3sim.checks.happens_before.execution import Execution

__all__ = ["Tally", "own_sum", "settle"]


def own_sum(wait: Wait) -> int:
    """Sum of what a wait's own thread added to the cell before (only for cells without Sets)."""
    if not wait.own:
        return 0
    cell, column = wait.cell, wait.column
    sums = cell.own_sums.get(column)
    if sums is None:
        sums = cell.own_sums[column] = [0, *accumulate(u.value or 0 for u in cell.by[column])]
    return sums[wait.own]


def _profile(cell: Cell, column: int) -> tuple[str, list[int]] | None:
    """The values that one writer alone gives the cell, as ('sums' or 'values', list); None if they fall."""
    updates = cell.by[column]
    if not cell.replaced or not any(u.replaces for u in updates):
        given = [u.value or 0 for u in updates]
        return None if min(given) < 0 else ("sums", list(accumulate(given)))
    values, value = [], cell.start
    for update in updates:
        step = update.value or 0
        after = step if update.replaces else value + step
        if after < value:
            return None
        values.append(after)
        value = after
    return ("values", values)


def settle(execution: Execution) -> tuple[list[Solver], list[Wait]]:
    """Give every wait its source segment or its solver.

    Returns:
        The solvers, and the waits that ask for no more than earlier waits on the cell needed.
    """
    solvers: list[Solver] = []
    covered: list[Wait] = []
    for cell in execution.cells.values():
        if not cell.waits or not cell.by:
            continue
        by = cell.by
        fresh, first_level = cell.fresh, cell.fresh
        if cell.carried is not None:
            first_level = cell.carried
        level = cell.level
        shared: dict[int, Solver] = {}
        single = next(iter(by)) if len(by) == 1 else None
        for wait in cell.waits:
            column = wait.column
            if single is not None:
                if single == column and not cell.plain:
                    continue
                writer: int | None = single
            else:
                others = [q for q in by if q != column]
                writer = others[0] if len(others) == 1 else None
            profile = None
            if writer is not None and not cell.plain:
                if writer not in cell.profiles:
                    cell.profiles[writer] = _profile(cell, writer)
                profile = cell.profiles[writer]
            if profile is not None and profile[0] == "values" and wait.own:
                profile = None
            if writer is None or profile is None or (wait.own and cell.replaced):
                solver = shared.get(column)
                if solver is None:
                    simple = (
                        writer is None and not cell.plain and not cell.replaced and _only_rise(cell, column)
                    )
                    solver = shared[column] = Tally(cell, column) if simple else Epochs(cell, column)
                    solvers.append(solver)
                wait.solver = solver
                if not solver.by_sum:
                    continue  # what such a wait needs beyond earlier ones is told with its clocks
                asked = wait.value - own_sum(wait)
            else:
                kind, values = profile
                asked = wait.value - (own_sum(wait) if kind == "sums" else 0)
                need = asked - cell.start if kind == "sums" else asked
                if need > 0 if kind == "sums" else cell.start < asked:
                    k = bisect_left(values, need)
                    if k < len(values) and (values[k] == need or not wait.equal):
                        update = by[writer][k]
                        wait.source = update.row
                        wait.needs = {writer: update.index}
            reached = level.get(column, first_level)
            if asked > reached:
                if wait.done:
                    level[column] = asked
            elif asked > fresh and wait.value > fresh:
                covered.append(
                    wait
                )  # unless it asks for nothing, or for nothing beyond what was taken off again
    return solvers, covered


def _only_rise(cell: Cell, column: int) -> bool:
    return all((u.value or 0) >= 0 for q, updates in cell.by.items() if q != column for u in updates)


class Tally:
    """Waits of one thread on a cell to which several others add: the need-th smallest clock per component."""

    by_sum = True  # such a wait can end once the sum of updates has reached its value

    def __init__(self, cell: Cell, column: int) -> None:
        self.cell = cell
        self.column = column
        self.writers = [q for q in cell.by if q != column]
        rows, values, before, writer, index = [], [], [], [], []
        for k, q in enumerate(self.writers):
            total = 0
            for update in cell.by[q]:
                if update.value:
                    rows.append(update.row)
                    values.append(update.value)
                    before.append(total)
                    writer.append(k)
                    index.append(update.index)
                    total += update.value
        self.rows = np.array(rows, np.int64)
        self.values = np.array(values, np.int64)
        self.before = np.array(before, np.int64)
        self.writer = np.array(writer, np.int64)
        self.index = np.array(index, np.int64)
        self.weight = values[0] if len(set(values)) == 1 else 0

    def begin(self, clocks: Order) -> None:
        """A new pass: which updates come after a wait is judged by the clocks of the pass before."""
        self.first = clocks.first
        key = clocks.position[self.rows] if self.first else clocks.matrix[self.rows, self.column]
        self.order = np.argsort(key, kind="stable")
        self.keys = key[self.order]
        self.open = np.ones(len(key), bool)  # not known applied through an earlier wait of this thread
        self.low = 0
        self.known = 0
        self.known_of = np.zeros(len(self.writers), np.int64)

    def solve(self, wait: Wait, clocks: Order, before: np.ndarray) -> None:
        """Set the clock that the wait acquires and the updates it cannot do without."""
        wait.gain, wait.needs = None, {}
        need = wait.value - self.cell.start - own_sum(wait) - self.known
        if need <= 0:
            return
        bound = clocks.position[wait.row] if self.first else clocks.segment_of[wait.row]
        high = int(np.searchsorted(self.keys, bound))
        candidates = self.order[self.low : high]
        candidates = candidates[self.open[candidates]]
        values = self.values[candidates]
        total = int(values.sum())
        if total < need:
            return
        stack = clocks.matrix[self.rows[candidates]]
        if total == need:
            wait.gain = stack.max(axis=0)
        elif self.weight:
            k = -(-need // self.weight) - 1
            wait.gain = np.partition(stack, k, axis=0)[k]
        else:
            wait.gain = weighted_statistic(stack, values, need)
        # An update is needed itself if all the others, less its writer's later ones, stay below need.
        writer = self.writer[candidates]
        spare = np.bincount(writer, weights=values, minlength=len(self.writers)).astype(np.int64) - (
            total - need
        )
        needed = self.before[candidates] - self.known_of[writer] < spare[writer]
        if needed.any():
            taken = candidates[needed]
            self.open[taken] = False
            self.known += int(self.values[taken].sum())
            np.add.at(self.known_of, self.writer[taken], self.values[taken])
            last = np.full(len(self.writers), -1, np.int64)
            np.maximum.at(last, self.writer[taken], self.index[taken])
            wait.needs = {self.writers[k]: int(last[k]) for k in np.flatnonzero(last >= 0)}
            while self.low < high and not self.open[self.order[self.low]]:
                self.low += 1
