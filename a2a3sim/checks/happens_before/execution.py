"""The operation sequence of one call, entered thread by thread and cut into segments as it comes in.

`a2a3sim.checks.happens_before.from_trace` fills an `Execution` from a recorded run, tests fill it by hand. Nothing here knows
the machine: only what each core did in which order, which cells were notified and awaited, and which
kernels of a rank are ordered by the tensors they pass on.
"""

from __future__ import annotations

from collections.abc import Sequence

from a2a3sim.checks.happens_before.components import components
from a2a3sim.checks.happens_before.events import (
    ADD,
    READ,
    WRITE,
    Acquired,
    Cell,
    Footprint,
    MemoryObject,
    Op,
    PipeState,
    Ref,
    Source,
    Thread,
    ThreadSpec,
    Update,
    Wait,
)

__all__ = ["Execution"]

_ACCESSED, _RELEASED, _ACQUIRED = 0, 1, 2


class Execution:
    """What every thread did. Threads that a launch or tensor edge orders share one clock component.

    Args:
        threads: one per core and kernel, an earlier kernel of a rank before a later one.
        edges: pairs of groups; all threads of the first have ended before any of the second starts.
        explicit: only fences order a core's pipes; each pipe then has clock components of its own.
        source: what the findings need to know about operations.
    """

    def __init__(
        self,
        threads: list[ThreadSpec],
        edges: Sequence[tuple[int, int]],
        explicit: bool,
        source: Source,
    ) -> None:
        self.explicit = explicit
        self.source = source
        self.complete = True  # the run came to its end
        self.has_old = any(t.old for t in threads)  # an earlier call is part of it
        columns, self.scalar_columns = components(threads, edges)
        self.threads = [Thread(k, t, c) for k, (t, c) in enumerate(zip(threads, columns, strict=True))]
        self.rank_of: dict[int, int] = {t.column: t.rank for t in self.threads}
        self.columns_of_rank: dict[int, list[int]] = {}
        for column in range(self.scalar_columns):
            self.columns_of_rank.setdefault(self.rank_of[column], []).append(column)
        self.columns = self.scalar_columns * (4 if explicit else 1)
        self._before: dict[int, list[int]] = {}
        for earlier, later in edges:
            self._before.setdefault(later, []).append(earlier)
        self._ends: dict[int, list[int]] = {t.group: [] for t in self.threads}
        self._barriers: dict[tuple[int, int], list[int]] = {}
        for t in self.threads:
            t.shared = len(self.columns_of_rank[t.rank]) > 1
            if explicit:
                first = self.scalar_columns + 3 * t.column
                # A store is known on its own device once drained, elsewhere once visible: two components.
                t.pipes = {"MTE2": PipeState(first), "MTE3": PipeState(first + 1, first + 2)}
        # Segments ("rows"), in the order in which they were entered.
        self.column_of: list[int] = []
        self.segment_of: list[int] = []
        self.acquires_of: list[list[Acquired]] = []
        self.release_of: dict[int, tuple[int, Op]] = {}  # row -> the first notify that others see, its number
        self.rows_of: list[list[int]] = [[] for _ in range(self.columns)]
        # Accesses, column-wise.
        self.access_region: list[int] = []
        self.access_row: list[int] = []
        self.access_kind: list[int] = []
        self.access_index: list[int] = []
        self.access_thread: list[int] = []
        self.access_op: list[Op] = []
        self.issue_row: list[int] = []  # explicit fences: the scalar pipe's segment at the issue
        self.scalar_writes: list[int] = []
        self.regions: list[Footprint] = []
        self._region_ids: dict[tuple[int, ...], int] = {}
        self.memories: list[MemoryObject] = []
        self._memory_ids: dict[object, int] = {}
        self.cells: dict[tuple[int, int], Cell] = {}
        self.waits_of: list[list[Wait]] = [[] for _ in range(self.scalar_columns)]
        self.greatest = 0  # largest amount by which a notify changes a cell
        self.count = 0  # of accesses, notifies and waits: numbers them in the order of entry

    def follows(self, thread: Thread) -> set[int]:
        """The groups that are over before a thread starts."""
        found: set[int] = set()
        edge = list(self._before.get(thread.group, ()))
        while edge:
            group = edge.pop()
            if group not in found:
                found.add(group)
                edge += self._before.get(group, ())
        return found

    # ---- names ------------------------------------------------------------------------------------

    def memory(
        self,
        key: object,
        name: str,
        rank: int,
        device: int | None = None,
        shape: Sequence[int] | None = None,
        window: bool = False,
    ) -> int:
        """The number of a memory object.

        Args:
            shape: extents by which its signal cells are addressed.
            window: it is one, filled with zeros to begin with.
        """
        found = self._memory_ids.get(key)
        if found is None:
            found = self._memory_ids[key] = len(self.memories)
            self.memories.append(
                MemoryObject(key, name, rank, rank if device is None else device, shape, window)
            )
        return found

    def region(self, memory: int, offset: int, nbytes: int, rows: int = 1, stride: int = 0) -> int:
        """The number of a region; ``nbytes`` are those of one row."""
        key = (memory, offset, rows, nbytes, stride)
        found = self._region_ids.get(key)
        if found is None:
            if rows > 1 and stride == nbytes:
                found = self.region(memory, offset, rows * nbytes)
            else:
                found = len(self.regions)
                self.regions.append(Footprint(memory, offset, rows, nbytes, stride or nbytes))
            self._region_ids[key] = found
        return found

    def cell(self, memory: int, offset: int) -> Cell:
        """The signal cell at a byte offset of a memory object."""
        found = self.cells.get((memory, offset))
        if found is None:
            found = self.cells[memory, offset] = Cell(memory, offset, self.memories[memory].rank)
        return found

    # ---- what a thread does, in program order -----------------------------------------------------

    def begin(self, thread: Thread) -> None:
        """The thread starts; all threads of the groups before its own have ended."""
        thread.acquires = [self._ends[group] for group in self._before.get(thread.group, ())]

    def ref(self, number: int) -> Ref:
        """An access as it is named in a finding."""
        thread = self.threads[self.access_thread[number]]
        return Ref(thread.rank, thread.index, self.access_index[number], self.access_op[number])

    def _segment(self, thread: Thread) -> int:
        row = self._row(thread.column, thread.acquires)
        for acquired in thread.acquires:
            if isinstance(acquired, Wait):
                acquired.row = row
        thread.acquires = []
        thread.row = row
        return row

    def _row(self, column: int, acquires: list[Acquired]) -> int:
        row = len(self.column_of)
        rows = self.rows_of[column]
        rows.append(row)
        self.column_of.append(column)
        self.segment_of.append(len(rows))
        self.acquires_of.append(acquires)
        return row

    def access(self, thread: Thread, kind: int, region: int, op: Op, pipe: str = "S") -> int:
        """A read, write or atomic add; returns its number."""
        if thread.state:
            self._segment(thread)
            thread.state = _ACCESSED
        number = len(self.access_row)
        row = thread.row
        if self.explicit:
            self.issue_row.append(row)
            if pipe != "S":
                row = self._on_pipe(thread, pipe)
        self.access_region.append(region)
        self.access_row.append(row)
        self.access_kind.append(kind)
        self.access_index.append(self.count)
        self.access_thread.append(thread.index)
        self.access_op.append(op)
        self.count += 1
        return number

    def _on_pipe(self, thread: Thread, pipe: str) -> int:
        state = thread.pipes[pipe]
        if state.issued != thread.row:
            state.issued = thread.row
            state.rows = tuple(self._row(column, [thread.row]) for column in state.columns)
        return state.rows[-1]

    def read(self, thread: Thread, region: int, op: Op, pipe: str = "MTE2") -> int:
        """A plain read."""
        return self.access(thread, READ, region, op, pipe)

    def write(self, thread: Thread, region: int, op: Op, pipe: str = "MTE3") -> int:
        """A plain write."""
        number = self.access(thread, WRITE, region, op, pipe)
        if pipe == "S":
            self.scalar_writes.append(number)
        return number

    def add(self, thread: Thread, region: int, op: Op, pipe: str = "MTE3") -> int:
        """An atomic add by a store."""
        return self.access(thread, ADD, region, op, pipe)

    def notify(self, thread: Thread, cell: Cell, value: int, replaces: bool, op: Op, when: int) -> None:
        """AtomicAdd or Set (``replaces``) of a cell, applied at ``when``."""
        if cell.rank == thread.rank:
            # Applied before anything else this core does: for its siblings a release, for itself an access.
            if thread.state:
                self._segment(thread)
            thread.state = _RELEASED if thread.shared else _ACCESSED
            if thread.shared:
                self.release_of.setdefault(thread.row, (self.count, op))
        else:
            if thread.state == _ACQUIRED:
                self._segment(thread)
            thread.state = _RELEASED
            self.release_of.setdefault(thread.row, (self.count, op))
        column = thread.column
        update = Update(cell, thread, thread.row, self.count, value, replaces, op, when)
        self.count += 1
        if replaces:
            cell.replaced = True
        self.greatest = max(self.greatest, abs(value))
        updates = cell.by.get(column)
        if updates is None:
            cell.by[column] = [update]
        else:
            updates.append(update)

    def wait(
        self, thread: Thread, cell: Cell, value: int, equal: bool, op: Op, when: int, done: bool = True
    ) -> None:
        """``Ge`` or ``Eq`` (``equal``) on a cell, over at ``when``; not ``done`` if it never ended."""
        column = thread.column
        own = cell.by.get(column)
        wait = Wait(cell, thread, self.count, value, equal, op, when, done, len(own) if own else 0)
        self.count += 1
        cell.waits.append(wait)
        self.waits_of[column].append(wait)
        thread.acquires.append(wait)
        thread.state = _ACQUIRED

    def sync_all(self, thread: Thread) -> None:
        """The barrier of the blocks of one kernel; it drains the pipes of each."""
        if self.explicit:
            self.fence(thread, everywhere=False)
        if thread.state == _ACQUIRED and thread.acquires:
            self._segment(thread)
        rows = self._barriers.setdefault((thread.group, thread.syncs), [])
        thread.syncs += 1
        if thread.row >= 0:
            rows.append(thread.row)
        thread.acquires.append(rows)
        thread.state = _ACQUIRED

    def fence(self, thread: Thread, everywhere: bool = True) -> None:
        """Explicit fences: the core's earlier accesses are over, its stores visible, maybe only nearby."""
        if not self.explicit:
            return
        for pipe in thread.pipes.values():
            thread.acquires.extend(pipe.rows if everywhere else pipe.rows[:1])
        if thread.acquires:
            thread.state = _ACQUIRED

    def end(self, thread: Thread, complete: bool = True) -> None:
        """The thread is over, its stores and notifies applied; or, not ``complete``, stuck for ever."""
        self.fence(thread)
        thread.state = _ACQUIRED
        row = self._segment(thread)
        if complete:
            thread.end_row = row
            thread.end_segment = self.segment_of[row]
            self._ends[thread.group].append(row)
        else:
            self.complete = False
