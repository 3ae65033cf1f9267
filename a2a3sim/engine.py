"""The clock and the kernels: SimPy owns time and events, a kernel is plain blocking Python in a greenlet.

This is the only file that knows greenlet. Three rules keep it sound: the hub (the greenlet that steps the
clock) is the parent of every kernel; nothing steps the clock from inside a kernel; and every run ends by
throwing ``GreenletExit`` into the kernels that are still parked, since greenlets stay out of Python's
cycle collection and would leak.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop
from typing import Any

import greenlet
import simpy
from simpy.core import EmptySchedule
from simpy.events import Event

from a2a3sim.errors import A2A3Error

__all__ = ["LAST", "NORMAL", "SETTLE", "Engine", "Kernel", "current_kernel"]

NORMAL, SETTLE, LAST = 1, 2, 3  # priorities within one instant: events, then settling, then polls

_PATIENCE = 1000  # times that a kernel is asked to end


def _deliver(call: _Call) -> None:
    call.fn(call.arg)


class _Call(Event):
    """A SimPy event that calls ``fn(arg)`` when its time comes."""

    # What SimPy looks at, shared by all: a call is born triggered and nobody else waits for it.
    callbacks: Any = (_deliver,)
    _ok = True

    def __init__(self, fn: Callable[[Any], None], arg: Any) -> None:
        self.fn = fn
        self.arg = arg


class Kernel(greenlet.greenlet):
    """One kernel's thread of control; ``context`` is whatever the front end hangs on it."""

    def __init__(self, engine: Engine, fn: Callable[[], None], context: Any) -> None:
        super().__init__(fn, engine._hub)
        self.engine = engine
        self.context = context
        self.waits_for: Any = None  # what it is parked on, for the deadlock report


def current_kernel() -> Kernel | None:
    """The kernel that is running now, or None outside of kernels."""
    running = greenlet.getcurrent()
    return running if isinstance(running, Kernel) else None


class Engine(simpy.Environment):
    """One simulation: a SimPy environment with an integer-picosecond clock, and the kernels that run on it.

    Args:
        start: the clock's first time, ps.

    Raises:
        A2A3Error: when created or run from inside a kernel.
    """

    now = 0  # a plain attribute instead of SimPy's property: it is read more often than events happen
    _now: int
    _queue: Any  # SimPy's heap of (time, priority, number, event)

    def __init__(self, start: int = 0) -> None:
        if current_kernel() is not None:
            raise A2A3Error("a program cannot be run from inside a kernel: call it from the host")
        super().__init__(initial_time=start)
        self.now = start
        self.events = 0
        self.switches = 0
        self._hub = greenlet.getcurrent()
        self._ready: deque[Kernel] = deque()
        self._later: list[Callable[[Any], None]] = []
        self._kernels: dict[Kernel, None] = {}  # unfinished ones, in order of creation

    def at(self, time: int, fn: Callable[[Any], None], arg: Any = None, priority: int = NORMAL) -> None:
        """Call ``fn(arg)`` at ``time`` (ps, not in the past)."""
        self.schedule(_Call(fn, arg), priority, time - self.now)  # type: ignore[arg-type]  # SimPy knows two priorities

    def step(self) -> None:
        """Process the next event, as SimPy's own, with ``now`` kept up to date.

        Raises:
            EmptySchedule: there is none.
        """
        try:
            self._now, _, _, event = heappop(self._queue)
        except IndexError:
            raise EmptySchedule from None
        self.now = self._now
        callbacks, event.callbacks = event.callbacks, None
        for callback in callbacks:
            callback(event)
        if not event._ok:
            raise event._value

    def after_next(self, fn: Callable[[Any], None]) -> None:
        """Call ``fn(None)`` at the end of the next instant in which something happens; now if nothing will."""
        self._later.append(fn)
        if len(self._later) == 1:
            self.at(self.now, self._look_ahead, None, LAST)

    def _look_ahead(self, _: Any) -> None:
        self.at(self._queue[0][0] if self._queue else self.now, self._go_on, None, LAST)

    def _go_on(self, _: Any) -> None:
        later, self._later = self._later, []
        for fn in later:
            fn(None)

    def spawn(self, fn: Callable[[], None], context: Any) -> Kernel:
        """Create a kernel that starts when the hub next looks at its ready queue."""
        kernel = Kernel(self, fn, context)
        self._kernels[kernel] = None
        self._ready.append(kernel)
        return kernel

    def park(self, reason: Any) -> None:
        """Give control back to the hub until somebody calls `wake`; only from inside a kernel."""
        kernel = greenlet.getcurrent()
        kernel.waits_for = reason
        self.switches += 1
        self._hub.switch()
        kernel.waits_for = None

    def wake(self, kernel: Kernel) -> None:
        """Let a parked kernel continue in this instant, after the event that is being processed."""
        self._ready.append(kernel)

    def parked(self) -> list[Kernel]:
        """The kernels that have not finished, in order of creation."""
        return list(self._kernels)

    def run(self) -> None:  # type: ignore[override]  # a run ends with the last event, not until one
        """Process events until none is left; unfinished kernels then wait for ever (see `parked`)."""
        if greenlet.getcurrent() is not self._hub:
            raise A2A3Error("the clock can only be run by the thread of control that created the engine")
        step, ready, count = self.step, self._ready, 0
        try:
            while True:
                while ready:
                    kernel = ready.popleft()
                    kernel.switch()
                    if kernel.dead:
                        del self._kernels[kernel]
                step()
                count += 1
        except EmptySchedule:
            pass
        finally:
            self.events += count

    def close(self) -> None:
        """Kill every unfinished kernel; a simulation that failed leaves nothing behind."""
        for kernel in list(self._kernels):
            # A kernel that catches everything and parks again is told again, but not for ever.
            for _ in range(_PATIENCE):
                with suppress(Exception):  # raised on the way out: the run has its result already
                    kernel.throw(greenlet.GreenletExit)
                if kernel.dead:
                    break
        self._kernels.clear()
        self._ready.clear()
