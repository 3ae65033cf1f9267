"""The clock and the kernels: SimPy owns time and events, a kernel is plain blocking Python in a greenlet.

This is the only file that knows greenlet. Three rules keep it sound: the hub (the greenlet that steps the
clock) is the parent of every kernel; nothing steps the clock from inside a kernel; and every run ends by
throwing ``GreenletExit`` into the kernels that are still parked, since greenlets stay out of Python's
cycle collection and would leak.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable
from typing import Any

import greenlet
import simpy
from simpy.core import EmptySchedule
from simpy.events import Event

from a2a3sim.errors import A2A3Error

__all__ = ["LAST", "NORMAL", "SETTLE", "Engine", "Kernel", "current_kernel"]

NORMAL, SETTLE, LAST = 1, 2, 3  # priorities within one instant: events, then settling, then polls

# Generation-0 collections are what a simulation pays for its many short-lived records.
_GC_THRESHOLD = 100_000


class _Call(Event):
    """A SimPy event that calls ``fn(arg)`` when its time comes."""

    def __init__(self, env: simpy.Environment, fn: Callable[[Any], None], arg: Any) -> None:
        self.env = env
        self.callbacks = [self._run]
        self._value = arg
        self._ok = True
        self._fn = fn

    def _run(self, _event: Event) -> None:
        self._fn(self._value)


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


class Engine:
    """One simulation: an integer-picosecond SimPy clock and the kernels that run on it.

    Raises:
        A2A3Error: when created or run from inside a kernel.
    """

    def __init__(self) -> None:
        if current_kernel() is not None:
            raise A2A3Error("a program cannot be run from inside a kernel: call it from the host")
        self.env = simpy.Environment(initial_time=0)
        self.events = 0
        self.switches = 0
        self._hub = greenlet.getcurrent()
        self._ready: deque[Kernel] = deque()
        self._kernels: dict[Kernel, None] = {}  # unfinished ones, in order of creation

    @property
    def now(self) -> int:
        """The current time in ps."""
        return self.env._now

    def at(self, time: int, fn: Callable[[Any], None], arg: Any = None, priority: int = NORMAL) -> None:
        """Call ``fn(arg)`` at ``time`` (ps, not in the past)."""
        env = self.env
        env.schedule(_Call(env, fn, arg), priority, time - env._now)

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

    def run(self) -> None:
        """Process events until none is left; unfinished kernels then wait for ever (see `parked`)."""
        if greenlet.getcurrent() is not self._hub:
            raise A2A3Error("the clock can only be run by the thread of control that created the engine")
        thresholds = gc.get_threshold()
        gc.set_threshold(_GC_THRESHOLD, 20, 50)
        step, ready, count = self.env.step, self._ready, 0
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
            gc.set_threshold(*thresholds)

    def close(self) -> None:
        """Kill every unfinished kernel; a simulation that failed leaves nothing behind."""
        for kernel in list(self._kernels):
            kernel.throw(greenlet.GreenletExit)
        self._kernels.clear()
        self._ready.clear()
