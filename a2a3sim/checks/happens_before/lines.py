"""Lines that several cores write, of which one, by a Set or a scalar store, writes the whole line back."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from a2a3sim.checks.happens_before import messages
from a2a3sim.checks.happens_before.clocks import Clocks
from a2a3sim.checks.happens_before.early_release import ref_of
from a2a3sim.checks.happens_before.events import READ, Footprint, Line, Ref, Update
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.happens_before.findings import Folder
from a2a3sim.checks.happens_before.lost_credit import unordered

__all__ = ["report_line_shares"]

_Place: TypeAlias = tuple[int, int]  # memory object, number of the 64-byte line in it

_LINE = 64  # bytes that a Set or a scalar store writes back


def report_line_shares(
    execution: Execution, clocks: Clocks, folder: Folder, builtin: Collection[Line] = ()
) -> None:
    """Unordered writers of one line, of which one, a Set or a scalar store, writes the whole line back.

    Warnings; a note where both are a built-in collective's, whose callers cannot lay its cells out otherwise.

    Args:
        builtin: lines at which built-in collectives are called.
    """
    if execution.scalar_writes or any(cell.replaced for cell in execution.cells.values()):
        _Lines(execution, clocks, folder, builtin).report()


class _Lines:
    """The lines that somebody writes back whole, and all their writers."""

    def __init__(
        self, execution: Execution, clocks: Clocks, folder: Folder, builtin: Collection[Line]
    ) -> None:
        self.execution, self.clocks, self.folder, self.builtin = execution, clocks, folder, builtin
        self.updates: dict[_Place, dict[int, list[Update]]] = {}
        self.scalars: dict[_Place, list[int]] = {}
        self.stores: dict[_Place, list[int]] = {}
        sets = set()
        for cell in execution.cells.values():
            line = (cell.memory, cell.offset // _LINE)
            for update in cell.updates():
                if not update.plain:
                    self.updates.setdefault(line, {}).setdefault(update.column, []).append(update)
                    if update.replaces:
                        sets.add(line)
        for number in execution.scalar_writes:
            region = self.region(number)
            self.scalars.setdefault((region.memory, region.offset // _LINE), []).append(number)
        self.whole = sorted(sets | set(self.scalars))
        memories = {memory for memory, _ in self.whole}
        for number, kind in enumerate(execution.access_kind):
            region = self.region(number)
            if kind != READ and region.memory in memories:
                for k in sorted({n for row in range(region.rows) for n in _lines_of(region, row)}):
                    self.stores.setdefault((region.memory, k), []).append(number)

    def region(self, number: int) -> Footprint:
        return self.execution.regions[self.execution.access_region[number]]

    def report(self) -> None:
        for line in self.whole:
            by = self.updates.get(line, {})
            for updates in by.values():
                updates.sort(key=lambda u: u.index)
            for column, mine in by.items():
                for update in mine:
                    if update.replaces:
                        self._set(line, column, update)
            for number in self.scalars.get(line, ()):
                self._scalar_store(line, number)

    def _set(self, line: _Place, column: int, update: Update) -> None:
        """A Set against the updates of other cells of its line, and the stores to its other bytes."""
        for q, others in self.updates[line].items():
            if q == column:
                continue
            for other in unordered(self.clocks, update, others):
                if other.cell is not update.cell:
                    if not other.replaces or (column, update.index) < (q, other.index):
                        self._share(line, ref_of(update), ref_of(other), "set")
                    break
        for number in self.stores.get(line, ()):
            if not self._covers(number, update.cell.offset) and self._apart(update, number):
                self._share(line, ref_of(update), self.execution.ref(number), "set")

    def _scalar_store(self, line: _Place, number: int) -> None:
        """A scalar store against the other stores to its line and the Adds to cells there."""
        execution, matrix, segment_of = self.execution, self.clocks.matrix, self.clocks.segment_of
        mine, row, offset = (
            execution.ref(number),
            execution.access_row[number],
            self.region(number).offset,
        )
        scalars = set(self.scalars[line])
        for other in self.stores[line]:
            its = execution.access_row[other]
            if (
                execution.access_thread[other] != execution.access_thread[number]
                and not (other in scalars and other < number)
                and not self._covers(other, offset)
                and matrix[its, execution.column_of[row]] < segment_of[row]
                and matrix[row, execution.column_of[its]] < segment_of[its]
            ):
                self._share(line, mine, execution.ref(other), "scalar store")
        for updates in self.updates.get(line, {}).values():
            for update in updates:
                if not update.replaces and update.cell.offset != offset and self._apart(update, number):
                    self._share(line, mine, ref_of(update), "scalar store")
                    break

    def _covers(self, number: int, offset: int) -> bool:
        region = self.region(number)
        row = (offset - region.offset) // region.stride
        return 0 <= row < region.rows and offset - region.offset - row * region.stride < region.row_bytes

    def _apart(self, update: Update, number: int) -> bool:
        """Is nothing known of the order of an update and an access?"""
        execution, matrix = self.execution, self.clocks.matrix
        row = execution.access_row[number]
        column = execution.column_of[row]
        return (
            update.thread.index != execution.access_thread[number]
            and matrix[update.row, column] < execution.segment_of[row]
            and not self.clocks.applied.before(update, matrix[row])
        )

    def _share(self, line: _Place, mine: Ref, other: Ref, subtype: str) -> None:
        memory, start = line[0], line[1] * _LINE
        refs = tuple(sorted((mine, other), key=lambda r: (self.folder.site(r.op), r)))
        given = all(self.folder.site(r.op) in self.builtin for r in refs)
        self.folder.add(
            "line-share",
            "note" if given else "warning",
            subtype,
            refs,
            memory,
            start,
            start + _LINE,
            "bytes",
            messages.line_shared_by_builtin if given else messages.line_shared,
        )


def _lines_of(region: Footprint, row: int) -> range:
    begin = region.offset + row * region.stride
    return range(begin // _LINE, (begin + region.row_bytes - 1) // _LINE + 1)
