"""Which earlier tasks a task must follow: those that used the same bytes, one of the two writing."""

from __future__ import annotations

from a2a3sim.language.layout import Layout
from a2a3sim.models.memory import region_accesses
from a2a3sim.models.overlap import overlaps

__all__ = ["AccessHistory"]


class _Part:
    """One region of a memory object that some task declared, and who uses it."""

    __slots__ = ("accesses", "high", "low", "neighbours", "readers", "writers")

    def __init__(self, layout: Layout) -> None:
        zeros = (0,) * len(layout.shape)
        self.accesses = region_accesses(
            None, layout.base, layout.strides, layout.dtype.itemsize, zeros, layout.shape
        )
        self.low = min(a.offset for a in self.accesses)
        self.high = max(a.offset + (a.rows - 1) * a.stride + a.row_bytes for a in self.accesses)
        self.neighbours: list[_Part] = [self]  # parts that share a byte with it
        self.readers: list[int] = []
        self.writers: list[int] = []

    def touches(self, other: _Part) -> bool:
        """Whether they share a byte."""
        if self.low >= other.high or other.low >= self.high:
            return False
        return any(overlaps(a, b) for a in self.accesses for b in other.accesses)


class AccessHistory:
    """Declared reads and writes of tasks, in program order."""

    def __init__(self) -> None:
        self._objects: dict[object, dict[tuple, _Part]] = {}  # by memory object and region

    def _part(self, owner: object, layout: Layout) -> _Part:
        parts = self._objects.setdefault(owner, {})
        key = (layout.base, layout.shape, layout.strides, layout.dtype.itemsize)
        part = parts.get(key)
        if part is None:
            part = _Part(layout)
            for other in parts.values():
                if part.touches(other):
                    part.neighbours.append(other)
                    other.neighbours.append(part)
            parts[key] = part
        return part

    def enter(self, task: int, accesses) -> set[int]:
        """Enter a task; returns the earlier ones that it must follow.

        Args:
            accesses: (memory object, layout, reads, writes) of each tensor.
        """
        before: set[int] = set()
        used = [(self._part(owner, layout), reads, writes) for owner, layout, reads, writes in accesses]
        for part, _, writes in used:
            for other in part.neighbours:
                before.update(other.writers)
                if writes:
                    before.update(other.readers)
        for part, reads, writes in used:
            if writes:
                # Whoever comes later follows this task, and through it everybody before.
                part.writers, part.readers = [task], []
            elif reads:
                part.readers.append(task)
        before.discard(task)
        return before
