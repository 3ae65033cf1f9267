"""Moves between a rank's own global memory and UB."""

from __future__ import annotations

from sys import _getframe
from typing import Any

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.context import caller_site, kernel_context
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.handles import DistributedTensor, Tensor, Tile
from a2a3sim.language.kernel import demands
from a2a3sim.language.layout import Region
from a2a3sim.language.types import AtomicType, Indices, MemorySpace, Number, as_dtype

__all__ = ["described", "full", "load", "need_tensor", "need_tile", "place", "store"]


def need_tensor(what: str, role: str, value: object) -> Tensor:
    """A tensor in global memory, or InvalidOperationError."""
    if not isinstance(value, Tensor):
        raise InvalidOperationError(
            f"{what}: {role} must be a tensor in global memory, got {described(value)}"
        )
    return value


def need_tile(what: str, role: str, value: object) -> Tile:
    """A tile, or InvalidOperationError."""
    if not isinstance(value, Tile):
        raise InvalidOperationError(f"{what}: {role} must be a tile (load it first), got {described(value)}")
    return value


def described(value: object) -> str:
    """A value as error messages name it."""
    if isinstance(value, Tile):
        return f"a tile of shape {list(value.shape)}"
    if isinstance(value, DistributedTensor):
        return f"the window {value.name}"
    if isinstance(value, Tensor):
        return f"the tensor {value.name}"
    return repr(value)


def load(
    tensor: Tensor,
    offsets: Indices,
    shapes: Indices,
    valid_shape: Indices | None = None,
    target_memory: MemorySpace = MemorySpace.Vec,
    clamp: bool = False,
) -> Tile:
    """Load a rectangle of the rank's own global memory (HBM → UB, MTE2).

    Args:
        offsets, shapes: one number per axis of the tensor; the tile has extents ``shapes``.
        valid_shape: only this part is read and valid; it must lie inside the tensor, ``shapes`` need not.
        clamp: cut the valid part off at the tensor's end.

    Raises:
        InvalidOperationError: wrong kind of operand or rank.
        KernelError: out of bounds, or the tile exceeds UB.
    """
    layout = need_tensor("pl.load", "tensor", tensor).layout
    ctx = kernel_context("pl.load")
    frame = _getframe(1)
    if clamp:
        shape = tuple(dim_value(s) for s in shapes)
        wanted = shape if valid_shape is None else tuple(dim_value(s) for s in valid_shape)
        room = (size - dim_value(o) for o, size in zip(offsets, layout.shape, strict=False))
        valid_shape = tuple(min(w, r) for w, r in zip(wanted, room, strict=False))
        shapes = shape
    if valid_shape is None:
        region = layout.region("pl.load", offsets, shapes)
        shape = region.shape
    else:
        region = layout.region("pl.load", offsets, valid_shape)
        shape = tuple(dim_value(s) for s in shapes)
        if len(shape) != len(region.shape) or any(v > s for v, s in zip(region.shape, shape, strict=True)):
            raise InvalidOperationError(
                f"pl.load: valid_shape {list(region.shape)} must fit into shapes {list(shape)}"
            )
    return demands.load(ctx, (frame.f_code, frame.f_lasti), "load", tensor, region, shape, None)


def place(what: str, tile: Tile, tensor: Tensor, offsets: Indices, shapes: Indices | None = None) -> Region:
    """The region of ``tensor`` that a tile's valid part covers at ``offsets``; leading axes may be added."""
    if tile.dtype is not tensor.layout.dtype:
        raise InvalidOperationError(
            f"{what}: the tile is {tile.dtype!r} but {tensor.name} is {tensor.layout.dtype!r}; pl.cast "
            "it first"
        )
    extent = tile.valid if shapes is None else tuple(dim_value(s) for s in shapes)
    rank = len(tensor.layout.shape)
    if len(extent) < rank:
        extent = (1,) * (rank - len(extent)) + tuple(extent)
    elif len(extent) > rank and all(s == 1 for s in extent[: len(extent) - rank]):
        extent = extent[len(extent) - rank :]
    return tensor.layout.region(what, offsets, extent)


def store(
    tile: Tile,
    offsets: Indices,
    output_tensor: Tensor,
    shapes: Indices | None = None,
    *,
    atomic: AtomicType = AtomicType.None_,
) -> Tensor:
    """Store a tile's valid part to the rank's own global memory (UB → HBM, MTE3); returns the tensor.

    Raises:
        InvalidOperationError: wrong kind, rank or dtype.
        KernelError: out of bounds.
    """
    need_tile("pl.store", "tile", tile)
    need_tensor("pl.store", "output_tensor", output_tensor)
    ctx = kernel_context("pl.store")
    frame = _getframe(1)
    region = place("pl.store", tile, output_tensor, offsets, shapes)
    add = atomic == AtomicType.Add
    if add:
        ctx.machine.check_atomic("pl.store", tile.dtype)
    demands.store(ctx, (frame.f_code, frame.f_lasti), "store", tile, output_tensor, region, None, add)
    return output_tensor


def full(shape: Indices, dtype: Any, value: Number) -> Tile:
    """A tile of one value (V)."""
    ctx = kernel_context("pl.tile.full")
    site = caller_site()
    extent = tuple(dim_value(s) for s in shape)
    return demands.fill(ctx, site, extent, as_dtype(dtype), value)
