"""What a kernel holds in its hands: tensors in global memory, windows, tiles in UB, and their annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, SupportsIndex

from a2a3sim.errors import InvalidOperationError, KernelError
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.layout import Key, LaidOut, Layout, full_index
from a2a3sim.language.types import Array, DataType, as_dtype
from a2a3sim.models.memory import Memory
from a2a3sim.models.operation import Operation

__all__ = [
    "Annotation",
    "CommCtx",
    "DistributedTensor",
    "Holes",
    "InOut",
    "Out",
    "Scalar",
    "Subscripts",
    "Tensor",
    "Tile",
    "Window",
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
class Subscripts(NamedTuple):
    """What subscripts of a tensor do beyond views; the caller's caller is the user's line."""

    read_at: Callable[[Tensor, tuple[Any, ...]], int | float]
    write_at: Callable[[Tensor, tuple[Any, ...], Any], None]
    assign: Callable[[Tensor, Key, Any], None]


class Tensor(LaidOut):
    """A tensor in the HBM of the device on which the kernel runs.

    ``pl.Tensor[[dims], dtype]`` is its annotation. Operations on it act on global memory in place and
    return the same handle.

    Attributes:
        array: numpy view of its bytes, None where the run keeps none.
        dynamic: axes whose extents the running function declares with `pl.dynamic`.
    """

    __slots__ = ("array", "dynamic", "memory")

    subscripts: ClassVar[Subscripts]  # handles are data; the operations say what subscripts do

    def __class_getitem__(cls, item: Any) -> Annotation:
        return _annotate("distributed" if issubclass(cls, DistributedTensor) else "tensor", item)

    def __init__(self, memory: Memory, layout: Layout) -> None:
        self.memory = memory
        self.layout = layout
        self.dynamic: tuple[int, ...] = ()
        self.array = memory.typed(layout.dtype.numpy, layout.base, layout.shape, layout.strides)

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
