"""What a kernel holds in its hands: tensors in global memory, windows, tiles in UB, and their annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, SupportsIndex, TypeAlias

from a2a3sim.errors import InvalidOperationError, KernelError
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.types import Array, DataType, Indices, as_dtype
from a2a3sim.models.memory import Memory, Span, region_accesses
from a2a3sim.models.operation import Operation

__all__ = [
    "Annotation",
    "CommCtx",
    "DistributedTensor",
    "Holes",
    "InOut",
    "Key",
    "Layout",
    "Out",
    "Region",
    "Scalar",
    "Subscripts",
    "Tensor",
    "Tile",
    "Window",
    "full_index",
    "row_major",
]


class Annotation(NamedTuple):
    """A parameter's declared type."""

    kind: str  # tensor, distributed, tile, scalar
    dims: tuple[Any, ...] | None
    dtype: DataType | None
    direction: str | None = None  # None, "out", "inout"


def _annotate(kind: str, item: Any) -> Annotation:
    if not isinstance(item, tuple):
        item = (item,)
    if kind == "scalar":
        return Annotation(kind, (), as_dtype(item[0]))
    dims, *rest = item
    if not isinstance(dims, (list, tuple)):
        raise InvalidOperationError(f"annotation must be [[dims], dtype], got {item!r}")
    if not rest:
        raise InvalidOperationError(f"annotation {item!r} lacks its dtype: [[dims], dtype]")
    return Annotation(kind, tuple(dims), as_dtype(rest[0]))


class _Direction:
    """``pl.Out[X]`` and ``pl.InOut[X]``."""

    def __init__(self, direction: str) -> None:
        self._direction = direction

    def __getitem__(self, item: Any) -> Annotation:
        if isinstance(item, type) and issubclass(item, Tensor):
            item = Annotation("distributed" if issubclass(item, DistributedTensor) else "tensor", None, None)
        if not isinstance(item, Annotation):
            raise InvalidOperationError(
                f"pl.{self._direction.title()}[...] takes a tensor annotation, got {item!r}"
            )
        return item._replace(direction=self._direction)

    def __repr__(self) -> str:
        return f"pl.{self._direction}"


Out = _Direction("out")
InOut = _Direction("inout")


class Scalar:
    """``pl.Scalar[dtype]``: a scalar parameter."""

    def __class_getitem__(cls, item: Any) -> Annotation:
        return _annotate("scalar", item)


#: A subscript: a number or a slice for each axis.
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


class Subscripts(NamedTuple):
    """What subscripts of a tensor do beyond views; the caller's caller is the user's line."""

    read_at: Callable[[Tensor, tuple[Any, ...]], int | float]
    write_at: Callable[[Tensor, tuple[Any, ...], Any], None]
    assign: Callable[[Tensor, Key, Any], None]


class Tensor:
    """A tensor in the HBM of the device on which the kernel runs.

    ``pl.Tensor[[dims], dtype]`` is its annotation. Operations on it act on global memory in place and
    return the same handle.

    Attributes:
        array: numpy view of its bytes, None where the run keeps none.
        dynamic: axes whose extents the running function declares with `pl.dynamic`.
    """

    __slots__ = ("array", "dynamic", "layout", "memory")

    subscripts: ClassVar[Subscripts]  # handles are data; the operations say what subscripts do

    def __class_getitem__(cls, item: Any) -> Annotation:
        return _annotate("distributed" if issubclass(cls, DistributedTensor) else "tensor", item)

    def __init__(self, memory: Memory, layout: Layout) -> None:
        self.memory = memory
        self.layout = layout
        self.dynamic: tuple[int, ...] = ()
        self.array = memory.typed(layout.dtype.numpy, layout.base, layout.shape, layout.strides)

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

    def __getitem__(self, key: Key) -> Any:
        """A view, or the element itself if every axis has an int."""
        if full_index(key, self.layout):
            return self.subscripts.read_at(self, key if isinstance(key, tuple) else (key,))
        return self.viewed(self.layout.view(key))

    def __setitem__(self, key: Key, value: Any) -> None:
        """Put a tile or tensor into the part that the subscript names, or a number into one element."""
        if full_index(key, self.layout):
            self.subscripts.write_at(self, key if isinstance(key, tuple) else (key,), value)
        else:
            self.subscripts.assign(self, key, value)

    def viewed(self, layout: Layout) -> Tensor:
        """The same bytes seen through another layout."""
        return Tensor(self.memory, layout)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.shape} {self.dtype!r}>"


