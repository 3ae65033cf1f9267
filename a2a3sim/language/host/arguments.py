"""Host tensors: numpy arrays and torch CPU tensors as the program's arguments, written in place."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.host_handles import HostBuffer, HostTensor
from a2a3sim.language.layout import Layout, row_major
from a2a3sim.language.types import Array, as_dtype

__all__ = ["as_array", "host_tensors", "is_scalar", "is_torch"]


def is_scalar(value: object) -> bool:
    """A number of Python or numpy."""
    return isinstance(value, (int, float, np.generic))


def is_torch(value: object) -> bool:
    """A torch tensor; torch itself is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any, what: str) -> Array:
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
            return np.asarray(tensor.view(sys.modules["torch"].int16).numpy()).view(as_dtype("bf16").numpy)
        return np.asarray(tensor.numpy())
    raise InvalidOperationError(
        f"{what} must be a numpy array or a torch CPU tensor, got {type(value).__name__}"
    )


def host_tensors(arrays: list[Array], names: list[str]) -> list[HostTensor]:
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


def _root(array: Array) -> Array:
    """The contiguous array of which ``array`` is a view, so that overlapping arguments meet in one buffer."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    return root if root.flags.c_contiguous and root.nbytes >= array.nbytes else array
