"""What outlives a call: the signal cells of windows that a worker keeps, and the call that may still be under way.

Where windows live on unreset nothing joins the devices between two calls, so accesses of the one race with those
of the other like accesses of two dispatches. And a cell that was left raised satisfies the next call's wait at
once. The history is bounded: a value for each cell, and the operations of one call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from a2a3sim.checks.happens_before.events import Cell, Line, Update
from a2a3sim.checks.happens_before.execution import Execution

__all__ = ["CellHistory", "HistoryState", "LastCall", "wrapped"]


_Key: TypeAlias = tuple[object, int]  # of a cell: its memory object's key, byte offset


def wrapped(value: int) -> int:
    """A sum as an int32 cell holds it."""
    return (value + 0x80000000) % 0x100000000 - 0x80000000


@dataclass(slots=True)
class CellHistory:
    """A cell between two calls.

    Attributes:
        value: what it holds.
        needed: the level up to which waits have needed its credits, less what its owner took off.
        writer: line of the last update.
    """

    value: int
    needed: int | None
    writer: Line | None = None


class LastCall(NamedTuple):
    """The call before, of which devices may still be busy when others begin the next one.

    Attributes:
        trace: of that call.
        cells: what was known of signal cells when it began.
    """

    trace: Any
    cells: dict[_Key, CellHistory]


class HistoryState:
    """Carried from call to call by whoever keeps windows; `reset` when they are zeroed.

    Attributes:
        last: the latest call, where nothing joins the devices between calls. One is enough: a third call is not
            submitted before the first is over everywhere.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.last: LastCall | None = None
        self._cells: dict[_Key, CellHistory] = {}

    def reset(self, memories: Iterable[object] | None = None) -> None:
        """Fresh windows: forget all cells, or those of the memory objects with these keys."""
        self.last = None
        if memories is None:
            self._cells.clear()
        else:
            keys = set(memories)
            self._cells = {k: v for k, v in self._cells.items() if k[0] not in keys}

    def get(self, memory_key: object, offset: int) -> CellHistory | None:
        """What is known of a cell; None if it is as fresh as its window."""
        return self._cells.get((memory_key, offset))

    def load(self, execution: Execution) -> None:
        """Give the cells of a new call the values that the last one left; that before, if it is part of the program."""
        known_cells = self.last.cells if self.last is not None and execution.has_old else self._cells
        for cell in execution.cells.values():
            known = known_cells.get((execution.memories[cell.memory].key, cell.offset))
            if known is not None:
                cell.start, cell.carried = known.value, known.needed
                if known.value != cell.fresh:
                    cell.origin = "launch"
            found = None if cell.plain else execution.source.found(cell)
            if found is not None and found != cell.start:
                # Bytes of the window that served as data before: no credits at all.
                cell.start = cell.carried = found
                cell.origin = "data"

    def store(self, execution: Execution, trace: object = None) -> None:
        """Take over the values at the end of a call.

        Args:
            trace: the call's, if the next one may overlap with it.
        """
        self.calls += 1
        self.last = None if trace is None else LastCall(trace, dict(self._cells))
        for cell in execution.cells.values():
            key = (execution.memories[cell.memory].key, cell.offset)
            updates = sorted(cell.updates(), key=lambda u: (u.when, u.index))
            known = self._cells.get(key)
            if not updates:
                if known is not None and known.needed is not None:
                    known = replace(known, needed=max(known.needed, _level(cell)))
                    self._cells[key] = known
                continue
            value = final_value(cell, updates)
            self._cells[key] = CellHistory(
                value,
                _needed(cell, updates, value),
                execution.source.site(updates[-1].op),
            )


def final_value(cell: Cell, updates: Iterable[Update]) -> int:
    """The value after updates in this order; an unknown plain write counts as 0."""
    value = cell.start
    for update in updates:
        step = update.value or 0
        value = wrapped(step if update.replaces else value + step)
    return value


def _level(cell: Cell) -> int:
    return max(cell.level.values(), default=cell.fresh if cell.carried is None else cell.carried)


def _needed(cell: Cell, updates: list[Update], value: int) -> int | None:
    if cell.replaced or cell.plain:
        last = next((u for u in reversed(updates) if u.replaces), None)
        if last is None:
            return None
        needed = any(w.needs.get(last.column, -1) >= last.index for w in cell.waits)
        return value if needed else min(value, _level(cell))
    readers = {w.column for w in cell.waits}
    taken = sum(v for u in updates if (v := u.value or 0) < 0 or u.column in readers)
    return _level(cell) + taken
