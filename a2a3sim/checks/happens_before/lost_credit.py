"""Credits that a Set, a plain write or a negative add can wipe out, and Eq waits that can be passed by."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from a2a3sim.checks.happens_before import messages
from a2a3sim.checks.happens_before.clocks import Clocks
from a2a3sim.checks.happens_before.early_release import ref_of
from a2a3sim.checks.happens_before.epochs import Epoch, Epochs
from a2a3sim.checks.happens_before.events import Cell, Ref, Update, Wait
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.happens_before.findings import Folder, Severity
from a2a3sim.checks.happens_before.guarantee import own_sum
from a2a3sim.checks.happens_before.plain import PlainAccess
from a2a3sim.checks.happens_before.summary import Message, Summary

__all__ = ["report_cell_races", "report_lost_credits", "unordered"]


def unordered(clocks: Clocks, update: Update, others: list[Update]) -> list[Update]:
    """Of one other thread's updates, in program order, those not ordered with ``update``."""
    pair = clocks.applied.pair
    low = bisect_left(others, True, key=lambda u: not pair(u, update))
    high = bisect_left(others, True, low, key=lambda u: pair(update, u))
    return others[low:high]


def report_lost_credits(execution: Execution, clocks: Clocks, folder: Folder) -> set[int]:
    """Sets and plain writes against other updates; Sets, negative adds and overshoot against waits.

    Returns:
        The ids of cells whose value depends on the schedule.
    """
    undefined = set()
    for cell in execution.cells.values():
        if (cell.replaced or cell.plain) and _against_updates(cell, clocks, folder):
            undefined.add(id(cell))
    for solver in clocks.solvers:
        if isinstance(solver, Epochs):
            _against_waits(solver, clocks, folder)
    for waits in execution.waits_of:
        for wait in waits:
            if wait.equal and not isinstance(wait.solver, Epochs):
                _simple_overshoot(wait, clocks, folder)
    return undefined


def _against_updates(cell: Cell, clocks: Clocks, folder: Folder) -> bool:
    by = cell.by
    undefined = False
    for column, mine in by.items():
        for update in mine:
            if not update.replaces:
                continue
            for q, others in by.items():
                if q == column:
                    continue
                for other in unordered(clocks, update, others):
                    undefined = True
                    if other.replaces and (other.column, other.index) < (column, update.index):
                        continue  # met from the other side
                    if update.plain and other.plain:
                        continue  # a race between accesses
                    refs: tuple[Ref, ...] = (ref_of(update), ref_of(other))
                    if other.replaces:
                        refs = tuple(sorted(refs, key=lambda r: (folder.site(r.op), r)))
                    _add(
                        folder,
                        "error",
                        "plain write" if update.plain else "set",
                        refs,
                        cell,
                        messages.credit_wiped,
                    )
    return undefined


def _add(
    folder: Folder,
    severity: Severity,
    subtype: str | None,
    refs: tuple[Ref, ...],
    cell: Cell,
    message: Message,
    kind: str = "lost-credit",
) -> None:
    at = cell.offset // 4
    folder.add(kind, severity, subtype, refs, cell.memory, at, at + 1, "cells", message)


def _against_waits(solver: Epochs, clocks: Clocks, folder: Folder) -> None:
    cell, column = solver.cell, solver.column
    solver.begin(clocks)
    for wait in cell.waits:
        if wait.column != column or wait.solver is not solver:
            continue
        epochs = solver.epochs(wait, clocks, clocks.just_before(wait))
        if not epochs:
            continue  # unordered Sets: reported as such
        final = epochs[-1].total()
        if final is None or any(epoch.total() is None for epoch in epochs):
            continue
        if wait.equal:
            if final != wait.value and (wait.done or _can_hold(epochs, wait)):
                late = _last_change(epochs)
                if late is not None:
                    _overshot(folder, wait, late, final)
            continue
        culprit = _can_fall(epochs, wait)
        if culprit is not None:
            stuck = final < wait.value
            subtype = "set" if culprit.replaces else "negative add"
            _add(
                folder,
                "error" if stuck else "warning",
                subtype,
                (ref_of(culprit), ref_of(wait)),
                cell,
                messages.credit_missed if stuck else messages.credit_delayed,
            )


