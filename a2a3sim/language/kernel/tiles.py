"""Tiles beyond loading and arithmetic: made empty, seen through other extents, summed, multiplied."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from a2a3sim.errors import InvalidOperationError, KernelError
from a2a3sim.language.context import KernelContext, caller_site, kernel_context
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.handles import Holes, Tile
from a2a3sim.language.kernel import demands, undefined
from a2a3sim.language.kernel.local import need_tile
from a2a3sim.language.types import FP32, INT32, Indices, MemorySpace, as_dtype
from a2a3sim.models.operation import Site

__all__ = ["TileView", "create", "insert", "matmul", "move", "reshape", "row_sum", "window_of"]


class TileView(Tile):
    """A tile's bytes with other extents, or a part of them, in the same place of UB; it costs nothing."""

    __slots__ = ("_base", "_index")

    def __init__(
        self, base: Tile, shape: tuple[int, ...], index: tuple[slice, ...] | None, valid: tuple[int, ...]
    ) -> None:
        self._base = base
        self._index = index
        self.shape = shape
        self.valid = valid
        self.dtype = base.dtype
        self.op = base.op
        self.life = base.life

    @property
    def data(self) -> Any:
        """The values, once the tile that holds them has them."""
        data = self._base.data
        if data is None:
            return None
        return (data if self._index is None else data[self._index]).reshape(self.shape)

    @property
    def holes(self) -> Holes | None:  # type: ignore[override]  # a view has none of its own
        """What is undefined of it."""
        holes = self._base.holes
        if holes is None:
            return None
        mask = (holes.mask if self._index is None else holes.mask[self._index]).reshape(self.shape)
        return holes._replace(mask=mask) if mask.any() else None


def _extents(what: str, shape: Indices) -> tuple[int, ...]:
    extents = tuple(dim_value(s) for s in shape)
    if not extents or any(s <= 0 for s in extents):
        raise InvalidOperationError(f"{what}: extents must be positive, got {list(extents)}")
    return extents


def create(shape: Indices, dtype: Any, target_memory: MemorySpace = MemorySpace.Vec) -> Tile:
    """Room for a tile in UB; its values are undefined until something is put there.

    Raises:
        InvalidOperationError: extents that are not positive.
        KernelError: the tile exceeds UB.
    """
    what = "pl.tile.create"
    extents = _extents(what, shape)
    ctx = kernel_context(what)
    site = caller_site()
    return demands.empty(ctx, site, extents, as_dtype(dtype))


def reshape(tile: Tile, shape: Indices) -> Tile:
    """The same values in row-major order under other extents.

    Raises:
        InvalidOperationError: the number of elements differs, or part of the tile is not valid.
    """
    what = "pl.tile.reshape"
    need_tile(what, "tile", tile)
    extents = _extents(what, shape)
    if prod(extents) != prod(tile.shape):
        raise InvalidOperationError(f"{what}: {list(tile.shape)} has not as many elements as {list(extents)}")
    if tile.valid != tile.shape:
        raise InvalidOperationError(f"{what}: only {list(tile.valid)} of {list(tile.shape)} is valid")
    kernel_context(what)
    return TileView(tile, extents, None, extents)


def window_of(
    what: str,
    tile: Tile,
    offset: Indices,
    shape: Indices,
    valid_shape: Indices | None = None,
    drop_dims: Indices | None = None,
) -> Tile:
    """The part of a tile at ``offset`` of extent ``shape``."""
    extents = _extents(what, shape)
    offsets = tuple(dim_value(o) for o in offset)
    if not len(offsets) == len(extents) == len(tile.shape):
        raise InvalidOperationError(
            f"{what}: the tile has rank {len(tile.shape)}, got offset {list(offsets)} and shape "
            f"{list(extents)}"
        )
    for axis, (o, s, size) in enumerate(zip(offsets, extents, tile.shape, strict=True)):
        if o < 0 or o + s > size:
            raise KernelError(
                f"out of bounds: {what} takes [{o}, {o + s}) of axis {axis} of a tile {list(tile.shape)}"
            )
    valid = extents if valid_shape is None else tuple(dim_value(v) for v in valid_shape)
    left = tuple(max(0, min(v, t - o)) for v, t, o in zip(valid, tile.valid, offsets, strict=True))
    index = tuple(slice(o, o + s) for o, s in zip(offsets, extents, strict=True))
    kept = [k for k in range(len(extents)) if k not in set(drop_dims or ())]
    return TileView(tile, tuple(extents[k] for k in kept), index, tuple(left[k] for k in kept))


