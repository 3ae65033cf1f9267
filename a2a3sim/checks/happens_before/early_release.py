"""Waits that hold nobody back: their need is met by credits that had already served an earlier wait."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from a2a3sim.checks.extent import cell_name
from a2a3sim.checks.happens_before import messages
from a2a3sim.checks.happens_before.clocks import Clocks
from a2a3sim.checks.happens_before.epochs import Epochs
from a2a3sim.checks.happens_before.events import Line, Ref, Update, Wait
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.happens_before.findings import Folder, Severity
from a2a3sim.checks.happens_before.guarantee import own_sum
from a2a3sim.checks.happens_before.races import Accesses
from a2a3sim.checks.happens_before.summary import Message, Summary
from a2a3sim.checks.wording import short_place

__all__ = ["EarlyRelease", "EarlyReleases", "ref_of"]


def ref_of(item: Wait | Update) -> Ref:
    """A wait or an update as it is named in a finding."""
    return Ref(item.thread.rank, item.thread.index, item.index, item.op)


class EarlyRelease:
    """A wait that is met by used credits while updates of its cell are not ordered before it."""

    __slots__ = ("behind", "origin", "race", "update", "wait")

    def __init__(self, wait: Wait, origin: str, unordered: list[Update], clocks: Clocks) -> None:
        self.wait = wait
        self.origin = origin
        self.update = min(unordered, key=lambda u: (u.index, u.column))
        #: What would be ordered before the wait if these updates were.
        self.behind = clocks.matrix[[u.row for u in unordered]].max(axis=0)
        #: Two accesses that race because waits of this line and core end too early.
        self.race: tuple[int, int] | None = None


#: A line of waits; by column of theirs the segments, what waits up to each should know, and the waits.
_Late: TypeAlias = tuple[Line, list[tuple[int, np.ndarray, np.ndarray, list[EarlyRelease]]]]


class EarlyReleases:
    """All of them, and which races they explain."""

    def __init__(self, execution: Execution, clocks: Clocks) -> None:
        self.execution = execution
        self.clocks = clocks
        self.found: list[EarlyRelease] = []
        for wait, origin in self._candidates():
            unordered = self._unordered(wait)
            if wait.done and unordered:
                self.found.append(EarlyRelease(wait, origin, unordered, clocks))
        self._lines: list[_Late] | None = None

    def _candidates(self) -> Iterator[tuple[Wait, str]]:
        """Waits that need no credit beyond those that earlier waits of the cell needed."""
        for wait in self.clocks.covered:
            cell = wait.cell
            asked = wait.value - (0 if cell.replaced else own_sum(wait))
            earlier = cell.carried is not None and cell.fresh < asked <= cell.carried
            origin = "an earlier launch" if earlier else "an earlier wait"
            yield wait, "plain data" if earlier and cell.origin == "data" else origin
        for solver in self.clocks.solvers:
            if isinstance(solver, Epochs):
                yield from self._of_epochs(solver)

    def _of_epochs(self, solver: Epochs) -> Iterator[tuple[Wait, str]]:
        cell, column = solver.cell, solver.column
        taken: dict[int, int] = {}
        for wait in cell.waits:
            if wait.column != column or not wait.done:
                continue
            if wait.asked is not None:
                level = cell.level.get(column, cell.fresh if cell.carried is None else cell.carried)
                if cell.fresh < wait.asked <= level and wait.value > cell.fresh:
                    yield wait, "an earlier wait"
                cell.level[column] = max(level, wait.asked)
                continue
            needs = wait.needs
            if wait.solver is not solver:
                pass  # judged without clocks
            elif wait.by_data:
                if wait.value > cell.fresh:
                    yield wait, "plain data"
            elif not needs:
                carried = cell.carried is not None and wait.holds(cell.carried) and not wait.holds(cell.fresh)
                if carried and not wait.own and wait.gain is None:
                    yield wait, "an earlier launch"
            elif all(index <= taken.get(q, -1) for q, index in needs.items()):
                yield wait, "an earlier wait"
            for q, index in needs.items():
                taken[q] = max(taken.get(q, -1), index)

    def _unordered(self, wait: Wait) -> list[Update]:
        """Of each other thread the last update of the cell that is neither before nor after the wait."""
        clocks, column = self.clocks, wait.column
        matrix, applied = clocks.matrix, clocks.applied
        post = clocks.segment_of[wait.row]
        before = None
        found = []
        for q, updates in wait.cell.by.items():
            if q == column:
                continue
            high = bisect_left(updates, post, key=lambda u: matrix[u.row, column])
            if not high:
                continue
            if before is None:
                before = clocks.just_before(wait)
            if not applied.before(updates[high - 1], before, wait):
                found.append(updates[high - 1])
        return found

    # ---- the races that they explain ----------------------------------------------------------------

    def explain(
        self, accesses: Accesses, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, list[tuple[str, int]]]:
        """Which racing pairs the missing order would have prevented.

        Returns:
            For each pair a number, or -1; and the line of the wait for each number.
        """
        if self._lines is None:
            self._lines = self._by_line()
        found = np.full(len(a), -1)
        for x, y in ((a, b), (b, a)):
            # Pairs that agree in these three are explained by the same waits.
            key = np.stack((accesses.column[x], accesses.segment[x], accesses.row[y]))
            unique, first, back = np.unique(key, axis=1, return_index=True, return_inverse=True)
            explained = self._explained(self._lines, unique, x[first], y[first])
            found = np.where(found < 0, explained[back.reshape(-1)], found)
        return found, [line for line, _ in self._lines]

    def _by_line(self) -> list[_Late]:
        """Per line of waits and per column of theirs: their segments, and what waits up to each should know."""
        lines: dict[Line, dict[int, list[EarlyRelease]]] = {}
        for early in self.found:
            line = self.execution.source.site(early.wait.op)
            lines.setdefault(line, {}).setdefault(early.wait.column, []).append(early)
        segment_of = self.clocks.segment_of
        found = []
        for line in sorted(lines):
            columns = []
            for column, waits in lines[line].items():
                waits.sort(key=lambda e: e.wait.index)
                segments = np.array([segment_of[e.wait.row] for e in waits])
                behind = np.maximum.accumulate([e.behind for e in waits], axis=0)
                columns.append((column, segments, behind, waits))
            found.append((line, columns))
        return found

    def _explained(self, lines: list[_Late], races: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The number of the line that explains a race of an access (column, segment) and one in a row, or -1."""
        column, segment, row = races
        found = np.full(len(column), -1)
        matrix = self.clocks.matrix
        for number, (_, columns) in enumerate(lines):
            for waiter, segments, behind, waits in columns:
                last = np.searchsorted(segments, matrix[row, waiter], side="right") - 1
                hit = last >= 0
                hit[hit] = behind[last[hit], column[hit]] >= segment[hit]
                if hit.any():
                    k = int(np.flatnonzero(hit)[0])
                    for early in waits:
                        if early.race is None:
                            early.race = (int(x[k]), int(y[k]))
                    found[hit & (found < 0)] = number
        return found

    def report(self, folder: Folder) -> None:
        """Enter the findings: an error where the missing order would have prevented a race."""
        grave = {(folder.site(e.wait.op), e.wait.cell.memory) for e in self.found if e.race is not None}
        for early in self.found:
            wait = early.wait
            severity: Severity = "error" if (folder.site(wait.op), wait.cell.memory) in grave else "warning"
            cell = wait.cell
            at = cell.offset // 4
            folder.add(
                "early-release",
                severity,
                early.origin,
                (ref_of(wait), ref_of(early.update)),
                cell.memory,
                at,
                at + 1,
                "cells",
                self._message(early),
            )

    def _message(self, early: EarlyRelease) -> Message:
        execution, wait = self.execution, early.wait

        def words(number: int) -> str:
            op = execution.access_op[number]
            file, line = execution.source.site(op)
            return f"the {execution.source.kind(op)} at {short_place(file, line)}"

        def message(summary: Summary) -> tuple[str, str]:
            memory = execution.memories[wait.cell.memory]
            cell = cell_name(memory.name, memory.shape, wait.cell.offset // 4)
            condition = f"{'Eq' if wait.equal else 'Ge'} {wait.value} on {cell}"
            raced = None if early.race is None else sorted(words(number) for number in early.race)
            return messages.early_release(summary, condition, early.origin, raced)

        return message
