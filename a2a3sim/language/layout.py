"""Where the elements of a tensor lie in a memory object, and the rectangles that operations cut out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

from a2a3sim.errors import InvalidOperationError, KernelError
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.types import DataType, Indices
from a2a3sim.models.memory import Span, region_accesses

__all__ = ["Key", "LaidOut", "Layout", "Region", "full_index", "row_major"]

Key: TypeAlias = "SupportsIndex | slice | tuple[SupportsIndex | slice, ...]"


class Region(NamedTuple):
    """A rectangle of a tensor: its bytes, its numpy index and its size."""

    spans: tuple[Span, ...]  # (offset, rows, row_bytes, stride) in the memory object
    index: tuple[slice, ...]  # type: ignore[assignment]  # the rectangle, not where a value stands in the tuple
    nbytes: int
    shape: tuple[int, ...]


def row_major(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a contiguous tensor."""
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


class Layout:
    """Where a tensor's elements lie in a memory object; shared by all slices of a window.

    Attributes:
        base: byte offset of the first element; ``strides`` in bytes.
        part: a subscript cut it out of another.
    """

    __slots__ = ("_cells", "_regions", "base", "dtype", "name", "part", "shape", "strides")

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: DataType, base: int, strides: tuple[int, ...]
    ) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.base = base
        self.strides = strides
        self.part = False
        self._regions: dict[tuple[Any, ...], Region] = {}
        self._cells: dict[tuple[Any, ...], int] = {}

    def cell(self, what: str, offsets: Indices) -> int:
        """The byte offset of the signal cell at ``offsets``.

        Raises:
            InvalidOperationError: not INT32, or ranks differ.
            KernelError: out of bounds.
        """
        key = tuple(offsets)
        found = self._cells.get(key)
        if found is None:
            if self.dtype.name != "int32":
                raise InvalidOperationError(f"{what}: signal cells are INT32, {self.name} is {self.dtype!r}")
            found = self._cells[key] = self.region(what, offsets, (1,) * len(self.shape)).spans[0][0]
        return found

    def view(self, key: Key) -> Layout:
        """The part that a subscript names: an int drops its axis, a slice keeps it, missing axes are whole.

        Raises:
            InvalidOperationError: too many subscripts, a step, or an empty part.
            KernelError: out of bounds.
        """
        if not isinstance(key, tuple):
            key = (key,)
        if len(key) > len(self.shape):
            raise InvalidOperationError(f"{self.name} has rank {len(self.shape)}, got {len(key)} subscripts")
        base, shape, strides = self.base, [], []
        for axis, (size, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            item = key[axis] if axis < len(key) else slice(None)
            if isinstance(item, slice):
                if item.step not in (None, 1):
                    raise InvalidOperationError(f"{self.name}: subscripts take no step, got {item}")
                start = 0 if item.start is None else dim_value(item.start)
                stop = size if item.stop is None else dim_value(item.stop)
                if not 0 <= start < stop <= size:
                    raise KernelError(
                        f"out of bounds: {self.name}[{start}:{stop}] on axis {axis}, which holds [0, {size})"
                    )
                base += start * stride
                shape.append(stop - start)
                strides.append(stride)
            else:
                index = dim_value(item)
                if not 0 <= index < size:
                    raise KernelError(
                        f"out of bounds: {self.name}[{index}] on axis {axis}, which holds [0, {size})"
                    )
                base += index * stride
        text = ", ".join(
            f"{'' if k.start is None else k.start}:{'' if k.stop is None else k.stop}"
            if isinstance(k, slice)
            else str(k)
            for k in key
        )
        found = Layout(f"{self.name}[{text}]", tuple(shape), self.dtype, base, tuple(strides))
        found.part = True
        return found

    def region(self, what: str, offsets: Indices, shape: Indices) -> Region:
        """The rectangle at ``offsets`` of extent ``shape``.

        Raises:
            InvalidOperationError: ranks differ or a size is not positive.
            KernelError: out of bounds.
        """
        found = self._regions.get((*offsets, *shape))
        if found is not None and len(offsets) == len(self.shape):
            return found
        at, extent = tuple(map(dim_value, offsets)), tuple(map(dim_value, shape))
        if len(at) != len(self.shape) or len(extent) != len(self.shape):
            raise InvalidOperationError(
                f"{what}: {self.name} has rank {len(self.shape)} (shape {list(self.shape)}), but offsets "
                f"{list(at)} and shape {list(extent)} have ranks {len(at)} and {len(extent)}"
            )
        for axis, (o, s, size) in enumerate(zip(at, extent, self.shape, strict=True)):
            if s <= 0:
                raise InvalidOperationError(f"{what}: sizes must be positive, got shape {list(extent)}")
            if o < 0 or o + s > size:
                raise KernelError(
                    f"out of bounds: {what} touches [{o}, {o + s}) of axis {axis} of {self.name}, "
                    f"which holds [0, {size}) (shape {list(self.shape)}, offsets {list(at)}, "
                    f"extent {list(extent)})"
                )
        spans = tuple(
            (a.offset, a.rows, a.row_bytes, a.stride)
            for a in region_accesses(None, self.base, self.strides, self.dtype.itemsize, at, extent)
        )
        nbytes = self.dtype.itemsize
        for s in extent:
            nbytes *= s
        region = Region(
            spans, tuple(slice(o, o + s) for o, s in zip(at, extent, strict=True)), nbytes, extent
        )
        self._regions[(*at, *extent)] = region
        return region


class LaidOut:
    """What has a layout: a tensor of a kernel or of a host body, the view of a window."""

    __slots__ = ("layout",)

    layout: Layout

    @property
    def shape(self) -> list[int]:
        """Extents, in elements."""
        return list(self.layout.shape)

    @property
    def dtype(self) -> DataType:
        """Element type."""
        return self.layout.dtype

    @property
    def name(self) -> str:
        """The name it goes by in reports."""
        return self.layout.name


def full_index(key: Key, layout: Layout) -> bool:
    """Whether a subscript names one element."""
    key = key if isinstance(key, tuple) else (key,)
    return len(key) == len(layout.shape) and not any(isinstance(k, slice) for k in key)
