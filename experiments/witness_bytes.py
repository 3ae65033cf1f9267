"""The bytes of single accesses in repetitions of a call: taken down, and told where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from a2a3sim.checks import slices_of
from a2a3sim.run import Again, Call
from a2a3sim.trace import Access, Memory, Operation, resolve_site

__all__ = ["Record", "changed_outputs", "changed_places"]


@dataclass
class Seen:
    """What one operation touched in one repetition."""

    op: Operation
    access: Access
    before: bytes = b""
    after: bytes = b""


@dataclass
class Record:
    """Watches some operations of a repetition and takes down the bytes that they read, or found and left."""

    wanted: set[tuple]
    seen: dict[tuple, Seen] = field(default_factory=dict)

    def __call__(self, op: Operation, number: int) -> None:
        place = resolve_site(op.site)
        key = (op.lane.rank, op.lane.core, place.file, place.line, number)
        regions = op.reads or op.writes
        if key not in self.wanted or not regions:
            return
        seen = self.seen[key] = Seen(op, regions[0])
        work = op.work
        if work is None:
            return

        def watched() -> None:
            seen.before = _bytes_of(seen.access)
            work()
            seen.after = _bytes_of(seen.access)

        op.work = watched


def _bytes_of(access: Access) -> bytes:
    memory, offset, rows, row_bytes, stride = access
    if memory.data is None:
        return b""
    return b"".join(
        memory.data[offset + r * stride : offset + r * stride + row_bytes].tobytes() for r in range(rows)
    )


def changed_places(
    call: Call, after: Again, usual: Record, held: Record, places: Sequence[tuple]
) -> Iterator[dict[str, Any]]:
    """Reads that took other bytes than usual; where both are writes, what stands there in the end.

    Args:
        places: of two operations that touch common bytes.
    """
    both = [
        (usual.seen[place], held.seen[place])
        for place in places
        if place in usual.seen and place in held.seen
    ]
    for was, now in both:
        if not was.op.writes:
            verb = f"rank {was.op.lane.rank}'s {was.op.kind} gets"
            yield from _difference(call, after, was, was.before, now.before, verb)
    if len(both) == 2 and all(was.op.writes for was, _ in both):
        was, now = both[0]
        verb = "in the end there stand"
        yield from _difference(call, after, was, _bytes_of(was.access), _bytes_of(now.access), verb)


def _difference(
    call: Call, after: Again, seen: Seen, before: bytes, now: bytes, verb: str
) -> Iterator[dict[str, Any]]:
    if before == now or len(before) != len(now):
        return
    access, op = seen.access, seen.op
    memory = access.memory
    dtype = _dtype_of(call, after, memory)
    at = np.flatnonzero(np.frombuffer(before, np.uint8) != np.frombuffer(now, np.uint8))
    low, high = int(at[0]), int(at[-1]) + 1
    if dtype is not None and len(before) % dtype.itemsize == 0:
        low, high = low // dtype.itemsize * dtype.itemsize, -(-high // dtype.itemsize) * dtype.itemsize
        was: float | str
        became: float | str
        was, became = (float(np.frombuffer(b, dtype)[low // dtype.itemsize]) for b in (before, now))
        values = f"{was:.6g} -> {became:.6g}"
    else:
        was, became = (b[low : low + 8].hex(" ") for b in (before, now))
        values = f"{was} -> {became}"
    first, last = _offset(access, low), _offset(access, high - 1)
    yield {
        "memory": memory.name,
        "rank": memory.rank,
        "bytes": [first, last + 1],
        "before": was,
        "after": became,
        "operation": op.kind,
        "by_rank": op.lane.rank,
        "text": f"{verb} other bytes: {memory.name} of rank {memory.rank}, bytes {first}-{last}: {values}",
    }


def _offset(access: Access, number: int) -> int:
    """Where in the memory object the byte of a region lies."""
    return access.offset + number // access.row_bytes * access.stride + number % access.row_bytes


def changed_outputs(call: Call, before: Again, after: Again) -> Iterator[dict[str, Any]]:
    """Results that differ."""
    for argument in call.arguments:
        if argument.direction == "in":
            continue
        old, new = before.outputs[argument.name].ravel(), after.outputs[argument.name].ravel()
        at = np.flatnonzero(~((old == new) | (np.isnan(old) & np.isnan(new))))
        if not len(at):
            continue
        first, size = int(at[0]), argument.layout.dtype.itemsize
        rank = next((s.rank for s in slices_of(argument) if first in s.positions), None)
        whose = "" if rank is None else f" of rank {rank}"
        number = (
            f"1 element of {argument.name} differs"
            if len(at) == 1
            else f"{len(at)} elements of {argument.name} differ"
        )
        was, became = float(old[first]), float(new[first])
        yield {
            "memory": argument.name,
            "rank": rank,
            "bytes": [first * size, (int(at[-1]) + 1) * size],
            "before": was,
            "after": became,
            "operation": "result",
            "by_rank": None,
            "text": f"{number}, the first{whose}: {was:.6g} -> {became:.6g}",
        }


def _dtype_of(call: Call, after: Again, memory: Memory) -> np.dtype | None:
    """The element type of a memory object, where its views agree about it."""
    for buffer in after.launch.recording.buffers:
        if buffer.name == memory.name and len(buffer.dtypes) == 1:
            return next(iter(buffer.dtypes)).numpy
    for argument in call.arguments:
        if argument.buffer.name == memory.name:
            return argument.layout.dtype.numpy
    return None
