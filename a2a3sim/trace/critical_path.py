"""The critical path: what the run's time was spent on, walked back from its last end.

Every operation remembers the event that let it start. Starting at the last end, the walk tiles the operation
that caused it with what that operation did (issue, latency, bandwidth of its bottleneck, vector, wait,
atomic), then goes on at the event it started with, until the first start of the run. Segments abut: a gap in
the records is given to the segment after it, so the path always adds up to ``kernel_ps``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from a2a3sim.models.operation import UNKNOWN, Cause, Lane, Operation

if TYPE_CHECKING:
    from a2a3sim.result import PathSegment, RunResult
    from a2a3sim.trace.record import Trace

__all__ = ["GROUPS", "Step", "critical_path", "group_of", "summary", "walk"]

# What people ask for: which part of the machine the time went to.
GROUPS = ("link bandwidth", "HBM", "pipe rate", "latency", "waits", "atomics", "vector", "issue", "launch")

# How the walk goes on, and from which operation or lane.
_Position: TypeAlias = "tuple[Callable[[_Walk, Any], _Position | None], Operation | Lane]"

# Steps in a row without any time: records that contradict each other must not turn the walk in circles.
_MAX_IDLE = 100_000

_GROUP_OF = {
    "latency": "latency",
    "wait": "waits",
    "atomic": "atomics",
    "vector": "vector",
    "issue": "issue",
    "launch": "launch",
}


class Step(NamedTuple):
    """One segment with the operation it belongs to (None for a launch), in the clock's ps."""

    lane: Lane
    op: Operation | None
    cause: str
    spent_on: str
    start: int
    end: int


def group_of(spent_on: str) -> str:
    """The member of `GROUPS` that a segment's ``spent_on`` belongs to."""
    kind, _, name = spent_on.partition(":")
    if kind != "bandwidth":
        return _GROUP_OF[kind]
    if name.startswith("hbm"):
        return "HBM"
    return "pipe rate" if name in ("", "pipe") else "link bandwidth"


class _Walk:
    """The walk's position in time and the steps so far, latest first."""

    def __init__(self, first: int, last: int, atomic: int) -> None:
        self.first = first
        self.atomic = atomic
        self.time = last
        self.steps: list[Step] = []

    def emit(self, lane: Lane, op: Operation | None, cause: str, spent_on: str, start: int) -> None:
        """Everything from ``start`` up to where the walk stands."""
        start = max(start, self.first)
        if start < self.time:
            self.steps.append(Step(lane, op, cause, spent_on, start, self.time))
            self.time = start


def _tile_move(walk: _Walk, op: Operation, cause: str) -> None:
    flow = op.flow
    if flow is None or flow.finish == UNKNOWN:
        walk.emit(op.lane, op, cause, "latency", op.start)
        return
    walk.emit(op.lane, op, cause, "latency", flow.finish)
    for when, name in reversed(flow.cuts):
        walk.emit(op.lane, op, cause, f"bandwidth:{name}", max(when, flow.start))
    walk.emit(
        op.lane, op, cause, "bandwidth:pipe", flow.start
    )  # before the first cut, if there is such a time
    walk.emit(op.lane, op, cause, "latency", op.start)


def _tile_notify(walk: _Walk, op: Operation, cause: str) -> Operation | None:
    """A notify's way; the update ahead of it on its line, if that one held it up."""
    ahead = op.by
    if ahead is not None and ahead.applied < walk.time:
        walk.emit(op.lane, op, "line", "atomic", ahead.applied)
        return ahead
    if op.applied != UNKNOWN:
        walk.emit(op.lane, op, cause, "atomic", max(op.start, op.applied - walk.atomic))
    walk.emit(op.lane, op, cause, "latency", op.start)
    return None


def _awaited_access(barrier: Operation) -> Operation | None:
    """The memory access for which a core came late to a device barrier, if it did."""
    last = None
    for op in reversed(barrier.lane.operations[: barrier.seq]):
        if op.kind == "sync_all":
            break
        held = barrier.start < op.visible <= barrier.end and (op.reads or op.writes)
        if held and (last is None or op.visible > last.visible):
            last = op
    return last


def _cause(op: Operation) -> Cause:
    return op.cause if op.cause is not None else ("issue", None)


def _step(walk: _Walk, op: Operation) -> _Position | None:
    """Tile ``op`` from its start to where the walk stands; the position that let it start."""
    reason, _ = _cause(op)
    kind = op.kind
    if kind == "notify":
        ahead = _tile_notify(walk, op, reason)
        if ahead is not None:
            return _step, ahead
    elif kind == "wait":
        by = op.by
        if by is not None and op.start < by.applied <= walk.time:
            walk.emit(op.lane, op, "signal", "wait", by.applied)  # until the next poll
            return _step, by
        walk.emit(op.lane, op, reason, "wait", op.start)
    elif kind == "sync_all":
        if op.by is not None:
            return _step, op.by  # the core that came last
        access = _awaited_access(op)
        if access is not None:
            walk.emit(op.lane, op, "fence", "wait", access.visible)
            return _step, access
        walk.emit(op.lane, op, reason, "wait", op.start)
    elif op.pipe == "V":
        walk.emit(op.lane, op, reason, "vector", op.start)
    elif op.pipe == "S" and kind not in ("read", "write"):
        walk.emit(op.lane, op, reason, "issue", op.start)
    else:
        _tile_move(walk, op, reason)
    return _started(walk, op)