def insert(ctx: KernelContext, site: Site, what: str, target: Tile, source: Tile, offset: Indices) -> Tile:
    """V: a tile with ``source`` put into it at ``offset``; the result stands in the target's place."""
    offsets = tuple(dim_value(o) for o in offset)
    if target.dtype is not source.dtype:
        raise InvalidOperationError(f"{what}: source is {source.dtype!r} but target is {target.dtype!r}")
    if not len(offsets) == len(target.shape) == len(source.shape):
        raise InvalidOperationError(
            f"{what}: ranks must be equal, got target {list(target.shape)}, source {list(source.shape)}, "
            f"offset {list(offsets)}"
        )
    for axis, (o, s, size) in enumerate(zip(offsets, source.shape, target.shape, strict=True)):
        if o < 0 or o + s > size:
            raise KernelError(
                f"out of bounds: {what} puts [{o}, {o + s}) into axis {axis} of a tile {list(target.shape)}"
            )
    index = tuple(slice(o, o + s) for o, s in zip(offsets, source.shape, strict=True))

    def compute() -> Any:
        data = target.data.copy()
        data[index] = source.data
        return data

    return demands.vector(
        ctx,
        site,
        "copy",
        target.dtype,
        target.shape,
        (target, source),
        compute,
        extent=source.shape,
        holes=lambda _op: undefined.inserted(target, source, index),
    )


def row_sum(tile: Tile, tmp_tile: Tile) -> Tile:
    """V: the sum over the last axis, which stays with extent 1.

    Args:
        tmp_tile: a tile of the same shape and dtype for partial sums.
    """
    what = "pl.tile.row_sum"
    need_tile(what, "tile", tile)
    need_tile(what, "tmp_tile", tmp_tile)
    ctx = kernel_context(what)
    ctx.machine.check_vector(what, tile.dtype)
    if tmp_tile.dtype is not tile.dtype:
        raise InvalidOperationError(f"{what}: tmp_tile is {tmp_tile.dtype!r} but the tile is {tile.dtype!r}")
    site = caller_site()
    columns = tile.valid[-1]
    shape = (*tile.shape[:-1], 1)

    def compute() -> Any:
        return tile.data[..., :columns].sum(axis=-1, keepdims=True, dtype=tile.dtype.numpy)

    return demands.vector(
        ctx,
        site,
        "row_sum",
        tile.dtype,
        shape,
        (tile, tmp_tile),
        compute,
        (*tile.valid[:-1], 1),
        extent=tile.shape,
        holes=lambda op: undefined.used(ctx, op, (tile,)),  # the other one only holds what it puts there
    )


def move(tile: Tile, target_memory: MemorySpace = MemorySpace.Vec, **others: Any) -> Tile:
    """A tile in another of the core's memories: the same values, for the cost of a copy."""
    what = "pl.move"
    need_tile(what, "tile", tile)
    for name in others:
        raise InvalidOperationError(f"{what}: {name}= is not supported")
    if not isinstance(target_memory, MemorySpace):
        raise InvalidOperationError(f"{what}: target_memory must be a pl.MemorySpace, got {target_memory!r}")
    ctx = kernel_context(what)
    site = caller_site()
    valid = None if tile.valid == tile.shape else tile.valid
    return demands.vector(
        ctx,
        site,
        "copy",
        tile.dtype,
        tile.shape,
        (tile,),
        lambda: np.array(tile.data),
        valid,
        holes=lambda _op: tile.holes,
    )


def matmul(lhs: Tile, rhs: Tile, out_dtype: Any = None, a_trans: bool = False, b_trans: bool = False) -> Tile:
    """The product of two matrices: FP32 of floats, INT32 of integers.

    The cube unit is not modelled; the result costs what a vector instruction of its size does.

    Raises:
        InvalidOperationError: no matrices, or extents that do not fit together.
    """
    what = "pl.matmul"
    need_tile(what, "lhs", lhs)
    need_tile(what, "rhs", rhs)
    if lhs.dtype is not rhs.dtype:
        raise InvalidOperationError(
            f"{what}: operands must have one dtype, got {lhs.dtype!r} and {rhs.dtype!r}"
        )
    if len(lhs.shape) != 2 or len(rhs.shape) != 2:
        raise InvalidOperationError(
            f"{what}: operands must be matrices, got {list(lhs.shape)} and {list(rhs.shape)}"
        )
    (m, k), (k2, n) = (s[::-1] if t else s for s, t in ((lhs.shape, a_trans), (rhs.shape, b_trans)))
    if k != k2:
        raise InvalidOperationError(f"{what}: inner extents must be equal, got {k} and {k2}")
    sums = FP32 if lhs.dtype.floating else INT32
    dtype = sums if out_dtype is None else as_dtype(out_dtype)
    ctx = kernel_context(what)
    site = caller_site()

    def compute() -> Any:
        a, b = (t.data.astype(sums.numpy) for t in (lhs, rhs))
        return np.matmul(a.T if a_trans else a, b.T if b_trans else b).astype(dtype.numpy)

    return demands.vector(ctx, site, "matmul", dtype, (m, n), (lhs, rhs), compute)
