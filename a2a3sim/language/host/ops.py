"""What a host body does: ask for the rank count, allocate windows and view them."""

from __future__ import annotations

from sys import _getframe
from typing import Any, SupportsIndex

from a2a3sim.errors import InvalidOperationError, ParserSyntaxError
from a2a3sim.language.dynamic import Dim, dim_value
from a2a3sim.language.host.recording import host_context
from a2a3sim.language.host_handles import WindowBuffer, WindowView
from a2a3sim.language.layout import Layout, row_major
from a2a3sim.language.source import assigned_name
from a2a3sim.language.types import Indices, as_dtype

__all__ = ["alloc_window_buffer", "window", "world_size"]


def world_size() -> int:
    """The number of ranks of the run (host bodies only)."""
    return host_context("pld.world_size").recording.world


def alloc_window_buffer(
    size: SupportsIndex | Indices, *, dtype: Any = None, name: str | None = None
) -> WindowBuffer:
    """A zero-filled buffer on every rank that gets a view of it.

    Args:
        size: bytes per rank, or a shape together with ``dtype``.

    Raises:
        InvalidOperationError: an empty or non-positive size, a shape without dtype, bytes with one.
        ParserSyntaxError: outside of a host body, or a ``name``: the window is called like its variable.
    """
    what = "pld.alloc_window_buffer"
    if name is not None:
        raise ParserSyntaxError(
            f"{what}: name= is reserved; the window is called like the variable it is assigned to"
        )
    context = host_context(what)
    if isinstance(size, (list, tuple)):
        if dtype is None:
            raise InvalidOperationError(
                f"{what}: a shape needs its dtype, as in {what}({list(size)}, dtype=pl.FP32)"
            )
        dtype = as_dtype(dtype)
        shape = [dim_value(s) for s in size]
        if not shape or any(s <= 0 for s in shape):
            raise InvalidOperationError(f"{what}: extents must be positive, got {shape}")
        nbytes = dtype.itemsize
        for s in shape:
            nbytes *= s
    else:
        if dtype is not None:
            raise InvalidOperationError(f"{what}: a size in bytes takes no dtype; give a shape with it")
        if isinstance(size, bool) or not isinstance(size, (int, Dim)):
            raise InvalidOperationError(f"{what}: size must be bytes or a shape, got {size!r}")
        nbytes = dim_value(size)
        if nbytes <= 0:
            raise InvalidOperationError(f"{what}: size must be positive, got {nbytes}")
    frame = _getframe(1)
    return context.allocate(nbytes, assigned_name(frame), frame)


def window(buffer: WindowBuffer, shape: Indices, *, dtype: Any) -> WindowView:
    """A typed view of a window buffer.

    Raises:
        InvalidOperationError: not a window buffer, bad extents, or the view exceeds the buffer.
    """
    what = "pld.window"
    if not isinstance(buffer, WindowBuffer):
        raise InvalidOperationError(
            f"{what}: takes a window buffer (pld.alloc_window_buffer), got {buffer!r}"
        )
    host_context(what)
    dtype = as_dtype(dtype)
    extents = tuple(dim_value(s) for s in shape)
    if not extents or any(s <= 0 for s in extents):
        raise InvalidOperationError(f"{what}: extents must be positive, got {list(extents)}")
    nbytes = dtype.itemsize
    for s in extents:
        nbytes *= s
    if nbytes > buffer.nbytes:
        raise InvalidOperationError(
            f"{what}: a view {list(extents)} of {dtype!r} needs {nbytes} B, but {buffer.name} has "
            f"{buffer.nbytes} B"
        )
    buffer.viewed = True
    buffer.dtypes.add(dtype)
    return WindowView(buffer, Layout(buffer.name, extents, dtype, 0, row_major(extents, dtype.itemsize)))