def _done_before(op: Operation) -> Cause:
    """What the scalar pipe did until it turned to ``op``."""
    if op.after is not None:
        return op.after
    return ("issue", op.lane.operations[op.seq - 1]) if op.seq else ("start", None)


def _started(walk: _Walk, op: Operation) -> _Position | None:
    """The position that let ``op`` start, the walk standing at its start."""
    reason, before = _cause(op)
    return (_issued, op) if reason == "issue" or before is None else (_step, before)


def _issued(walk: _Walk, op: Operation) -> _Position | None:
    """Tile the scalar pipe's part in ``op``; the position of what it did before."""
    reason, before = _done_before(op)
    walk.emit(op.lane, op, reason, "issue", op.begun)
    if reason in ("start", "dispatch"):
        # Whatever the kernel did before its first operation is issue time, too.
        walk.emit(op.lane, op, reason, "issue", op.lane.start)
        if before is None:
            return None
        walk.emit(op.lane, None, "dispatch", "launch", before.lane.end)
        return _ended, before.lane
    if before is None:  # a fence with nothing to wait for
        return (_issued, op.lane.operations[op.seq - 1]) if op.seq else None
    return (_issued if reason == "issue" else _step), before


def _ended(walk: _Walk, lane: Lane) -> _Position | None:
    """The position that let a lane end."""
    reason, op = lane.last if lane.last is not None else ("start", None)
    if op is None:
        if lane.operations:
            return _issued, lane.operations[-1]
        walk.emit(lane, None, "start", "issue", lane.start)
        return None
    return (_issued if reason == "issue" else _step), op


def walk(trace: Trace) -> list[Step]:
    """The critical path from the first start to the last end, in order of time, unmerged.

    A partial trace (a deadlock) is walked from the last of its lanes that ended; it is empty if none did.
    """
    lanes = [lane for lane in trace.lanes if UNKNOWN not in (lane.start, lane.end)]
    if not lanes:
        return []
    first = min(lane.start for lane in trace.lanes if lane.start != UNKNOWN)
    last = max(lanes, key=lambda lane: (lane.end, -lane.index))
    state = _Walk(first, last.end, getattr(trace, "atomic_ps", 0))
    idle = 0
    position: _Position | None = (_ended, last)
    while position is not None and state.time > first and idle < _MAX_IDLE:
        move, where = position
        time = state.time
        position = move(state, where)
        idle = idle + 1 if state.time == time else 0
    state.emit(state.steps[-1].lane if state.steps else last, None, "start", "launch", first)
    state.steps.reverse()
    return state.steps


def _what(step: Step) -> str:
    op = step.op
    if op is None:
        return f"launch {step.lane.kernel}"
    if step.spent_on == "issue" or op.peer is None or op.peer == step.lane.rank:
        return op.kind
    if op.kind in ("remote_load", "get") or op.pipe == "MTE2":
        return f"{op.kind} from rank {op.peer}"
    return f"{op.kind} to rank {op.peer}"


def critical_path(trace: Trace, origin: int = 0) -> list[dict[str, Any]]:
    """The entries of ``critical_path``: equal neighbours merged, times from ``origin``."""
    segments: list[dict[str, Any]] = []
    previous = None
    for step in walk(trace):
        key = (step.lane.rank, _what(step), step.cause, step.spent_on)
        if key == previous:
            segments[-1]["end_ps"] = step.end - origin
            continue
        previous = key
        segments.append(
            {
                "rank": key[0],
                "what": key[1],
                "cause": key[2],
                "spent_on": key[3],
                "start_ps": step.start - origin,
                "end_ps": step.end - origin,
            }
        )
    return segments


def summary(path: RunResult | Iterable[PathSegment]) -> dict[str, float]:
    """Percent of the critical path per group, largest first; groups without time are left out.

    Args:
        path: a result, or the segments of its ``critical_path``.
    """
    segments: Iterable[Any] = getattr(path, "critical_path", path)
    spent: dict[str, int] = {}
    for segment in segments:
        group = group_of(segment.spent_on)
        spent[group] = spent.get(group, 0) + segment.end_ps - segment.start_ps
    total = sum(spent.values())
    order = sorted(spent, key=lambda group: (-spent[group], GROUPS.index(group)))
    return {group: 100 * spent[group] / total for group in order if spent[group]}
