"""Vector clocks under guaranteed happens-before, one per segment.

Event e happens before x if x cannot happen in any schedule in which e is withheld. The relation is the
greatest that satisfies the rule for waits (`a2a3sim.checks.happens_before.guarantee`), found from above: the first pass
leaves out updates that the walk has not come to, each later pass takes their clocks from the pass before,
and clocks only shrink until nothing changes.
"""

from __future__ import annotations

import numpy as np

from a2a3sim.checks.happens_before.applied import Applied
from a2a3sim.checks.happens_before.events import Acquired, Wait
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.happens_before.guarantee import settle
from a2a3sim.checks.happens_before.schedule import sources_of, walk

__all__ = ["Clocks"]


class Clocks:
    """``matrix[row]``: up to which segment of each component all happens before the row's own segment."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.solvers, self.covered = settle(execution)
        plan = [sources_of(execution, row) for row in range(len(execution.column_of))]
        order, position = walk(execution, plan)
        self.position = np.array(position, np.int64)
        self.column_of = np.array(execution.column_of, np.int64)
        self.segment_of = execution.segment_of
        longest = max((len(rows) for rows in execution.rows_of), default=0)
        kind = np.int16 if longest < 32000 else np.int32
        self._never = np.iinfo(kind).max
        self.matrix = np.zeros((len(plan), execution.columns), kind)
        self.applied = Applied(execution, self)
        self.first = True
        self.passes = 0
        self._run(order, plan)

    def _run(self, order: list[int], plan: list[tuple[list[int], list[Wait]]]) -> None:
        repeated = bool(self.solvers)
        if repeated:
            self.matrix[:] = self._never
            for solver in self.solvers:
                if not solver.by_sum:
                    self.applied.watch(solver.cell.rank)
        changed = True
        while changed:
            for solver in self.solvers:
                solver.begin(self)
            changed = self._sweep(order, plan, repeated)
            self.passes += 1
            self.first = False
        # Clocks shrink from pass to pass, so this ends; the first pass always "changes".

    def _sweep(self, order: list[int], plan: list[tuple[list[int], list[Wait]]], repeated: bool) -> bool:
        execution, matrix = self.execution, self.matrix
        column_of, segment_of, rows_of = execution.column_of, execution.segment_of, execution.rows_of
        maximum, reduce = np.maximum, np.maximum.reduce
        changed = self._moved = False
        for row in order:
            sources, waits = plan[row]
            column, segment = column_of[row], segment_of[row]
            if repeated:
                clock = self._joined(row, waits)
                clock[column] = segment
                if not np.array_equal(clock, matrix[row]):
                    changed = True
                    matrix[row] = clock
                continue
            clock = matrix[row]
            if segment > 1:
                previous = rows_of[column][segment - 2]
                if not sources:
                    clock[:] = matrix[previous]
                elif len(sources) == 1:
                    maximum(matrix[previous], matrix[sources[0]], out=clock)
                else:
                    reduce(matrix[[previous, *sources]], axis=0, out=clock)
            elif sources:
                reduce(matrix[sources], axis=0, out=clock)
            clock[column] = segment
        return repeated and (changed or self._moved)

    def _joined(self, row: int, waits: list[Wait]) -> np.ndarray:
        """A segment's clock from what it acquires, wait by wait."""
        matrix, applied = self.matrix, self.applied
        clock = self._previous(row)
        if not waits:
            sources: list[int] = []
            for acquired in self.execution.acquires_of[row]:
                if isinstance(acquired, Wait):
                    applied.record(acquired)
                    if acquired.source >= 0:
                        sources.append(acquired.source)
                elif isinstance(acquired, int):
                    sources.append(acquired)
                else:
                    sources += acquired
            if sources:
                np.maximum(clock, matrix[sources].max(axis=0), out=clock)
            return clock
        for acquired in self.execution.acquires_of[row]:
            if isinstance(acquired, Wait) and acquired.solver is not None:
                needs = acquired.needs
                acquired.solver.solve(acquired, self, clock)
                if acquired.needs != needs:
                    self._moved = True
            self._join(clock, acquired)
            if isinstance(acquired, Wait):
                applied.record(acquired)
        return clock

    def _previous(self, row: int) -> np.ndarray:
        segment = self.segment_of[row]
        if segment == 1:
            return np.zeros(self.matrix.shape[1], self.matrix.dtype)
        clock: np.ndarray = self.matrix[self.execution.rows_of[self.execution.column_of[row]][segment - 2]]
        return clock.copy()

    def _join(self, clock: np.ndarray, acquired: Acquired) -> None:
        matrix = self.matrix
        if isinstance(acquired, Wait):
            if acquired.source >= 0:
                np.maximum(clock, matrix[acquired.source], out=clock)
            elif acquired.gain is not None:
                np.maximum(clock, acquired.gain, out=clock)
        elif isinstance(acquired, int):
            np.maximum(clock, matrix[acquired], out=clock)
        elif acquired:
            np.maximum(clock, matrix[acquired].max(axis=0), out=clock)

    def just_before(self, wait: Wait) -> np.ndarray:
        """The clock of a wait's thread just before the wait."""
        clock = self._previous(wait.row)
        for acquired in self.execution.acquires_of[wait.row]:
            if acquired is wait:
                break
            self._join(clock, acquired)
        return clock
