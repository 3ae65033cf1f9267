"""From a recorded run to the operation sequence that the checks work on, and the checks of a whole run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Protocol, TypeAlias

from a2a3sim.checks.happens_before.checker import Options, check_execution
from a2a3sim.checks.happens_before.events import ADD, READ, WRITE, Cell, Line, Thread, ThreadSpec
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.happens_before.findings import OrderFinding
from a2a3sim.checks.happens_before.history import HistoryState, wrapped
from a2a3sim.collector import collector_paused
from a2a3sim.models.memory import Access, Memory
from a2a3sim.models.operation import UNKNOWN, Lane, Operation, Signal, Site

__all__ = ["RecordedRun", "TraceSource", "check", "execution_of", "forms_used"]

_NEVER = 1 << 62

_Group: TypeAlias = tuple[int, int, int]  # call, dispatch, task


class RecordedRun(Protocol):
    """What the checks read of a run: `a2a3sim.trace.record.Trace`, which they do not know."""

    @property
    def lanes(self) -> list[Lane]: ...

    @property
    def edges(self) -> Iterable[tuple[tuple[int, int], tuple[int, int]]]: ...

    @property
    def builtins(self) -> Iterable[Site]: ...

    @property
    def fences(self) -> str: ...

    def operations(self) -> Iterator[Operation]: ...

    def place(self, site: Site) -> Line: ...


def check(
    trace: RecordedRun,
    history: HistoryState | None = None,
    kept: bool = False,
    set_writes_line: bool = True,
    joined: bool = True,
    granule: int | None = None,
) -> list[OrderFinding]:
    """Findings of one recorded call that follow from guaranteed happens-before.

    Args:
        trace: a finished run's, or that of one which could not go on.
        history: signal cells as earlier calls of the same worker left them; updated.
        kept: the windows outlive this call.
        set_writes_line: a Set writes its whole 64-byte line back (the platform's word).
        joined: all devices have finished a call of the worker before any starts the next.
        granule: bytes of which addresses and lengths of transfers should be multiples, or None.
    """
    with collector_paused():
        last = None if joined or history is None or history.last is None else history.last.trace
        options = Options(kept, set_writes_line, granule, frozenset(map(trace.place, trace.builtins)))
        return check_execution(execution_of(trace, last), history, options, None if joined else trace)


class TraceSource:
    """What findings ask about operations."""

    def __init__(self, trace: RecordedRun) -> None:
        self._trace = trace

    def site(self, op: Operation) -> Line:
        """File and line of the user's call."""
        if op.site is None:
            return (op.kind, 0)
        return self._trace.place(op.site)

    @staticmethod
    def kind(op: Operation) -> str:
        """The operation in the language's words."""
        return op.kind

    @staticmethod
    def when(op: Operation, write: bool) -> int:
        """When the run saw it: a write when it is visible, a read when its bytes have left."""
        time = op.visible if write else op.drained
        return time if time != UNKNOWN else _NEVER

    def written(self, op: Operation, cell: Cell) -> int | None:
        """The value that a plain write gave a cell: what was seen in it next; None if nothing tells."""
        time = self.when(op, True)
        after = [(u.op.applied, u.op) for u in cell.updates() if not u.plain and u.op.applied >= time]
        after += [(w.op.end, w.op) for w in cell.waits if w.done and w.op.end >= time]
        if not after:
            return None
        following: Signal = min(after, key=lambda item: item[0])[1]
        if following.kind == "wait":
            return following.seen
        if following.action != "add" or following.seen is None:
            return None
        return following.seen - following.value

    @staticmethod
    def found(cell: Cell) -> int | None:
        """The value that the call found in a cell, by its first update or wait; None if nothing tells."""
        seen = [(u.op.applied, u.op) for u in cell.updates() if u.op.applied != UNKNOWN]
        seen += [(w.op.end, w.op) for w in cell.waits if w.done]
        if not seen:
            return None
        first: Signal = min(seen, key=lambda item: item[0])[1]
        if first.kind == "wait":
            return first.seen
        if first.action != "add" or first.seen is None:
            return None
        return wrapped(first.seen - first.value)


def forms_used(trace: RecordedRun) -> list[str]:
    """Which forms of signalling a run used: what its verdict rests on."""
    forms = {"Add": False, "Set": False, "Ge": False, "Eq": False, "negative Add by another rank": False}
    for op in trace.operations():
        if isinstance(op, Signal) and op.cell is not None:
            forms[op.action.capitalize()] = True
            if op.action == "add" and op.value < 0 and op.cell[0].rank != op.lane.rank:
                forms["negative Add by another rank"] = True
    return [form for form, used in forms.items() if used]


def execution_of(trace: RecordedRun, last: RecordedRun | None = None) -> Execution:
    """The operation sequence of a trace's lanes, cut into segments.

    Args:
        last: trace of the worker's call before, if devices may still be busy with it; its threads are ``old``.
    """
    traces = [trace] if last is None else [last, trace]
    lanes = [lane for t in traces for lane in t.lanes]
    lanes.sort(key=lambda lane: (lane.call, lane.dispatch, lane.task, lane.index))
    groups: dict[_Group, int] = {}
    launches: dict[int, dict[tuple[int, int], int]] = {}
    old = {lane.call for lane in last.lanes} if last is not None else set()
    specs = []
    for lane in lanes:
        group = groups.setdefault((lane.call, lane.dispatch, lane.task), len(groups))
        ordinals = launches.setdefault(lane.device, {})
        launch = ordinals.setdefault((lane.call, lane.dispatch), len(ordinals))
        specs.append(
            ThreadSpec(
                lane.rank, lane.core, group, lane.device, launch, lane.call, lane.call in old, lane.kernel
            )
        )
    edges = _edges(traces, groups)
    if last is None:
        edges |= _joins(groups)
    else:
        edges |= _queues(lanes, groups, trace.lanes)
    execution = Execution(specs, sorted(edges), trace.fences == "explicit", TraceSource(trace))
    enter = _Entry(execution)
    for lane, thread in zip(lanes, execution.threads, strict=True):
        execution.begin(thread)
        enter.operations(thread, lane.operations)
        execution.end(thread, lane.end != UNKNOWN)
    return execution


def _edges(traces: list[RecordedRun], groups: dict[_Group, int]) -> set[tuple[int, int]]:
    """Kernels of a rank that declared tensor directions order."""
    edges = set()
    for trace in traces:
        for call in {lane.call for lane in trace.lanes}:
            for earlier, later in trace.edges:
                a, b = groups.get((call, *earlier)), groups.get((call, *later))
                if a is not None and b is not None:
                    edges.add((a, b))
    return edges


def _joins(groups: dict[_Group, int]) -> set[tuple[int, int]]:
    """The host has waited for all devices between the calls of a trace."""
    calls = sorted({call for call, _, _ in groups})
    return {
        (a, b)
        for earlier, later in pairwise(calls)
        for g, a in groups.items()
        if g[0] == earlier
        for h, b in groups.items()
        if h[0] == later
    }


def _queues(lanes: list[Lane], groups: dict[_Group, int], new: list[Lane]) -> set[tuple[int, int]]:
    """A device has finished its part of the call before when it begins its first dispatch of the next."""
    first: dict[int, int] = {}
    for lane in new:
        first[lane.device] = min(first.get(lane.device, lane.dispatch), lane.dispatch)
    call = new[0].call if new else 0
    before: dict[int, set[int]] = {}
    for lane in lanes:
        if lane.call != call:
            before.setdefault(lane.device, set()).add(groups[lane.call, lane.dispatch, lane.task])
    return {
        (a, groups[lane.call, lane.dispatch, lane.task])
        for lane in new
        if lane.dispatch == first[lane.device]
        for a in before.get(lane.device, ())
    }


class _Entry:
    """Enters operations into a program; memory objects, regions and cells are looked up once each."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.memories: dict[Memory, int] = {}
        self.regions: dict[Access, int] = {}
        self.cells: dict[tuple[Memory, int], Cell] = {}

    def memory(self, memory: Memory) -> int:
        found = self.memories.get(memory)
        if found is None:
            found = self.memories[memory] = self.execution.memory(
                memory.id, memory.name, memory.rank, memory.device, memory.cell_shape, memory.kind == "window"
            )
        return found

    def region(self, access: Access) -> int:
        memory, offset, rows, row_bytes, stride = access
        found = self.regions[access] = self.execution.region(
            self.memory(memory), offset, row_bytes, rows, stride
        )
        return found

    def cell(self, where: tuple[Memory, int]) -> Cell:
        memory, offset = where
        found = self.cells[where] = self.execution.cell(self.memory(memory), offset)
        return found

    def operations(self, thread: Thread, operations: Iterable[Operation]) -> None:
        """A lane's operations in program order."""
        execution = self.execution
        regions, cells = self.regions, self.cells
        access, notify, wait = execution.access, execution.notify, execution.wait
        for op in operations:
            if op.pipe == "V":
                continue
            if op.reads:
                for place in op.reads:
                    region = regions.get(place)
                    access(thread, READ, self.region(place) if region is None else region, op, op.pipe)
            if op.writes:
                kind = ADD if op.atomic else WRITE
                for place in op.writes:
                    region = regions.get(place)
                    number = access(
                        thread, kind, self.region(place) if region is None else region, op, op.pipe
                    )
                    if op.pipe == "S":
                        execution.scalar_writes.append(number)
            elif isinstance(op, Signal) and op.cell is not None:
                cell = cells.get(op.cell)
                if cell is None:
                    cell = self.cell(op.cell)
                action = op.action
                if op.kind == "notify":
                    applied = op.applied
                    notify(
                        thread, cell, op.value, action == "set", op, applied if applied != UNKNOWN else _NEVER
                    )
                else:
                    done = op.end != UNKNOWN
                    wait(thread, cell, op.value, action == "eq", op, op.end if done else _NEVER, done)
            elif op.kind == "sync_all":
                if op.end != UNKNOWN:
                    execution.sync_all(thread)
            elif op.kind in ("fence", "drain"):
                execution.fence(thread, op.kind == "fence")
