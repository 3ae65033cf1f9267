"""Signal cells over their life: int32 overflow, what a launch leaves behind, lines shared by writers."""

from __future__ import annotations

from collections.abc import Iterable

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
        if abs(cell.start) + sum(abs(u.value or 0) for u in cell.updates()) <= _HIGH:
            continue
        value = cell.start
        for update in _observed(cell):
            step = update.value or 0
            value = step if update.replaces else value + step
            if not _LOW <= value <= _HIGH:
                at = cell.offset // 4
                folder.add(
                    "overflow", "error", "signal", (ref_of(update),), cell.memory, at, at + 1, "cells", _overflowed
                )
                break


def _overflowed(told):
    message = (
        f"{told.by(0)} takes {told.place} past the end of int32; the cell wraps, and a wait for a larger value never "
        f"ends or a smaller one passes at once.{told.more}"
    )
    return message, "Take used credits off again, so that the counter stays small."


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
    folder.add("residue", severity, None, (ref_of(update),), cell.memory, at, at + 1, "cells", _residue)


def _residue(told):
    message = (
        f"When a launch ends, {told.place} are not back at their start value (last changed by {told.by(0)}); the window "
        f"lives on, so the next launch finds them raised.{told.more}"
    )
    return message, "Take the used credits off at the end, or let the next launch count on from there."


# ---- lines ------------------------------------------------------------------------------------------


def report_line_shares(program: Program, clocks: Clocks, folder: Folder) -> None:
    """Unordered writers of different bytes of one line, one of which writes the whole line back."""
    lines: dict[tuple[int, int], dict[int, list[Update]]] = {}
    dirty: set[tuple[int, int]] = set()
    for cell in program.cells.values():
        line = (cell.memory, cell.offset // _LINE)
        for update in cell.updates():
            if update.plain:
                continue
            lines.setdefault(line, {}).setdefault(update.column, []).append(update)
            if update.replaces:
                dirty.add(line)
    for line in sorted(dirty):
        by = lines[line]
        for updates in by.values():
            updates.sort(key=lambda u: u.index)
        for column, mine in by.items():
            for update in mine:
                if update.replaces:
                    for q, others in by.items():
                        if q != column:
                            _first_elsewhere(update, unordered(clocks, update, others), folder)
    _scalar_stores(program, clocks, folder, lines)


def _first_elsewhere(update: Update, others: list[Update], folder: Folder) -> None:
    for other in others:
        if other.cell is not update.cell:
            if not (other.replaces and (other.column, other.index) < (update.column, update.index)):
                _share(folder, update.cell.memory, ref_of(update), ref_of(other), other.cell.offset, 4, "set")
            return


def _share(folder: Folder, memory: int, mine: Ref, other: Ref, offset: int, nbytes: int, subtype: str) -> None:
    line = offset // _LINE * _LINE
    refs = tuple(sorted((mine, other), key=lambda r: (folder.site(r.op), r)))
    folder.add("line-share", "warning", subtype, refs, memory, line, line + _LINE, "bytes", _shared)


def _scalar_stores(program: Program, clocks: Clocks, folder: Folder, lines) -> None:
    """Scalar stores (`pl.write`) against every other writer of their line."""
    wanted: dict[tuple[int, int], list[int]] = {}
    for number in program.scalar_writes:
        region = program.regions[program.access_region[number]]
        wanted.setdefault((region.memory, region.offset // _LINE), []).append(number)
    if not wanted:
        return
    memories = {memory for memory, _ in wanted}
    writers: dict[tuple[int, int], list[int]] = {}
    for number, kind in enumerate(program.access_kind):
        region = program.regions[program.access_region[number]]
        if kind != READ and region.memory in memories:
            for row in range(region.rows):
                begin = region.offset + row * region.stride
                for line in range(begin // _LINE, (begin + region.row_bytes - 1) // _LINE + 1):
                    if (region.memory, line) in wanted:
                        writers.setdefault((region.memory, line), []).append(number)
    matrix, segment_of = clocks.matrix, clocks.segment_of
    for line, numbers in sorted(wanted.items()):
        for number in numbers:
            row, mine = program.access_row[number], _access_ref(program, number)
            column, region = program.column_of[row], program.regions[program.access_region[number]]
            scalar = set(numbers)
            for other in writers.get(line, ()):
                other_row = program.access_row[other]
                its = program.regions[program.access_region[other]]
                apart = its.offset + its.row_bytes <= region.offset or its.offset >= region.offset + region.row_bytes
                if (
                    apart
                    and program.access_thread[other] != program.access_thread[number]
                    and not (other in scalar and other < number)
                    and matrix[other_row, column] < segment_of[row]
                    and matrix[row, program.column_of[other_row]] < segment_of[other_row]
                ):
                    _share(folder, line[0], mine, _access_ref(program, other), region.offset, 4, "scalar store")
            for q, updates in lines.get(line, {}).items():
                if q == column:
                    continue
                for update in updates:
                    if (
                        update.cell.offset != region.offset
                        and not clocks.applied.before(update, matrix[row])
                        and matrix[update.row, column] < segment_of[row]
                    ):
                        _share(folder, line[0], mine, ref_of(update), region.offset, 4, "scalar store")
                        break


def _access_ref(program: Program, number: int) -> Ref:
    thread = program.threads[program.access_thread[number]]
    return Ref(thread.rank, thread.index, program.access_index[number], program.access_op[number])


def _shared(told):
    message = (
        f"{told.by(0)} and {told.by(1)} write different words of one {_LINE}-byte line ({told.place}) and nothing orders "
        f"them; one of them writes the whole line back and can restore the other's old value.{told.more}"
    )
    return message, f"Put the words {_LINE} bytes apart (16 int32 each), or use AtomicAdd, which touches one word only."
