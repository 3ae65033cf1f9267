"""Which of a core's own earlier accesses to global memory a new one must follow (program order per byte)."""

from __future__ import annotations

from a2a3sim.models.operation import UNKNOWN, Access, Operation

__all__ = ["OpenAccesses", "overlaps"]


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
        if k < many.rows and many.offset + k * many.stride < start + few.row_bytes:
            if many.offset + k * many.stride + many.row_bytes > start:
                return True
    return False


class OpenAccesses:
    """A core's reads and writes that may not be over, by memory object."""

    __slots__ = ("_reads", "_writes")

    def __init__(self) -> None:
        self._reads: dict = {}
        self._writes: dict = {}

    def add(self, op: Operation, now: int) -> list[Operation]:
        """Enter an operation's accesses; returns the earlier ones that it must follow.

        Args:
            now: the scalar pipe's time; what is over by then orders nothing.
        """
        before: list[Operation] = []
        reads, writes = self._reads, self._writes
        for access in op.reads:
            memory = access[0]
            if memory in writes:
                self._conflicts(writes, op, access, now, before)
            found = reads.get(memory)
            if found is None:
                reads[memory] = [(op, access)]
            else:
                found.append((op, access))
        for access in op.writes:
            memory = access[0]
            if memory in writes:
                self._conflicts(writes, op, access, now, before)
            if memory in reads:
                self._conflicts(reads, op, access, now, before)
            writes.setdefault(memory, []).append((op, access))
        return before

    @staticmethod
    def _conflicts(
        entries: dict, op: Operation, access: Access, now: int, before: list[Operation]
    ) -> None:
        still = [e for e in entries[access.memory] if e[0].end == UNKNOWN or e[0].end > now]
        if not still:
            del entries[access.memory]
            return
        entries[access.memory] = still
        for earlier, other in still:
            if earlier is not op and overlaps(access, other):
                before.append(earlier)
