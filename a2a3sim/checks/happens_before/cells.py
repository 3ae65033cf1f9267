"""Signal cells over their life: int32 overflow, what a launch leaves behind, notifies that nobody awaits."""

from __future__ import annotations

from collections.abc import Iterable

from a2a3sim.checks.happens_before import messages
from a2a3sim.checks.happens_before.early_release import EarlyRelease, ref_of
from a2a3sim.checks.happens_before.events import Cell, Update
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.happens_before.findings import Folder, Severity
from a2a3sim.checks.happens_before.history import final_value
from a2a3sim.checks.happens_before.plain import PlainAccess

__all__ = ["report_overflow", "report_residue", "report_unawaited"]

_LOW, _HIGH = -(1 << 31), (1 << 31) - 1


def _observed(cell: Cell) -> list[Update]:
    return sorted(cell.updates(), key=lambda u: (u.when, u.index))


def report_overflow(execution: Execution, folder: Folder) -> None:
    """Adds that take a cell past the end of int32."""
    for cell in execution.cells.values():
        if abs(cell.start) + execution.greatest * execution.count <= _HIGH:
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
    execution: Execution, folder: Folder, kept: bool, early: Iterable[EarlyRelease], undefined: set[int]
) -> None:
    """Cells that are not back at their fresh value when a launch ends and the window lives on.

    Args:
        kept: the windows outlive the call.
        early: a later launch was released early by such a cell.
        undefined: ids of cells whose final value depends on the schedule; they have their own finding.
    """
    launches = {t.launch for t in execution.threads}
    released: dict[int, int] = {}
    for e in early:
        if not e.wait.thread.old:
            key = id(e.wait.cell)
            released[key] = max(released.get(key, -1), e.wait.thread.launch)
    if not kept and len(launches) == 1 and not any(c.origin for c in execution.cells.values()):
        return
    for cell in execution.cells.values():
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
            severity: Severity = "warning" if released.get(id(cell), -1) > launch else "note"
            _left(folder, cell, max(so_far, key=lambda u: u.index), severity)
        if cell.origin is not None and updates and id(cell) in released:
            _left(folder, cell, min(updates, key=lambda u: u.index), "warning")


def _left(folder: Folder, cell: Cell, update: Update, severity: Severity) -> None:
    at = cell.offset // 4
    place = cell.memory, at, at + 1, "cells"
    folder.add(
        "residue", severity, None, (ref_of(update),), *place, messages.residue, old=severity == "warning"
    )


# ---- notifies that nobody awaits ----------------------------------------------------------------------


def report_unawaited(execution: Execution, folder: Folder, plain: Iterable[PlainAccess]) -> None:
    """Notifies from other ranks to cells that are neither awaited nor read."""
    looked_at = {id(p.cell) for p in plain}
    for cell in execution.cells.values():
        if cell.waits or id(cell) in looked_at:
            continue
        for updates in cell.by.values():
            last = updates[-1]
            if last.thread.rank != cell.rank:
                at = cell.offset // 4
                place = cell.memory, at, at + 1, "cells"
                folder.add(
                    "residue", "note", "unawaited", (ref_of(last),), *place, messages.unawaited, "unawaited"
                )
