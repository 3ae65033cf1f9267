"""Plain accesses to bytes that are signal cells.

A plain write (store, put, scalar write) to a cell acts like a Set of a value that only the run can tell; an
atomic add by a store like an Add of an unknown value; a plain read is an access that updates may race with.
"""

from __future__ import annotations

from bisect import bisect_left

from a2a3sim.checks.happens_before.events import ADD, READ, Cell, Footprint, Update
from a2a3sim.checks.happens_before.execution import Execution

__all__ = ["PlainAccess", "mark_plain_accesses"]


class PlainAccess:
    """An access that touches a cell; ``update`` is the history entry of a write."""

    __slots__ = ("cell", "number", "update")

    def __init__(self, number: int, cell: Cell, update: Update | None) -> None:
        self.number = number
        self.cell = cell
        self.update = update


def mark_plain_accesses(execution: Execution) -> list[PlainAccess]:
    """Enter plain writes into the histories of the cells they touch; return all plain accesses to cells."""
    of_memory: dict[int, list[int]] = {}
    for memory, offset in execution.cells:
        of_memory.setdefault(memory, []).append(offset)
    touched: dict[int, list[Cell]] = {}
    for number, region in enumerate(execution.regions):
        offsets = of_memory.get(region.memory)
        if offsets:
            cells = [execution.cells[region.memory, o] for o in sorted(offsets) if _touches(region, o)]
            if cells:
                touched[number] = cells
    if not touched:
        return []
    found = []
    for number, touching in enumerate(execution.access_region):
        for cell in touched.get(touching, ()):
            kind = execution.access_kind[number]
            update = None
            if kind != READ:
                update = _entered(execution, cell, number, kind)
            found.append(PlainAccess(number, cell, update))
    for cell in {id(p.cell): p.cell for p in found if p.update is not None}.values():
        for updates in cell.by.values():
            updates.sort(key=lambda u: u.index)
        for wait in cell.waits:
            wait.own = bisect_left(cell.by.get(wait.column, ()), wait.index, key=lambda u: u.index)
    return found


def _entered(execution: Execution, cell: Cell, number: int, kind: int) -> Update:
    thread = execution.threads[execution.access_thread[number]]
    op = execution.access_op[number]
    update = Update(
        cell,
        thread,
        execution.access_row[number],
        execution.access_index[number],
        execution.source.written(op, cell) if kind != ADD else None,
        kind != ADD,
        op,
        execution.source.when(op, True),
        plain=True,
    )
    update.column = execution.column_of[update.row]  # with explicit fences that of its pipe
    cell.by.setdefault(update.column, []).append(update)
    cell.plain = True
    return update


def _touches(region: Footprint, offset: int) -> bool:
    if offset + 4 <= region.offset:
        return False
    row = min(max(offset - region.offset, 0) // region.stride, region.rows - 1)
    for k in (row, row + 1):
        begin = region.offset + k * region.stride
        if k < region.rows and begin < offset + 4 and begin + region.row_bytes > offset:
            return True
    return False
