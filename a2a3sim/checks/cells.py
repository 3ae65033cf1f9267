"""Signal cells over their life: int32 overflow, what a launch leaves behind, lines shared by writers."""

from __future__ import annotations

from collections.abc import Iterable

from a2a3sim.checks import messages
from a2a3sim.checks.clocks import Clocks
from a2a3sim.checks.early_release import EarlyRelease, ref_of
from a2a3sim.checks.events import READ, Cell, Update
from a2a3sim.checks.findings import Folder, Ref
from a2a3sim.checks.history import final_value
from a2a3sim.checks.lost_credit import unordered
from a2a3sim.checks.program import Program

__all__ = ["report_line_shares", "report_overflow", "report_residue"]

_LOW, _HIGH = -(1 << 31), (1 << 31) - 1
_LINE = 64  # bytes that a Set or a scalar store writes back


def _observed(cell: Cell) -> list[Update]:
    return sorted(cell.updates(), key=lambda u: (u.when, u.index))


def report_overflow(program: Program, folder: Folder) -> None:
    """Adds that take a cell past the end of int32."""
    for cell in program.cells.values():
        if abs(cell.start) + program.greatest * program.count <= _HIGH:
            continue
        value = cell.start
        for update in _observed(cell):
            step = update.value or 0
            value = step if update.replaces else value + step
            if not _LOW <= value <= _HIGH:
                at = cell.offset // 4
                folder.add(
                    "overflow",
                    "error",
                    "signal",
                    (ref_of(update),),
                    cell.memory,
                    at,
                    at + 1,
                    "cells",
                    messages.overflow,
                )
                break


# ---- residue ----------------------------------------------------------------------------------------


def report_residue(
    program: Program, folder: Folder, kept: bool, early: Iterable[EarlyRelease], undefined: set[int]
) -> None:
    """Cells that are not back at their fresh value when a launch ends and the window lives on.

    Args:
        kept: the windows outlive the call.
        early: a later launch was released early by such a cell.
        undefined: ids of cells whose final value depends on the schedule; they have their own finding.
    """
    launches = {t.launch for t in program.threads}
    released: dict[int, int] = {}
    for e in early:
        if not e.wait.thread.old:
            cell = id(e.wait.cell)
            released[cell] = max(released.get(cell, -1), e.wait.thread.launch)
    if not kept and len(launches) == 1 and not any(c.origin for c in program.cells.values()):
        return
    for cell in program.cells.values():
        if id(cell) in undefined:
            continue
        updates = _observed(cell)
        ends = sorted({u.thread.launch for u in updates} | {w.thread.launch for w in cell.waits})
        last = ends[-1] if ends else 0
        for launch in ends:
            if launch == last and not kept:
                continue
            so_far = [u for u in updates if u.thread.launch <= launch]
            if not so_far or final_value(cell, so_far) == cell.fresh:
                continue
            severity = "warning" if released.get(id(cell), -1) > launch else "note"
            _left(folder, cell, max(so_far, key=lambda u: u.index), severity)
        if cell.origin is not None and updates and id(cell) in released:
            _left(folder, cell, min(updates, key=lambda u: u.index), "warning")


def _left(folder: Folder, cell: Cell, update: Update, severity: str) -> None:
    at = cell.offset // 4
    place = cell.memory, at, at + 1, "cells"
    folder.add(
        "residue", severity, None, (ref_of(update),), *place, messages.residue, old=severity == "warning"
    )


# ---- lines ------------------------------------------------------------------------------------------


def report_line_shares(program: Program, clocks: Clocks, folder: Folder) -> None:
    """Unordered writers of one line, of which one, a Set or a scalar store, writes the whole line back."""
    if program.scalar_writes or any(cell.replaced for cell in program.cells.values()):
        _Lines(program, clocks, folder).report()


class _Lines:
    """The lines that somebody writes back whole, and all their writers."""

    def __init__(self, program: Program, clocks: Clocks, folder: Folder) -> None:
        self.program, self.clocks, self.folder = program, clocks, folder
        self.updates: dict[tuple[int, int], dict[int, list[Update]]] = {}
        self.scalars: dict[tuple[int, int], list[int]] = {}
        self.stores: dict[tuple[int, int], list[int]] = {}
        sets = set()
        for cell in program.cells.values():
            line = (cell.memory, cell.offset // _LINE)
            for update in cell.updates():
                if not update.plain:
                    self.updates.setdefault(line, {}).setdefault(update.column, []).append(update)
                    if update.replaces:
                        sets.add(line)
        for number in program.scalar_writes:
            region = self.region(number)
            self.scalars.setdefault((region.memory, region.offset // _LINE), []).append(number)
        self.whole = sorted(sets | set(self.scalars))
        memories = {memory for memory, _ in self.whole}
        for number, kind in enumerate(program.access_kind):
            region = self.region(number)
            if kind != READ and region.memory in memories:
                for line in sorted({n for row in range(region.rows) for n in _lines_of(region, row)}):
                    self.stores.setdefault((region.memory, line), []).append(number)

    def region(self, number: int):
        return self.program.regions[self.program.access_region[number]]

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

    def _set(self, line, column: int, update: Update) -> None:
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
                self._share(line, ref_of(update), _access_ref(self.program, number), "set")

    def _scalar_store(self, line, number: int) -> None:
        """A scalar store against the other stores to its line and the Adds to cells there."""
        program, matrix, segment_of = self.program, self.clocks.matrix, self.clocks.segment_of
        mine, row, offset = (
            _access_ref(program, number),
            program.access_row[number],
            self.region(number).offset,
        )
        scalars = set(self.scalars[line])
        for other in self.stores[line]:
            its = program.access_row[other]
            if (
                program.access_thread[other] != program.access_thread[number]
                and not (other in scalars and other < number)
                and not self._covers(other, offset)
                and matrix[its, program.column_of[row]] < segment_of[row]
                and matrix[row, program.column_of[its]] < segment_of[its]
            ):
                self._share(line, mine, _access_ref(program, other), "scalar store")
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
        program, matrix = self.program, self.clocks.matrix
        row = program.access_row[number]
        column = program.column_of[row]
        return (
            update.thread.index != program.access_thread[number]
            and matrix[update.row, column] < program.segment_of[row]
            and not self.clocks.applied.before(update, matrix[row])
        )

    def _share(self, line, mine: Ref, other: Ref, subtype: str) -> None:
        memory, start = line[0], line[1] * _LINE
        refs = tuple(sorted((mine, other), key=lambda r: (self.folder.site(r.op), r)))
        self.folder.add(
            "line-share",
            "warning",
            subtype,
            refs,
            memory,
            start,
            start + _LINE,
            "bytes",
            messages.line_shared,
        )


def _lines_of(region, row: int) -> range:
    begin = region.offset + row * region.stride
    return range(begin // _LINE, (begin + region.row_bytes - 1) // _LINE + 1)


def _access_ref(program: Program, number: int) -> Ref:
    thread = program.threads[program.access_thread[number]]
    return Ref(thread.rank, thread.index, program.access_index[number], program.access_op[number])
