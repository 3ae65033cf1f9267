"""One order of all segments in which every wait finds what it needs, to compute clocks along.

Any order that some schedule could have produced will do. The verdict does not depend on which.
"""

from __future__ import annotations

from a2a3sim.checks.happens_before.events import Update, Wait
from a2a3sim.checks.happens_before.execution import Execution

__all__ = ["sources_of", "walk"]


def sources_of(execution: Execution, row: int) -> tuple[list[int], list[Wait]]:
    """The segments whose clocks a segment acquires, and the waits before it that need clocks to tell."""
    sources: list[int] = []
    open_waits: list[Wait] = []
    for acquired in execution.acquires_of[row]:
        if isinstance(acquired, Wait):
            if acquired.source >= 0:
                sources.append(acquired.source)
            elif acquired.solver is not None:
                open_waits.append(acquired)
        elif isinstance(acquired, int):
            sources.append(acquired)
        else:
            sources.extend(acquired)
    return sources, open_waits


class _Scheduler:
    """Threads run as far as they can; one that cannot go on is woken by what it lacks."""

    def __init__(self, execution: Execution, plan: list[tuple[list[int], list[Wait]]]) -> None:
        self.execution = execution
        self.plan = plan
        self.position = [-1] * len(plan)
        self.order: list[int] = []
        self.next = [0] * execution.columns
        self.on_row: dict[int, list[int]] = {}
        self.on_cell: dict[int, list[int]] = {}
        self.forced = False
        self.sums: dict[int, int] = {}  # cells with solvers: sum of the updates walked so far
        self.updates: dict[int, list[Update]] = {}  # row -> updates of such cells
        self.applied: dict[int, list[Update]] = {}  # cells with Sets: updates in the observed order
        self.seen: dict[tuple[int, int], int] = {}
        for waits in execution.waits_of:
            for wait in waits:
                cell = wait.cell
                if wait.solver is None or id(cell) in self.sums:
                    continue
                self.sums[id(cell)] = cell.start
                for update in cell.updates():
                    self.updates.setdefault(update.row, []).append(update)
                self.applied[id(cell)] = sorted(cell.updates(), key=lambda u: (u.when, u.index))

    def run(self) -> tuple[list[int], list[int]]:
        ready = list(range(self.execution.columns))[::-1]
        total = len(self.plan)
        while len(self.order) < total:
            while ready:
                self.advance(ready.pop(), ready)
            if len(self.order) < total:
                # Only ties in the observed times can hold everybody up: let the earliest pass.
                self.forced = True
                waiting = [
                    c for c in range(self.execution.columns) if self.next[c] < len(self.execution.rows_of[c])
                ]
                self.advance(min(waiting, key=self._time), ready)
                self.forced = False
                ready.extend(c for c in reversed(waiting) if c not in ready)
        return self.order, self.position

    def _time(self, column: int) -> tuple[int, int]:
        row = self.execution.rows_of[column][self.next[column]]
        whens = [a.when for a in self.execution.acquires_of[row] if isinstance(a, Wait)]
        return (max(whens, default=0), column)

    def advance(self, column: int, ready: list[int]) -> None:
        rows = self.execution.rows_of[column]
        while self.next[column] < len(rows):
            row = rows[self.next[column]]
            if not self._free(row, column) and not self.forced:
                return
            self.forced = False
            self.position[row] = len(self.order)
            self.order.append(row)
            self.next[column] += 1
            woken = self.on_row.pop(row, None)
            if woken:
                ready.extend(woken)
            for update in self.updates.get(row, ()):
                cell = id(update.cell)
                self.sums[cell] += update.value or 0
                woken = self.on_cell.pop(cell, None)
                if woken:
                    ready.extend(woken)

    def _free(self, row: int, column: int) -> bool:
        sources, waits = self.plan[row]
        position = self.position
        for source in sources:
            if position[source] < 0:
                self.on_row.setdefault(source, []).append(column)
                return False
        for wait in waits:
            if not wait.done:
                continue
            cell = wait.cell
            if wait.solver is not None and wait.solver.by_sum:
                if self.sums[id(cell)] < wait.value:
                    self.on_cell.setdefault(id(cell), []).append(column)
                    return False
                continue
            applied = self.applied[id(cell)]
            key = (id(cell), column)
            k = self.seen.get(key, 0)
            while k < len(applied) and applied[k].when <= wait.when:
                update = applied[k]
                if position[update.row] < 0 and update.column != column:
                    self.on_row.setdefault(update.row, []).append(column)
                    return False
                k += 1
                self.seen[key] = k
        return True


def walk(execution: Execution, plan: list[tuple[list[int], list[Wait]]]) -> tuple[list[int], list[int]]:
    """All segments in a possible order, and the place of each in it.

    Args:
        plan: per segment, what `sources_of` gives.
    """
    return _Scheduler(execution, plan).run()
