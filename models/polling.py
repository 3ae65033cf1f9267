"""A core that reads scalars over and over: when to ask whether anything will ever change."""

from __future__ import annotations

from a2a3sim.models.memory import Access
from a2a3sim.models.operation import Operation

__all__ = ["Polling"]

_READS = 20_000  # repeated reads before the question, and
_EACH = 2_000  # of each element on average: who works through a table may come back to it
_INSTANT = 64  # repeated reads within one instant


class Polling:
    """The scalar reads that a core has made in a row, with no other operation in between.

    Attributes:
        again: reads of elements that had been read before.
    """

    __slots__ = ("_again_now", "_asked", "_elements", "_last", "_now", "again")

    def __init__(self) -> None:
        self.again = 0
        self._elements: set[Access] = set()
        self._last = -2  # number of the latest read
        self._asked = 0
        self._now, self._again_now = -1, 0

    def enter(self, op: Operation) -> None:
        """The core has read once more."""
        element = op.reads[0]
        if op.seq != self._last + 1:
            self.again = self._asked = self._again_now = 0
            self._elements = {element}
        elif element in self._elements:
            self.again += 1
            if op.end != self._now:
                self._now, self._again_now = op.end, 0
            self._again_now += 1
        else:
            self._elements.add(element)
        self._last = op.seq

    @property
    def long(self) -> bool:
        """It has gone on for so long that it looks like a wait; true once in a while."""
        most = max(_READS, _EACH * len(self._elements))
        if self.again < self._asked + most:
            return False
        self._asked = self.again
        return True

    @property
    def timeless(self) -> bool:
        """It goes on without time passing, as it can where an access costs nothing."""
        if self._again_now < _INSTANT:
            return False
        self._again_now = 0
        return True
