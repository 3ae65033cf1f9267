"""From a recorded run to the operation sequence that the checks work on, and the checks of a whole run."""

from __future__ import annotations

from itertools import pairwise

from a2a3sim.checks.happens_before.events import ADD, READ, WRITE, Cell, ThreadSpec
from a2a3sim.checks.happens_before.findings import Finding
from a2a3sim.checks.happens_before.history import HistoryState, wrapped
from a2a3sim.checks.happens_before.order import Options, check_program
from a2a3sim.checks.happens_before.program import Program
from a2a3sim.collector import collector_paused
from a2a3sim.models.operation import UNKNOWN

__all__ = ["TraceSource", "check", "forms_used", "program_of"]

_NEVER = 1 << 62


def check(
    trace,
    history: HistoryState | None = None,
    kept: bool = False,
    set_writes_line: bool = True,
    joined: bool = True,
    granule: int | None = None,
) -> list[Finding]:
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
        return check_program(program_of(trace, last), history, options, None if joined else trace)


class TraceSource:
    """What findings ask about operations."""

    def __init__(self, trace) -> None:
        self._trace = trace

    def site(self, op) -> tuple[str, int]:
        """File and line of the user's call."""
        if op.site is None:
            return (op.kind, 0)
        place = self._trace.site(op)
        return (place.file, place.line)

    @staticmethod
    def kind(op) -> str:
        """The operation in the language's words."""
        return op.kind

    @staticmethod
    def when(op, write: bool) -> int:
        """When the run saw it: a write when it is visible, a read when its bytes have left."""
        time = op.visible if write else op.drained
        return time if time != UNKNOWN else _NEVER

    def written(self, op, cell: Cell) -> int | None:
        """The value that a plain write gave a cell: what was seen in it next; None if nothing tells."""
        time = self.when(op, True)
        after = [(u.op.applied, u.op) for u in cell.updates() if not u.plain and u.op.applied >= time]
        after += [(w.op.end, w.op) for w in cell.waits if w.done and w.op.end >= time]
        if not after:
            return None
        following = min(after, key=lambda item: item[0])[1]
        if following.kind == "wait":
            return following.seen
        return following.seen - following.value if following.action == "add" else None

    @staticmethod
    def found(cell: Cell) -> int | None:
        """The value that the call found in a cell, by its first update or wait; None if nothing tells."""
        seen = [(u.op.applied, u.op) for u in cell.updates() if u.op.applied != UNKNOWN]
        seen += [(w.op.end, w.op) for w in cell.waits if w.done]
        if not seen:
            return None
        first = min(seen, key=lambda item: item[0])[1]
        if first.kind == "wait":
            return first.seen
        return wrapped(first.seen - first.value) if first.action == "add" else None


def forms_used(trace) -> list[str]:
    """Which forms of signalling a run used: what its verdict rests on."""
    forms = {"Add": False, "Set": False, "Ge": False, "Eq": False, "negative Add by another rank": False}
    for op in trace.operations():
        if op.cell is not None:
            forms[op.action.capitalize()] = True
            if op.action == "add" and op.value < 0 and op.cell[0].rank != op.lane.rank:
                forms["negative Add by another rank"] = True
    return [form for form, used in forms.items() if used]


def program_of(trace, last=None) -> Program:
    """The operation sequence of a trace's lanes, cut into segments.

    Args:
        last: trace of the worker's call before, if devices may still be busy with it; its threads are ``old``.
    """
    traces = [trace] if last is None else [last, trace]
    lanes = [lane for t in traces for lane in t.lanes]
    lanes.sort(key=lambda lane: (lane.call, lane.dispatch, lane.task, lane.index))
    groups: dict[tuple, int] = {}
    launches: dict[int, dict[tuple, int]] = {}
    old = {lane.call for lane in last.lanes} if last is not None else ()
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
    program = Program(specs, sorted(edges), trace.fences == "explicit", TraceSource(trace))
    enter = _Entry(program)
    for lane, thread in zip(lanes, program.threads, strict=True):
        program.begin(thread)
        enter.operations(thread, lane.operations)
        program.end(thread, lane.end != UNKNOWN)
    return program


def _edges(traces, groups: dict[tuple, int]) -> set[tuple[int, int]]:
    """Kernels of a rank that declared tensor directions order."""
    edges = set()
    for trace in traces:
        for call in {lane.call for lane in trace.lanes}:
            for earlier, later in trace.edges:
                a, b = groups.get((call, *earlier)), groups.get((call, *later))
                if a is not None and b is not None:
                    edges.add((a, b))
    return edges


def _joins(groups: dict[tuple, int]) -> set[tuple[int, int]]:
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


def _queues(lanes, groups: dict[tuple, int], new) -> set[tuple[int, int]]:
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

    def __init__(self, program: Program) -> None:
        self.program = program
        self.memories: dict = {}
        self.regions: dict = {}
        self.cells: dict = {}

    def memory(self, memory) -> int:
        found = self.memories.get(memory)
        if found is None:
            found = self.memories[memory] = self.program.memory(
                memory.id, memory.name, memory.rank, memory.device, memory.cell_shape, memory.kind == "window"
            )
        return found

    def region(self, access) -> int:
        memory, offset, rows, row_bytes, stride = access
        found = self.regions[access] = self.program.region(
            self.memory(memory), offset, row_bytes, rows, stride
        )
        return found

    def cell(self, where) -> Cell:
        memory, offset = where
        found = self.cells[where] = self.program.cell(self.memory(memory), offset)
        return found

    def operations(self, thread, operations) -> None:
        """A lane's operations in program order."""
        program = self.program
        regions, cells = self.regions, self.cells
        access, notify, wait = program.access, program.notify, program.wait
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
                        program.scalar_writes.append(number)
            elif op.cell is not None:
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
                    program.sync_all(thread)
            elif op.kind in ("fence", "drain"):
                program.fence(thread, op.kind == "fence")
