"""Which of a core's own earlier accesses to global memory a new one must follow (program order per byte)."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TypeAlias

from a2a3sim.models.memory import Access, Memory
from a2a3sim.models.operation import UNKNOWN, Operation

__all__ = ["OpenAccesses", "overlaps"]

_Span: TypeAlias = tuple[int, int, Operation, Access]  # (offset, number, operation, access)


def overlaps(a: Access, b: Access) -> bool:
    """Whether two rectangular byte regions of the same memory object share a byte."""
    if b.offset < a.offset:
        a, b = b, a
    if b.offset >= a.offset + (a.rows - 1) * a.stride + a.row_bytes:
        return False
    if a.rows == 1 and b.rows == 1:
        return True
    if a.rows > b.rows:
        few, many = b, a
    else:
        few, many = a, b
    for row in range(few.rows):
        start = few.offset + row * few.stride
        # The first row of `many` that ends behind this row's start.
        k = max(0, -(-(start + 1 - many.row_bytes - many.offset) // many.stride)) if many.rows > 1 else 0
        at = many.offset + k * many.stride
        if k < many.rows and start - many.row_bytes < at < start + few.row_bytes:
            return True
    return False


class _Spans:
    """The reads or the writes of one memory object that may not be over.

    They are filed by offset, apart for each power of two in size: those that can overlap with a region are
    then near it in each list, and finding them does not take longer the more there are elsewhere.
    """

    __slots__ = ("_count", "_fresh", "_most", "_sizes")

    def __init__(self) -> None:
        self._fresh: list[_Span] = []  # entered since the last look
        self._sizes: dict[int, list[_Span]] = {}  # size -> smaller ones
        self._count = 0  # entries so far
        self._most = 64

    def enter(self, op: Operation, access: Access) -> None:
        self._fresh.append((access[1], self._count, op, access))
        self._count += 1

    def conflicts(self, access: Access, now: int, before: list[Operation], forget: bool) -> None:
        """Add to ``before`` the operations whose regions overlap; with ``forget``, drop what lies within."""
        if self._fresh:
            self._file(now)
        _, low, rows, row_bytes, stride = access
        high = low + (rows - 1) * stride + row_bytes
        for size, spans in self._sizes.items():
            first = bisect_left(spans, (low - size,))
            last = bisect_left(spans, (high,), first)
            if first == last:
                continue
            kept = []
            for span in spans[first:last]:
                _, _, op, other = span
                if op.end != UNKNOWN and op.end <= now:
                    continue
                if overlaps(access, other):
                    before.append(op)
                    if forget and rows == 1 and low <= other[1] and _end(other) <= high:
                        continue
                kept.append(span)
            if len(kept) < last - first:
                spans[first:last] = kept

    def _file(self, now: int) -> None:
        fresh, self._fresh = self._fresh, []
        sizes = self._sizes
        for span in fresh:
            _, _, op, access = span
            if op.end == UNKNOWN or op.end > now:
                size = 1 << (_end(access) - access[1]).bit_length()
                spans = sizes.get(size)
                if spans is None:
                    sizes[size] = [span]
                else:
                    insort(spans, span)
        if self._count > self._most:
            self._sweep(now)

    def _sweep(self, now: int) -> None:
        """Drop what is over; as rarely as keeps its cost below that of entering."""
        left = 0
        for size, spans in list(self._sizes.items()):
            spans[:] = [s for s in spans if s[2].end == UNKNOWN or s[2].end > now]
            left += len(spans)
            if not spans:
                del self._sizes[size]
        self._most = self._count + max(64, left)


def _end(access: Access) -> int:
    _, offset, rows, row_bytes, stride = access
    return offset + (rows - 1) * stride + row_bytes


class OpenAccesses:
    """A core's reads and writes that may not be over, by memory object."""

    __slots__ = ("_reads", "_writes")

    def __init__(self) -> None:
        self._reads: dict[Memory, _Spans] = {}
        self._writes: dict[Memory, _Spans] = {}

    def add(self, op: Operation, now: int) -> list[Operation]:
        """Enter an operation's accesses; returns the earlier ones that it must follow, the latest first.

        Args:
            now: the scalar pipe's time; what is over by then orders nothing.
        """
        before: list[Operation] = []
        reads, writes = self._reads, self._writes
        for access in op.reads:
            memory = access[0]
            if memory in writes:
                writes[memory].conflicts(access, now, before, False)
            found = reads.get(memory)
            if found is None:
                found = reads[memory] = _Spans()
            found.enter(op, access)
        for access in op.writes:
            memory = access[0]
            # What follows the new write also follows all that the new write covers.
            if memory in reads:
                reads[memory].conflicts(access, now, before, True)
            found = writes.get(memory)
            if found is None:
                found = writes[memory] = _Spans()
            else:
                found.conflicts(access, now, before, True)
            found.enter(op, access)
        if len(before) > 1:
            # They end about in the order of the program: whoever waits for the latest seldom waits again.
            before = sorted(set(before), key=_number, reverse=True)
        return before


def _number(op: Operation) -> int:
    return op.seq
