"""The barrier over the blocks of one kernel on one device."""

from __future__ import annotations

from a2a3sim.models.clock import Clock
from a2a3sim.models.core import Core
from a2a3sim.models.operation import Signal

__all__ = ["BlockBarrier"]


class BlockBarrier:
    """All blocks arrive with their earlier accesses complete; all leave together, ``cost`` ps after the last."""

    def __init__(self, clock: Clock, blocks: int, cost: int) -> None:
        self.clock = clock
        self.blocks = blocks
        self.cost = cost
        self._arrived: list[tuple[Core, Signal]] = []

    def arrive(self, core: Core, op: Signal) -> None:
        """Block the core until its siblings have come too."""
        core.fence(op, visible=core.fences != "explicit")
        op.end = -1  # not over: it has only arrived
        core.sync()
        self._arrived.append((core, op))
        if len(self._arrived) < self.blocks:
            core.park(op)
        else:
            arrived, self._arrived = self._arrived, []
            leave = self.clock.now + self.cost
            order = len(core.lane.operations)  # any number shared by the generation would do
            for other, its in arrived:
                its.by = op if its is not op else None
                its.order = order
                its.end = leave
                other.time = leave
                other.after = ("signal", its)
                if other is not core:
                    other.wake()