def _can_hold(epochs: list[Epoch], wait: Wait) -> bool:
    for epoch in epochs:
        low, high = _range(epoch)
        if low <= wait.value and (high >= wait.value or not wait.equal):
            return True
    return False


def _range(epoch: Epoch, without: int | None = None) -> tuple[int, int]:
    """Least and greatest value while any of the adds (but those of one writer) are applied."""
    assert epoch.base is not None, "an unknown base is sorted out before"
    low = high = epoch.base
    for q, updates in epoch.rest.items():
        if q == without:
            continue
        sums = np.cumsum([0] + [u.value or 0 for u in updates])
        low += int(sums.min())
        high += int(sums.max())
    return low, high


def _can_fall(epochs: list[Epoch], wait: Wait) -> Update | None:
    """An update by another core that can make a Ge predicate false again before the wait has looked."""
    held = False
    for epoch in epochs:
        opening = epoch.opening
        below = epoch.base is not None and epoch.base < wait.value
        if held and opening is not None and below and opening.column != wait.column:
            return opening
        for q, updates in sorted(epoch.rest.items()):
            low, high = _range(epoch, q)
            reached = 0
            for update in updates:
                step = update.value or 0
                if step < 0 and high + reached >= wait.value > low + reached + step:
                    return update
                reached += step
        held = held or _range(epoch)[1] >= wait.value
    return None


def _last_change(epochs: list[Epoch]) -> Update | None:
    late = [u for updates in epochs[-1].rest.values() for u in updates]
    if not late:
        return epochs[-1].opening
    return max(late, key=lambda u: (u.index, u.column))


def _simple_overshoot(wait: Wait, clocks: Clocks, folder: Folder) -> None:
    """Eq on a cell that only rises: the updates not after the wait must add up to exactly its value."""
    cell, column = wait.cell, wait.column
    post, matrix = clocks.segment_of[wait.row], clocks.matrix
    value = cell.start + (0 if cell.replaced else own_sum(wait))
    low = value
    late = None
    for q, updates in cell.by.items():
        if q == column:
            continue
        for update in updates[: bisect_left(updates, post, key=lambda u: matrix[u.row, column])]:
            step = update.value or 0
            value = step if update.replaces else value + step
            if step and (late is None or (update.index, update.column) > (late.index, late.column)):
                late = update
    # A wait that never ended may simply lack a notify; then the deadlock report says so.
    if value != wait.value and late is not None and (wait.done or low <= wait.value < value):
        _overshot(folder, wait, late, value)


def _overshot(folder: Folder, wait: Wait, late: Update, final: int) -> None:
    def message(summary: Summary) -> tuple[str, str]:
        return messages.overshoot(summary, wait.value, final)

    _add(folder, "error", None, (ref_of(wait), ref_of(late)), wait.cell, message, "overshoot")


# ---- plain accesses to cells against updates --------------------------------------------------------


def report_cell_races(execution: Execution, clocks: Clocks, folder: Folder, plain: list[PlainAccess]) -> None:
    """Plain reads and writes of a cell's bytes that are not ordered with a notify of another core."""
    matrix, segment_of = clocks.matrix, clocks.segment_of
    for access in plain:
        if access.update is not None and not access.update.replaces:
            continue  # an atomic add commutes with notifies
        cell, row = access.cell, execution.access_row[access.number]
        thread = execution.threads[execution.access_thread[access.number]]
        column, segment = execution.column_of[row], segment_of[row]
        clock = matrix[row]
        for updates in cell.by.values():
            others = [u for u in updates if not u.plain and u.thread is not thread]
            if not others:
                continue
            if others[0].column == column:
                continue  # threads that follow one another
            low = bisect_left(others, True, key=lambda u: not clocks.applied.before(u, clock))
            high = bisect_left(others, True, low, key=lambda u: matrix[u.row, column] >= segment)
            for update in others[low:high]:
                mine = execution.ref(access.number)
                write = access.update is not None
                subtype = "WAW"
                if not write:
                    subtype = "RAW" if update.when <= execution.source.when(mine.op, False) else "WAR"
                folder.add(
                    "race",
                    "error",
                    subtype,
                    (ref_of(update), mine),
                    cell.memory,
                    cell.offset,
                    cell.offset + 4,
                    "bytes",
                    messages.cell_written if write else messages.cell_read,
                    "cell",
                )
