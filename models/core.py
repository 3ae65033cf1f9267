"""One vector core while it runs one kernel: the scalar pipe that issues, and the three pipes it feeds.

The scalar pipe's time, ``time``, may run ahead of the clock while it only issues to its own queues; before
it observes anything shared the clock first reaches it (`sync`). It blocks, and the kernel switches, only
where the machine would: a wait, a scalar read, a fence, no room in a queue or in UB.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from a2a3sim.models.clock import Clock
from a2a3sim.models.gate import Gate
from a2a3sim.models.network import Network
from a2a3sim.models.operation import UNKNOWN, Cause, Lane, Move, Operation, Signal, Vector
from a2a3sim.models.overlap import OpenAccesses
from a2a3sim.models.pipe import MovePipe, VectorPipe
from a2a3sim.models.polling import Polling
from a2a3sim.models.signals import Signals
from a2a3sim.models.ub import TileSpace

__all__ = ["Core", "CoreCosts"]


class CoreCosts(NamedTuple):
    """What one core of one device costs and holds; times in ps."""

    issue: int  # the scalar pipe issues one operation
    notify_issue: int  # the same for a notify
    wait_issue: int  # the same for a wait
    moves_in_flight: int | None  # of a pipe at a time; None: no limit
    queue: int | None  # operations a pipe's queue holds; None: no limit
    ub: int | None  # bytes for tiles; None: no limit


class Core:
    """A core in one lane. The front end builds operations and hands them to `issue`, `hold`, `wait`, …

    Args:
        clock: `a2a3sim.engine.Engine` or anything with ``now``, ``at``, ``park``, ``wake``.
        network, signals: the shared parts of the machine.
        fences: ``statement``, ``notify`` or ``explicit``.
    """

    def __init__(
        self,
        clock: Clock,
        network: Network,
        signals: Signals,
        lane: Lane,
        costs: CoreCosts,
        fences: str,
        start: int,
    ) -> None:
        self.clock = clock
        self.network = network
        self.signals = signals
        self.lane = lane
        self.costs = costs
        self.fences = fences
        self.time = lane.start = start
        self.after: Cause | None = (
            "start",
            None,
        )  # what the scalar pipe did last; None: issued its operation
        self.kernel: Any = None  # the thread of control, for parking
        self.parked_on: Any = None
        slots = costs.moves_in_flight
        self.pipes: dict[str, Any] = {  # MovePipe or VectorPipe
            "MTE2": MovePipe(self, slots),
            "MTE3": MovePipe(self, slots),
            "V": VectorPipe(self),
            "S": MovePipe(self, 1),
        }
        self.pending: dict[str, list[Operation]] | None
        self.pending = {"MTE2": [], "MTE3": [], "V": []} if costs.queue is not None else None
        self.open_accesses = OpenAccesses()
        self.unknown: dict[Operation, None] = {}  # memory accesses whose end is not known
        self.accesses = 0
        self.memory_done = self.drained_done = self.last_time = start
        self.memory_last: Operation | None = None  # all accesses of known end are complete
        self.drained_last: Operation | None = None  # the same for what has left the core or arrived
        self.running = 0  # operations and notifies not known to be over
        self.self_notifies = 0
        self.sent: dict[int, tuple[int, Signal]] = {}  # rank -> when the newest notify is applied there
        self.gate: Gate | None = None
        self.last: Operation | None = None  # the latest known end
        self.ub = None if costs.ub is None else TileSpace(self, costs.ub)
        self.awaited_start: Operation | None = None
        self.polling = Polling()
        self._waiting = ""  # "idle", "self" while parked for one of these
        self._calls: deque[tuple[Callable[[Operation], None], Operation]] = deque()  # of `known`
        self._calling = False

    # ---- the scalar pipe issues -------------------------------------------------------------------

    def issue(self, op: Move | Vector, cost: int | None = None) -> None:
        """Put an operation into its pipe's queue; the kernel blocks only if there is no room."""
        costs, lane = self.costs, self.lane
        pipe = self.pipes[op.pipe]
        op.seq = len(lane.operations)
        lane.operations.append(op)
        if self.pending is not None and op.pipe != "S":
            pending = self.pending[op.pipe]
            self._make_room_in_queue(pending, costs.queue)  # type: ignore[arg-type]  # pending: it is limited
            pending.append(op)
        op.begun, op.after = self.time, self.after
        self.time = op.issued = self.time + (costs.issue if cost is None else cost)
        self.after = None
        self.running += 1
        if op.path is not None:
            self.accesses += 1
            self.unknown[op] = None
            before = self.open_accesses.add(op, self.time)
            if before:
                op.deps = (*op.deps, *before)
        queue = pipe.queue
        queue.append(op)
        if len(queue) == 1:  # else what keeps the head back will have the pipe looked at
            pipe.pump()

    def known(self, op: Operation, done: int) -> None:
        """The machine knows when ``op`` is over; called by its pipe."""
        if op.path is not None:
            del self.unknown[op]
            if done > self.memory_done:
                self.memory_done, self.memory_last = done, op
            until = op.drained if op.writes else op.end
            if until > self.drained_done:
                self.drained_done, self.drained_last = until, op
        if op.tiles:
            self.ub.over(op)  # type: ignore[union-attr]  # only where UB is limited do operations hold tiles
        self.running -= 1
        if done > self.last_time:
            self.last_time, self.last = done, op
        callbacks = op.dependents
        if callbacks is not None:
            op.dependents = None
            if self._calling:
                # One after the other: without latencies a whole chain of operations ends in one instant.
                self._calls.extend([(callback, op) for callback in callbacks])
            else:
                self._calling, calls = True, self._calls
                for callback in callbacks:
                    callback(op)
                while calls:
                    callback, over = calls.popleft()
                    callback(over)
                self._calling = False
        if op.tiles:
            self.ub.look_again(op)  # type: ignore[union-attr]  # as above
        if self._waiting == "idle" and self.running == 0:
            self._waiting = ""
            self.wake()
        op.deps = op.tiles = ()

    # ---- the scalar pipe blocks -------------------------------------------------------------------

    def park(self, reason: Any) -> None:
        """Let other kernels run until `wake`."""
        self.parked_on = reason
        self.clock.park(reason)
        self.parked_on = None

    def wake(self, _: Any = None) -> None:
        """Let this core's kernel go on."""
        self.awaited_start = None
        self.clock.wake(self.kernel)

    def stop(self) -> None:
        """The run is over: what the kernel's code still asks for while it is being ended has no effect."""
        for name in ("issue", "notify", "wait", "fence", "mark"):
            setattr(self, name, self._stopped)
        if self.ub is not None:
            setattr(self.ub, "take", self._stopped)  # noqa: B010

    def _stopped(self, *_args: Any) -> NoReturn:
        while True:
            self.clock.park("the end of the run")

    def sync(self) -> None:
        """Let the clock reach the scalar pipe's time."""
        if self.clock.now < self.time:
            self.clock.at(self.time, self.wake)
            self.park("time")

    def read(self, op: Move) -> None:
        """Issue a scalar read and stand still until its value is there."""
        self.sync()
        self.issue(op)
        self.hold(op)
        polling = self.polling
        polling.enter(op)
        if polling.timeless:
            # No time passes by itself: go on when something has happened.
            self.clock.after_next(self.wake)
            self.park("time")
            if self.clock.now > self.time:
                op.end = op.visible = self.time = self.clock.now
                self.after = ("fence", op)

    def hold(self, op: Operation) -> None:
        """The scalar pipe stands still until ``op`` is over (acknowledged)."""
        if op.end == UNKNOWN:
            if op.dependents is None:
                op.dependents = []
            op.dependents.append(self.wake)
            self.park(op)
        if op.end > self.time:
            self.time = op.end
            self.after = ("fence", op)

    def fence(self, op: Signal, visible: bool) -> None:
        """Stand still until the core's earlier accesses are visible everywhere, or merely drained."""
        self._scalar(op, self.costs.issue)
        op.start = self.time
        for earlier in [*self.unknown, *self.pipes["V"].queue]:
            if earlier.end == UNKNOWN:
                self._hold_until_known(earlier)
        vector = self.pipes["V"]
        if visible:
            until, last = self.memory_done, self.memory_last
        elif vector.free_at > self.drained_done:
            until, last = vector.free_at, vector.last
        else:
            until, last = self.drained_done, self.drained_last
        if until > self.time:
            self.time = until
            self.after = ("fence", last)
        op.end = self.time
        op.cause = ("issue", None)

    def mark(self, op: Signal | Vector) -> None:
        """Enter a marker into the trace; it takes no time."""
        self._scalar(op, 0)
        op.start = op.end = self.time
        op.cause = ("issue", None)

    def _hold_until_known(self, op: Operation) -> None:
        if op.dependents is None:
            op.dependents = []
        op.dependents.append(self.wake)
        self.park(op)

    def _scalar(self, op: Signal | Vector, cost: int) -> None:
        op.seq = len(self.lane.operations)
        self.lane.operations.append(op)
        op.begun, op.after = self.time, self.after
        self.time = op.issued = self.time + cost
        self.after = None

    def _make_room_in_queue(self, queue: list[Operation], depth: int) -> None:
        while queue and queue[0].start != UNKNOWN and queue[0].start <= self.time:
            queue.pop(0)
        if len(queue) < depth:
            return
        first = queue[len(queue) - depth]
        if first.start == UNKNOWN:
            self.awaited_start = first
            self.park(first)
        if first.start > self.time:
            self.time = first.start
            self.after = ("pipe", first)

    # ---- signals ----------------------------------------------------------------------------------

    def notify(self, op: Signal, latency: int, own: bool) -> None:
        """Queue a notify; it leaves when the fence mode lets it, without holding the scalar pipe.

        Args:
            latency: one way to the target, ps.
            own: the target is this core's own device.
        """
        self._scalar(op, self.costs.notify_issue)
        self.running += 1
        if own:
            self.self_notifies += 1
        op.work = (latency, own)
        if self.fences == "explicit" or not self.unknown:
            if self.fences == "explicit":
                self.leave(op, op.issued, None)
            else:
                self.leave(op, self.memory_done, self.memory_last)
            return
        gate = self.gate
        if gate is None or gate.newest != self.accesses:
            gate = self.gate = Gate(self, op.seq)
        gate.notifies.append(op)

    def leave(self, op: Signal, gate: int, cause: Operation | None) -> None:
        """A notify leaves its core: when issued, or when the accesses before it are complete."""
        if gate > op.issued and cause is not None:
            op.start, op.cause = gate, ("fence", cause)
        else:
            op.start, op.cause = op.issued, ("issue", None)
        latency, _ = op.work
        self.signals.send(op, op.start + latency, self)

    def notified(self, op: Signal) -> None:
        """One of this core's notifies has been applied at its target."""
        _, own = op.work
        op.work = None
        self.running -= 1
        if op.end > self.last_time:
            self.last_time, self.last = op.end, op
        if own:
            self.self_notifies -= 1
            if self._waiting == "self" and self.self_notifies == 0:
                self._waiting = ""
                if op.end > self.time:
                    self.time = op.end
                    self.after = ("signal", op)
                self.wake()
        if self._waiting == "idle" and self.running == 0:
            self._waiting = ""
            self.wake()

    def wait(self, op: Signal) -> None:
        """Poll a local cell until its predicate holds."""
        if self.self_notifies:
            # A notify to the own rank is applied before any later wait of the same core.
            self._waiting = "self"
            self.park(op)
        self._scalar(op, self.costs.wait_issue)
        op.start, op.cause = op.issued, ("issue", None)
        if not self.signals.wait(op, self):
            self.park(op)
        if op.end > self.time or op.by is not None:
            self.time = op.end
            self.after = ("signal", op)

    # ---- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """The kernel's code has returned: wait until its pipes are drained and its effects applied."""
        if self.running:
            self._waiting = "idle"
            self.park("the end of its operations")
        lane = self.lane
        if self.ub is not None:
            self.ub.measure(lane)
        if self.last_time > self.time or (self.last_time == self.time and self.last is not None):
            lane.end, lane.last = self.last_time, ("pipe", self.last)
        else:
            lane.end, lane.last = self.time, self.after or ("issue", lane.operations[-1])
        if self.clock.now < lane.end:
            self.clock.at(lane.end, self.wake)
            self.park("time")
