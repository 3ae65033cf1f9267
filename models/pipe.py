"""One in-order execution queue of a core.

Operations start in order. A pipe of moves (MTE2, MTE3) keeps up to ``slots`` of them in flight and each
completes by itself; the vector pipe runs one at a time. A core's own queues are computed ahead of the
clock: as soon as everything an operation waits for has a known time, its start is known. Only what is
shared (flows, bytes) needs the clock to get there.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import Any, Protocol, TypeAlias

from a2a3sim.models.bottleneck import Flow
from a2a3sim.models.clock import Clock
from a2a3sim.models.network import Network
from a2a3sim.models.operation import UNKNOWN, Cause, Move, Operation, Vector

__all__ = ["MovePipe", "VectorPipe"]

_Slot: TypeAlias = tuple[int, int, Operation | None]  # (time, tie, operation that held it)
_FREE: _Slot = (0, -1, None)  # a slot that nobody has held


class _Core(Protocol):
    """What a pipe asks of its core."""

    clock: Clock
    network: Network
    awaited_start: Operation | None

    def wake(self) -> None: ...

    def known(self, op: Operation, done: int) -> None: ...


def constrained_start(op: Operation, pipe: MovePipe | VectorPipe) -> int:
    """The earliest start of an operation by its issue and operands, or UNKNOWN; sets ``op.cause``.

    Where one of the operands has no known end yet, the pipe is called again once it has.
    """
    start = op.issued
    cause: Cause = ("issue", None)
    for dep in op.deps:
        end = dep.end
        if end == UNKNOWN:
            return _call_back(pipe, dep)
        if dep.writes:
            end = dep.visible
        # On a tie the operand is named: it comes before `issue` in the order of causes.
        if end >= start:
            start, cause = end, ("operand", dep)
    staged = op.staged
    if staged is not None:
        if staged.end == UNKNOWN:
            return _call_back(pipe, staged)
        # On a tie an operand comes before space, and space before issue.
        if staged.drained > start or (staged.drained == start and cause[0] == "issue"):
            start, cause = staged.drained, ("space", staged)
    op.cause = cause
    return start


def _call_back(pipe: MovePipe | VectorPipe, dep: Operation) -> int:
    """Have the pipe looked at once the end of ``dep`` is known; asked for once, however often it looks."""
    if pipe.waits_for is not dep:
        pipe.waits_for = dep
        if dep.dependents is None:
            dep.dependents = [pipe.pump]
        else:
            dep.dependents.append(pipe.pump)
    return UNKNOWN


class MovePipe:
    """MTE2, MTE3, or the scalar pipe's own loads and stores."""

    __slots__ = (
        "_armed",
        "_arrive",
        "_begin_flow",
        "_land",
        "_moving",
        "core",
        "endless",
        "free",
        "last",
        "pump",
        "queue",
        "waits_for",
    )  # fmt: skip

    def __init__(self, core: _Core, slots: int | None) -> None:
        self.core = core
        self.queue: deque[Move] = deque()
        self.endless = slots is None
        # A heap; the ties of operations are their numbers, from 0.
        self.free: list[_Slot] = [_FREE] if slots is None else [(0, n - slots, None) for n in range(slots)]
        self.last: Move | None = None  # the operation that started last
        self.waits_for: Operation | None = None  # the operation whose end the head of the queue waits to know
        self._moving: list[Move] = []  # operations in flight without a known end
        self._armed = UNKNOWN
        # Bound once: creating bound methods per operation would cost a tenth of a transfer.
        self.pump = self._pump
        self._begin_flow = self._flow
        self._arrive = self._arrived
        self._land = self._landed

    def _pump(self, _: Any = None) -> None:
        queue, free, core = self.queue, self.free, self.core
        while queue and free:
            op = queue[0]
            start = constrained_start(op, self)
            if start == UNKNOWN:
                return
            slot, _, holder = free[0]
            if slot >= start and holder is not None:
                if slot > core.clock.now and self._moving and self._could_free_before(slot):
                    return
                start, op.cause = slot, ("pipe", holder)
            last = self.last
            if last is not None and last.start > start:
                start, op.cause = last.start, ("pipe", last)
            queue.popleft()
            heappop(free)
            if self.endless:
                heappush(free, _FREE)
            op.start = start
            self.last = op
            if op is core.awaited_start:
                core.wake()
            self._begin(op, start)

    def _could_free_before(self, slot: int) -> bool:
        """Whether a move of unknown end might still free its slot earlier; then look again at that time."""
        now = self.core.clock.now
        if all(now + (op.path.tail if op.path.load else 0) >= slot for op in self._moving):
            return False
        if self._armed != slot:
            self._armed = slot
            self.core.clock.at(slot, self.pump)
        return True

    def _begin(self, op: Move, start: int) -> None:
        path = op.path
        begin = start + path.head
        now = self.core.clock.now
        if path.route is None and begin == now:
            self._finished(op, begin)  # nothing limits the transfer
        else:
            # Without bytes to move the end could be worked out ahead of the clock, but a run that keeps no
            # bytes has to do everything in the same order as one that does.
            self._moving.append(op)
            if begin == now:
                self._flow(op)
            else:
                self.core.clock.at(begin, self._begin_flow, op)

    def _flow(self, op: Move) -> None:
        path = op.path
        if path.route is None:
            self._moving.remove(op)
            self._finished(op, self.core.clock.now)
            self._pump()
        else:
            op.flow = self.core.network.start(op.nbytes, path.route, self._arrive, op)

    def _arrived(self, flow: Flow) -> None:
        op = flow.owner
        del flow.done, flow.owner, flow.left, flow.since, flow.tag  # a trace keeps flows, but no core
        self._moving.remove(op)
        self._finished(op, flow.finish)
        if self.queue:
            self._pump()

    def _finished(self, op: Move, drained: int) -> None:
        """The last byte has left its source at ``drained``; the rest of the operation is latency."""
        path = op.path
        op.drained = drained
        if path.load:
            if op.work is not None:
                op.work()
                op.work = None
            op.visible = op.end = release = drained + path.tail
        else:
            visible = op.visible = drained + path.tail
            op.end = visible + path.ack
            release = drained
            if op.work is not None:
                if path.tail == 0:
                    op.work()
                    op.work = None
                else:
                    self.core.clock.at(visible, self._land, op)
        heappush(self.free, (release, op.seq, op))
        self.core.known(op, op.visible)

    def _landed(self, op: Move) -> None:
        op.work()
        op.work = None


class VectorPipe:
    """The vector unit: one instruction at a time, its duration known at its start."""

    __slots__ = ("core", "free_at", "last", "pump", "queue", "waits_for")

    def __init__(self, core: _Core) -> None:
        self.core = core
        self.queue: deque[Vector] = deque()
        self.free_at = 0
        self.last: Vector | None = None
        self.waits_for: Operation | None = None
        self.pump = self._pump

    def _pump(self, _: Any = None) -> None:
        queue, core = self.queue, self.core
        while queue:
            op = queue[0]
            start = constrained_start(op, self)
            if start == UNKNOWN:
                return
            if self.free_at >= start and self.last is not None:
                start, op.cause = self.free_at, ("pipe", self.last)
            queue.popleft()
            op.start = start
            op.end = self.free_at = start + op.value
            self.last = op
            if op is core.awaited_start:
                core.wake()
            if op.work is not None:
                op.work()
                op.work = None
            core.known(op, op.end)
