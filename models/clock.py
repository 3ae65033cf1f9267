"""What the hardware asks of the clock that drives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Clock"]


class Clock(Protocol):
    """`a2a3sim.engine.Engine`, or anything else that keeps time and holds threads of control; times in ps."""

    now: int

    def at(self, time: int, fn: Callable[[Any], None], arg: Any = None, priority: int = 1) -> None:
        """Call ``fn(arg)`` at ``time``."""

    def after_next(self, fn: Callable[[Any], None]) -> None:
        """Call ``fn(None)`` at the end of the next instant in which something happens."""

    def park(self, reason: Any) -> None:
        """Let others run until `wake`."""

    def wake(self, kernel: Any) -> None:
        """Let a parked thread of control go on."""
