"""A core whose scalar pipe is held for a while before some of its operations: what an interrupt, a slow fetch
or a busy neighbour may do to any core at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from a2a3sim.models.core import Core
from a2a3sim.models.fabric import Path
from a2a3sim.models.operation import Move, Operation, Signal, Vector

__all__ = ["HeldCore", "later"]


def later(path: Path, time: int) -> Path:
    """The same path for a transfer that takes ``time`` ps longer: a load's request, a store's bytes."""
    slow = Path.__new__(Path)
    for name in Path.__slots__:
        setattr(slow, name, getattr(path, name))
    if path.load:
        slow.head += time
    else:
        slow.tail += time
    return slow


class HeldCore(Core):
    """A core that asks before every operation how long to stand still.

    Args:
        before: called with each operation in program order, before it is issued; returns a time in ps.
    """

    def __init__(self, before: Callable[[Operation], int], *args: Any) -> None:
        super().__init__(*args)
        self._before = before

    def issue(self, op: Move | Vector, cost: int | None = None) -> None:
        self.time += self._before(op)
        super().issue(op, cost)

    def _scalar(self, op: Signal | Vector, cost: int) -> None:
        self.time += self._before(op)
        super()._scalar(op, cost)