def full_index(key: Key, layout: Layout) -> bool:
    """Whether a subscript names one element."""
    key = key if isinstance(key, tuple) else (key,)
    return len(key) == len(layout.shape) and not any(isinstance(k, slice) for k in key)


class Window:
    """One window buffer over all ranks of its domain, and the typed views that the program takes of it."""

    __slots__ = ("_views", "domain", "memories")

    def __init__(self, memories: list[Memory], domain: tuple[int, ...]) -> None:
        self.memories = memories
        self.domain = domain
        self._views: dict[tuple[Any, ...], list[Tensor]] = {}

    def slices(self, layout: Layout) -> list[Tensor]:
        """One tensor per rank; equal layouts share them."""
        key = (layout.dtype.name, layout.base, layout.shape, layout.strides)
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = [Tensor(memory, layout) for memory in self.memories]
        return found


class DistributedTensor(Tensor):
    """A typed view of a window: this rank's slice, and a way to every peer's.

    Attributes:
        domain: this rank's place among the ranks that share the window.
        slices: one `Tensor` per rank of the domain.
    """

    __slots__ = ("_window", "domain", "slices")

    def __init__(self, window: Window, layout: Layout, domain: CommCtx) -> None:
        self._window = window
        self.domain = domain
        self.slices = window.slices(layout)
        own = self.slices[domain.rank]
        self.memory, self.layout, self.array = own.memory, own.layout, own.array
        self.dynamic = ()

    def viewed(self, layout: Layout) -> DistributedTensor:
        """The same window seen through another layout."""
        return DistributedTensor(self._window, layout, self.domain)

    def peer(self, what: str, peer: SupportsIndex) -> Tensor:
        """The slice of another rank; KernelError if there is no such rank."""
        slices = self.slices
        if type(peer) is not int:
            peer = dim_value(peer)
        if not 0 <= peer < len(slices):
            raise KernelError(
                f"out of bounds: {what} addresses peer {peer} of {self.name}, but its communication domain "
                f"has ranks 0..{len(slices) - 1}"
            )
        return slices[peer]


class CommCtx(NamedTuple):
    """The communication domain of a window as one rank sees it."""

    rank: int
    nranks: int
    devices: tuple[int, ...]  # logical device of each domain rank


class Holes(NamedTuple):
    """Which elements of a tile are undefined, and where they come from."""

    mask: Array
    origin: str  # for people: "tensor y", "a tile made by pl.tile.create"


class Tile:
    """A value in UB.

    Attributes:
        shape: allocated extents; ``valid`` the part that holds values.
        data: numpy array of ``shape``, None in a timing-only run or before it has arrived.
        op: the operation that makes it.
        life: its place in UB (`a2a3sim.models.ub.TileLife`), None where UB has no limit.
        holes: elements that nobody has written (`a2a3sim.language.kernel.undefined`), or None.
    """

    __slots__ = ("data", "dtype", "holes", "life", "op", "shape", "valid")

    def __class_getitem__(cls, item: Any) -> Annotation:
        return _annotate("tile", item)

    def __init__(
        self, shape: tuple[int, ...], dtype: DataType, op: Operation, valid: tuple[int, ...] | None = None
    ) -> None:
        self.shape = shape
        self.valid = shape if valid is None else valid
        self.dtype = dtype
        self.op = op
        self.life: Any = None
        self.data: Any = None
        self.holes: Holes | None = None

    def __repr__(self) -> str:
        return f"<Tile {list(self.shape)} {self.dtype!r}>"
