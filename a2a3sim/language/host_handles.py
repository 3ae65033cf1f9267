"""What a host body holds in its hands: tensors of the host, window buffers and views of them.

The bodies run before anything is simulated, so none of them has a place in a device's memory yet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from a2a3sim.language.context import current
from a2a3sim.language.layout import Key, LaidOut, Layout, full_index
from a2a3sim.language.types import INT32, Array, DataType

__all__ = ["HostBuffer", "HostTensor", "WindowBuffer", "WindowView"]


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

    def __init__(self, name: str, array: Array, original: Array | None = None, created: bool = False) -> None:
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

    def bytes(self) -> Array:
        """The storage as a flat uint8 array that shares its memory."""
        return self.array.reshape(-1).view(np.uint8)

    def write_back(self) -> None:
        """Copy results to the caller's array where a contiguous copy was used."""
        if self.original is not None and self.original.flags.writeable:
            self.original[...] = self.array


class HostTensor(LaidOut):
    """A tensor in a host body: the whole argument or a view of it."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: HostBuffer, layout: Layout) -> None:
        self.buffer = buffer
        self.layout = layout

    def __getitem__(self, key: Key) -> Any:
        if full_index(key, self.layout):
            context = current()
            if context is not None and context.level == "host":
                context.check_readable(self)
            return self.numpy()[key].item()
        return HostTensor(self.buffer, self.layout.view(key))

    def numpy(self) -> Array:
        """A numpy array that shares the storage."""
        layout = self.layout
        return np.ndarray(layout.shape, layout.dtype.numpy, self.buffer.bytes(), layout.base, layout.strides)

    def __repr__(self) -> str:
        return f"<HostTensor {self.name} {self.shape} {self.dtype!r}>"


class WindowBuffer:
    """A window allocated by the host body: ``nbytes`` on each rank of a domain that is inferred later."""

    __slots__ = ("devices", "dtypes", "index", "name", "nbytes", "viewed")

    def __init__(self, index: int, name: str, nbytes: int) -> None:
        self.index = index
        self.name = name
        self.nbytes = nbytes
        self.viewed = False
        self.dtypes: set[DataType] = set()  # of its views
        self.devices: tuple[int, ...] = ()

    @property
    def signal(self) -> bool:
        """It may hold signal cells, which start at zero whatever fresh memory is filled with."""
        return self.dtypes <= {INT32}

    def __repr__(self) -> str:
        return f"<window buffer {self.name}, {self.nbytes} B per rank>"


class WindowView(LaidOut):
    """``pld.window(buffer, shape, dtype=)``: a typed view that dispatches take as an argument.

    Attributes:
        origin: what made it; collectives of the host body take views made by ``pld.window`` only.
    """

    __slots__ = ("buffer", "origin")

    def __init__(self, buffer: WindowBuffer, layout: Layout, origin: str = "pld.window") -> None:
        self.buffer = buffer
        self.layout = layout
        self.origin = origin

    def __getitem__(self, key: Key) -> WindowView:
        return WindowView(self.buffer, self.layout.view(key), "a subscript")

    def __repr__(self) -> str:
        return f"<window {self.layout.name} {self.shape} {self.dtype!r}>"
