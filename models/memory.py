"""Device memory: HBM objects with bytes that really move, and typed views of rectangular regions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Access", "Memory", "region_accesses"]

Bytes: TypeAlias = npt.NDArray[np.uint8]
Span: TypeAlias = tuple[int, int, int, int]  # (offset, rows, row_bytes, stride)


class Access(NamedTuple):
    """A rectangular byte region of one memory object: ``rows`` rows of ``row_bytes``, ``stride`` bytes apart."""

    memory: Memory
    offset: int
    rows: int
    row_bytes: int
    stride: int


class Memory:
    """One contiguous object in the HBM of one device: a window slice, an argument tensor, a temporary.

    Attributes:
        kind: ``window``, ``tensor`` (an argument of the program) or ``created``.
        buffer: identity over ranks: the slices of one window buffer have the same.
        data: uint8 array of ``nbytes``, or None in a timing-only run (signal cells then appear on demand).
    """

    __slots__ = (
        "_cells", "_looked", "_lost", "buffer", "cell_shape", "data", "device", "id", "kind", "name", "nbytes",
        "rank", "signal", "written",
    )  # fmt: skip

    def __init__(
        self,
        id: int,
        name: str,
        kind: str,
        device: int,
        rank: int,
        nbytes: int,
        data: Bytes | None,
        buffer: int | str | None = None,
    ) -> None:
        self.id = id
        self.name = name
        self.kind = kind
        self.device = device
        self.rank = rank
        self.nbytes = nbytes
        self.data = data
        self.buffer = buffer if buffer is not None else id
        self.signal = False  # some notify or wait uses cells of this object
        self._cells: memoryview[int] | None = None
        self._looked: set[int] = set()  # cells that a wait has looked at, and
        self._lost: set[Span] = set()  # regions that were written, in a run that keeps no bytes
        self.cell_shape: Sequence[int] | None = None  # the extents through which they are addressed
        self.written: npt.NDArray[np.bool_] | None = (
            None  # per byte whether it has been written, where that is watched; ranks may share it
        )

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} of rank {self.rank}, {self.nbytes} B>"

    def cells(self) -> memoryview[int]:
        """The object's int32 words for signal cells; materialised (zero) if the run keeps no bytes."""
        if self._cells is None:
            if self.data is None:
                self.data = np.zeros(self.nbytes, np.uint8)
            self._cells = memoryview(self.data.data)[: self.nbytes & ~3].cast("i")
        return self._cells

    def cell_name(self, offset: int) -> str:
        """A signal cell as its program addresses it, ``signal[1, 3]``."""
        index = offset // 4
        shape = self.cell_shape or (self.nbytes // 4,)
        parts = []
        for size in reversed(shape):
            index, part = divmod(index, size)
            parts.append(part)
        return f"{self.name}[{', '.join(str(p) for p in reversed(parts))}]"

    def clear(self) -> None:
        """All bytes are zero again."""
        self._lost.clear()
        self.written = None
        if self.data is not None:
            self.data[:] = 0

    def look(self, offset: int) -> bool:
        """A wait looks at a cell of which the run keeps no bytes; whether its value is not known."""
        self._looked.add(offset)
        return bool(self._lost) and self.lost(offset)

    def lose(self, spans: Iterable[Span]) -> bool:
        """Bytes are written that the run does not keep; whether a wait has looked at a cell there."""
        self._lost.update(spans)
        return any(_covers(span, offset) for offset in self._looked for span in spans)

    def lost(self, offset: int) -> bool:
        """Whether the cell at a byte offset has been written with bytes that the run does not keep."""
        return any(_covers(span, offset) for span in self._lost)

    def typed(
        self, dtype: np.dtype[Any], offset: int, shape: Sequence[int], strides: Sequence[int]
    ) -> npt.NDArray[Any] | None:
        """A typed array view at a byte offset, or None where no bytes are kept."""
        if self.data is None:
            return None
        return np.ndarray(shape, dtype, self.data, offset, strides)


def _covers(span: Span, offset: int) -> bool:
    """Whether a region (offset, rows, row_bytes, stride) has the byte at ``offset``."""
    begin, rows, row_bytes, stride = span
    row = (offset - begin) // stride if rows > 1 else 0
    return 0 <= row < rows and 0 <= offset - begin - row * stride < row_bytes


def region_accesses(
    memory: Any,
    base: int,
    strides: Sequence[int],
    itemsize: int,
    offsets: Sequence[int],
    shape: Sequence[int],
) -> tuple[Access, ...]:
    """The byte regions of a rectangular region, rows coalesced where they touch.

    Args:
        memory: the object; None where only the places of the bytes matter.
        base: byte offset of the tensor's first element in the memory object.
        strides: the tensor's strides in bytes, last dimension contiguous.
        offsets, shape: the region, in elements.
    """
    start = base
    for o, s in zip(offsets, strides, strict=True):
        start += o * s
    row_bytes = itemsize
    k = len(shape) - 1
    # Coalesce from the last dimension while the region fills whole strides.
    while k >= 0 and strides[k] == row_bytes:
        row_bytes *= shape[k]
        k -= 1
    while k >= 0 and shape[k] == 1:
        k -= 1
    if k < 0:
        return (Access(memory, start, 1, row_bytes, row_bytes),)
    rows, stride = shape[k], strides[k]
    starts = [start]
    for j in range(k - 1, -1, -1):
        if shape[j] != 1:
            starts = [s + i * strides[j] for i in range(shape[j]) for s in starts]
    return tuple(Access(memory, s, rows, row_bytes, stride) for s in starts)
