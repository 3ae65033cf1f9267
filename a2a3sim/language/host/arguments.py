"""Host tensors: numpy arrays and torch CPU tensors as the program's arguments, written in place."""

from __future__ import annotations

import sys

import numpy as np

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.context import current
from a2a3sim.language.handles import Layout, full_index, row_major
from a2a3sim.language.types import DataType, as_dtype

__all__ = ["HostBuffer", "HostTensor", "as_array", "host_tensors", "is_scalar", "is_torch"]


class HostBuffer:
    """The storage behind one or several host tensors; devices reach the same bytes.

    Attributes:
        name: the parameter's name.
        array: contiguous numpy array over the bytes.
        original: the caller's array where ``array`` had to be a contiguous copy of it, else None.
        created: no argument, but made by the program.
        resident: the one rank whose device holds it, or None.
        torch: it is torch's storage, and SubWorker functions see it so.
    """

    __slots__ = ("array", "created", "name", "original", "resident", "torch")

    def __init__(
        self, name: str, array: np.ndarray, original: np.ndarray | None = None, created=False
    ) -> None:
        self.name = name
        self.array = array
        self.original = original
        self.created = created
        self.resident: int | None = None
        self.torch = False

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.array.nbytes

    def bytes(self) -> np.ndarray:
        """The storage as a flat uint8 array that shares its memory."""
        return self.array.reshape(-1).view(np.uint8)

    def write_back(self) -> None:
        """Copy results to the caller's array where a contiguous copy was used."""
        if self.original is not None and self.original.flags.writeable:
            self.original[...] = self.array


class HostTensor:
    """A tensor in a host body: the whole argument or a view of it."""

    __slots__ = ("buffer", "layout")

    def __init__(self, buffer: HostBuffer, layout: Layout) -> None:
        self.buffer = buffer
        self.layout = layout

    @property
    def shape(self) -> list[int]:
        """Extents in elements."""
        return list(self.layout.shape)

    @property
    def dtype(self) -> DataType:
        """Element type."""
        return self.layout.dtype

    @property
    def name(self) -> str:
        """The name it goes by in reports."""
        return self.layout.name

    def __getitem__(self, key):
        if full_index(key, self.layout):
            context = current()
            if context is not None and context.level == "host":
                context.check_readable(self)
            return self.numpy()[key].item()
        return HostTensor(self.buffer, self.layout.view(key))

    def numpy(self) -> np.ndarray:
        """A numpy array that shares the storage."""
        layout = self.layout
        return np.ndarray(layout.shape, layout.dtype.numpy, self.buffer.bytes(), layout.base, layout.strides)

    def __repr__(self) -> str:
        return f"<HostTensor {self.name} {self.shape} {self.dtype!r}>"


def is_scalar(value) -> bool:
    """A number of Python or numpy."""
    return isinstance(value, (int, float, np.generic))


def is_torch(value) -> bool:
    """A torch tensor; torch itself is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value, what: str) -> np.ndarray:
    """A numpy array that shares memory with a numpy array or a torch CPU tensor.

    Raises:
        InvalidOperationError: anything else.
    """
    if isinstance(value, np.ndarray):
        return value
    if is_torch(value):
        if getattr(value.device, "type", "cpu") != "cpu":
            raise InvalidOperationError(f"{what} must be a CPU tensor, got one on {value.device}")
        tensor = value.detach()
        if str(tensor.dtype) == "torch.bfloat16":
            return tensor.view(sys.modules["torch"].int16).numpy().view(as_dtype("bf16").numpy)
        return tensor.numpy()
    raise InvalidOperationError(
        f"{what} must be a numpy array or a torch CPU tensor, got {type(value).__name__}"
    )


def host_tensors(arrays: list[np.ndarray], names: list[str]) -> list[HostTensor]:
    """Host tensors for the arguments of one call; arguments that overlap in memory share a buffer."""
    found: list[tuple[int, int, HostBuffer]] = []  # address range and buffer
    tensors = []
    for array, name in zip(arrays, names, strict=True):
        try:
            dtype = as_dtype(array.dtype)
        except InvalidOperationError as error:
            raise InvalidOperationError(
                f"argument {name}: {error}; convert it, as with .astype(np.float32)"
            ) from None
        low = array.__array_interface__["data"][0]
        inside = next(
            (f for f in found if array.flags.c_contiguous and f[0] <= low and low + array.nbytes <= f[1]),
            None,
        )
        if inside is None:
            if array.flags.c_contiguous:
                buffer = HostBuffer(name, array)
                root = _root(array)
                if root is not array:
                    buffer = HostBuffer(name, root)
            else:
                buffer = HostBuffer(name, np.ascontiguousarray(array), array)
            start = buffer.array.__array_interface__["data"][0]
            found.append((start, start + buffer.nbytes, buffer))
        else:
            buffer = inside[2]
        start = buffer.array.__array_interface__["data"][0]
        base = 0 if buffer.original is not None else low - start
        layout = Layout(name, tuple(array.shape), dtype, base, row_major(array.shape, dtype.itemsize))
        tensors.append(HostTensor(buffer, layout))
    return tensors


def _root(array: np.ndarray) -> np.ndarray:
    """The contiguous array of which ``array`` is a view, so that overlapping arguments meet in one buffer."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    return root if root.flags.c_contiguous and root.nbytes >= array.nbytes else array
