"""Operations on whole tensors in global memory.

In a kernel a tensor operand is loaded first and the result is a tile. In an orchestration the operation runs
as a small kernel of its own, piece by piece as UB allows, and the result is a tensor. Views share the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from sys import _getframe
from typing import Any, SupportsIndex, TypeAlias

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.context import (
    DeviceContext,
    KernelContext,
    caller_site,
    current,
    device_context,
    kernel_context,
)
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.handles import Tensor, Tile
from a2a3sim.language.host_handles import HostTensor, WindowView
from a2a3sim.language.kernel import demands
from a2a3sim.language.kernel.local import place
from a2a3sim.language.kernel.tiles import insert, window_of
from a2a3sim.language.layout import Key, Layout
from a2a3sim.language.source import assigned_name
from a2a3sim.language.types import AtomicType, DataType, Indices, as_dtype
from a2a3sim.models.operation import Site

__all__ = ["assemble", "assign", "create_tensor", "mapped", "pieces", "slice_of", "spill", "whole"]

_InMemory: TypeAlias = Tensor | HostTensor


def whole(ctx: KernelContext, site: Site, what: str, tensor: Tensor) -> Tile:
    """Load all of a tensor into a tile."""
    shape = tensor.layout.shape
    region = tensor.layout.region(what, (0,) * len(shape), shape)
    return demands.load(ctx, site, "load", tensor, region, shape, None)


def pieces(shape: tuple[int, ...], limit: int | None) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(offsets, extent) of blocks of at most ``limit`` elements that cover a tensor in row-major order."""
    extent = list(shape)
    if limit is not None:
        for axis in range(len(shape)):
            if prod(extent) <= limit:
                break
            extent[axis] = max(1, limit // prod(extent[axis + 1 :]))
    steps = (range(0, size, step) for size, step in zip(shape, extent, strict=True))
    for offsets in product(*steps):
        yield offsets, tuple(min(e, s - o) for e, s, o in zip(extent, shape, offsets, strict=True))


def _limit(ctx: KernelContext, itemsize: int, tiles: int) -> int | None:
    """Elements of a tile if ``tiles`` of them are to be in UB at a time."""
    room = ctx.core.costs.ub
    return None if room is None else max(1, room // (tiles * max(itemsize, 4)))


def mapped(
    context: DeviceContext,
    site: Site,
    name: str,
    operands: tuple[Any, ...],
    dtype: DataType,
    compute: Callable[..., Tile],
) -> Tile | Tensor:
    """An elementwise operation on tensors of one shape (and on tiles in a kernel).

    Args:
        compute: from the kernel's context and the operands' tiles to the result's tile.

    Returns:
        A tile in a kernel, a new tensor in an orchestration.
    """
    what = f"pl.{name}"
    if context.level == "kernel":
        return compute(
            context, *(whole(context, site, what, o) if isinstance(o, Tensor) else o for o in operands)
        )
    shape = operands[0].layout.shape
    for other in operands[1:]:
        if other.layout.shape != shape:
            raise InvalidOperationError(
                f"{what}: operands must have one shape, got {list(shape)} and {list(other.layout.shape)}"
            )
    result = context.created(name, shape, dtype)

    def kernel(ctx: KernelContext) -> None:
        for offsets, extent in pieces(
            shape, _limit(ctx, operands[0].layout.dtype.itemsize, 2 * len(operands) + 2)
        ):
            tiles = [
                demands.load(ctx, site, "load", o, o.layout.region(what, offsets, extent), extent, None)
                for o in operands
            ]
            tile = compute(ctx, *tiles)
            demands.store(
                ctx, site, "store", tile, result, result.layout.region(what, offsets, extent), None, False
            )

    context.run_small(name, kernel, [*((o, True, False) for o in operands), (result, False, True)], site)
    return result


def spill(ctx: KernelContext, tile: Tile, name: str) -> Tensor:
    """Store a tile that leaves its kernel into a tensor of its own."""
    result: Tensor = ctx.task.created(name, tile.valid, tile.dtype)
    region = result.layout.region("the result", (0,) * len(tile.valid), tile.valid)
    assert tile.op.site is not None
    demands.store(ctx, tile.op.site, "store", tile, result, region, None, False)
    return result


def create_tensor(shape: Indices, dtype: Any, layout: Any = None) -> Any:
    """A tensor that is no argument: a host body's intermediate, or scratch memory of the device.

    Raises:
        InvalidOperationError: extents that are not positive.
        ParserSyntaxError: outside of a program.
    """
    what = "pl.create_tensor"
    context = current()
    if context is None:
        context = device_context(what)  # raises
    extents = tuple(dim_value(s) for s in shape)
    if not extents or any(s <= 0 for s in extents):
        raise InvalidOperationError(f"{what}: extents must be positive, got {list(extents)}")
    kind = as_dtype(dtype)
    name = assigned_name(_getframe(1)) or "tensor"
    if context.level == "kernel":
        return context.task.created(name, extents, kind)
    return context.created(name, extents, kind)


def _key(
    what: str, rank: int, offset: Indices, shape: Indices, drop_dims: Indices | None
) -> tuple[SupportsIndex | slice, ...]:
    offsets, extents = tuple(dim_value(o) for o in offset), tuple(dim_value(s) for s in shape)
    if not len(offsets) == len(extents) == rank:
        raise InvalidOperationError(
            f"{what}: t has rank {rank}, got offset {list(offsets)} and shape {list(extents)}"
        )
    dropped = {dim_value(d) for d in drop_dims or ()}
    for axis in dropped:
        if not 0 <= axis < rank or extents[axis] != 1:
            raise InvalidOperationError(
                f"{what}: drop_dims must name axes of extent 1, got {axis} of {list(extents)}"
            )
    return tuple(
        o if axis in dropped else slice(o, o + s)
        for axis, (o, s) in enumerate(zip(offsets, extents, strict=True))
    )


def slice_of(
    t: Any,
    shape: Indices,
    offset: Indices,
    valid_shape: Indices | None = None,
    drop_dims: Indices | None = None,
    pad_value: Any = None,
    clamp: bool = False,
) -> Any:
    """A part of a tensor or tile.

    In a host body and in an orchestration it is a view of the same bytes; in a kernel a tensor's part is
    loaded into a tile, and a tile's part is a tile.

    Args:
        valid_shape: the part of it that holds values, from its first element on.
        drop_dims: axes of extent 1 that the result lacks.
        clamp: cut off what lies outside.

    Raises:
        InvalidOperationError: wrong kind or rank, or ``pad_value``.
        KernelError: out of bounds.
    """
    what = "pl.slice"
    site = caller_site()
    if pad_value is not None:
        raise InvalidOperationError(
            f"{what}: pad_value= is not supported; fill a tile and pl.assemble into it"
        )
    if isinstance(t, Tile):
        return window_of(what, t, offset, shape, valid_shape, drop_dims)
    if not isinstance(t, (Tensor, HostTensor, WindowView)):
        raise InvalidOperationError(f"{what}: t must be a tensor or a tile, got {t!r}")
    layout: Layout = t.layout
    extents = tuple(dim_value(s) for s in shape)
    if clamp:
        wanted = extents if valid_shape is None else tuple(dim_value(v) for v in valid_shape)
        room = (size - dim_value(o) for o, size in zip(offset, layout.shape, strict=False))
        valid_shape = tuple(min(w, r) for w, r in zip(wanted, room, strict=False))
    context = current()
    if context is not None and context.level == "kernel" and isinstance(t, Tensor):
        region = layout.region(what, offset, extents if valid_shape is None else valid_shape)
        tile = demands.load(context, site, "load", t, region, extents, None)
        if not drop_dims:
            return tile
        return window_of(
            what, tile, (0,) * len(extents), extents, tile.valid, tuple(dim_value(d) for d in drop_dims)
        )
    key = _key(what, len(layout.shape), offset, shape if valid_shape is None else valid_shape, drop_dims)
    view = layout.view(key)
    if isinstance(t, HostTensor):
        return HostTensor(t.buffer, view)
    return WindowView(t.buffer, view, "pl.slice") if isinstance(t, WindowView) else t.viewed(view)


def assemble(target: Any, source: Any, offset: Indices, *, atomic: AtomicType = AtomicType.None_) -> Any:
    """Put ``source`` into ``target`` at ``offset``; returns the target.

    A tensor is changed in place; of a tile a changed copy is returned.

    Args:
        atomic: add to a tensor's bytes instead of replacing them.

    Raises:
        InvalidOperationError: wrong kinds, ranks or dtypes.
        KernelError: out of bounds.
    """
    return _assemble("pl.assemble", target, source, offset, atomic, caller_site())


def _assemble(what: str, target: Any, source: Any, offset: Indices, atomic: AtomicType, site: Site) -> Any:
    if isinstance(target, HostTensor) and isinstance(source, HostTensor):
        if _same_bytes(
            target.buffer, source.buffer, _target_view(what, target, source, offset), source.layout
        ):
            return target
        raise InvalidOperationError(
            f"{what}: a host body has no data yet; pass {target.name}[...] to the task that makes "
            f"{source.name}"
        )
    context = device_context(what)
    if isinstance(target, Tile):
        if not isinstance(source, Tile):
            raise InvalidOperationError(f"{what}: source must be a tile where target is one, got {source!r}")
        if atomic != AtomicType.None_:
            raise InvalidOperationError(f"{what}: atomic= needs a tensor as target")
        return insert(kernel_context(what), site, what, target, source, offset)
    if not isinstance(target, Tensor):
        raise InvalidOperationError(f"{what}: target must be a tensor or a tile, got {target!r}")
    if isinstance(source, Tile):
        if context.level != "kernel":
            raise InvalidOperationError(f"{what}: a tile lives in its kernel only, got {source!r}")
        add = atomic == AtomicType.Add
        if add:
            context.machine.check_atomic(what, source.dtype)
        demands.store(context, site, "store", source, target, place(what, source, target, offset), None, add)
        return target
    if not isinstance(source, Tensor):
        raise InvalidOperationError(f"{what}: source must be a tensor or a tile, got {source!r}")
    if source.layout.dtype is not target.layout.dtype:
        raise InvalidOperationError(
            f"{what}: source is {source.layout.dtype!r} but target is {target.layout.dtype!r}"
        )
    view = _target_view(what, target, source, offset)
    if not _same_bytes(target.memory, source.memory, view, source.layout):
        _copy(context, site, what, source, target.viewed(view), atomic == AtomicType.Add)
    return target


def _target_view(what: str, target: _InMemory, source: _InMemory, offset: Indices) -> Layout:
    """Where in the target the source comes to stand; leading axes of extent 1 may be missing or too many."""
    extent = source.layout.shape
    rank = len(target.layout.shape)
    if len(extent) < rank:
        extent = (1,) * (rank - len(extent)) + extent
    elif len(extent) > rank and all(s == 1 for s in extent[: len(extent) - rank]):
        extent = extent[len(extent) - rank :]
    return target.layout.view(_key(what, rank, offset, extent, None))


def _same_bytes(a: object, b: object, first: Layout, second: Layout) -> bool:
    def where(layout: Layout) -> tuple[int, list[tuple[int, int]]]:
        axes = [(s, t) for s, t in zip(layout.shape, layout.strides, strict=True) if s != 1]
        return layout.base, axes

    return a is b and where(first) == where(second)


def _copy(context: DeviceContext, site: Site, what: str, source: Tensor, target: Tensor, add: bool) -> None:
    """Copy between tensors of one dtype and number of elements, by way of UB."""

    def kernel(ctx: KernelContext) -> None:
        if add:
            ctx.machine.check_atomic(what, source.layout.dtype)
        shape = source.layout.shape
        rank = len(target.layout.shape)
        for offsets, extent in pieces(shape, _limit(ctx, source.layout.dtype.itemsize, 4)):
            tile = demands.load(
                ctx, site, "load", source, source.layout.region(what, offsets, extent), extent, None
            )
            at = (0,) * (rank - len(shape)) + offsets[max(0, len(shape) - rank) :]
            demands.store(ctx, site, "store", tile, target, place(what, tile, target, at), None, add)

    if context.level == "kernel":
        kernel(context)
    else:
        context.run_small("assemble", kernel, [(source, True, False), (target, add, True)], site)


def assign(target: Tensor, key: Key, value: Any) -> None:
    """``tensor[key] = value`` with slices: the value is assembled into that part."""
    site = caller_site(3)
    what = f"assigning to a part of {target.name}"
    view = target.viewed(target.layout.view(key))
    if not isinstance(value, (Tensor, Tile)):
        raise InvalidOperationError(f"{what}: the value must be a tensor or a tile, got {value!r}")
    extent = value.valid if isinstance(value, Tile) else value.layout.shape
    if [s for s in extent if s != 1] != [s for s in view.layout.shape if s != 1]:
        raise InvalidOperationError(f"{what}: extents must be {view.shape}, got {list(extent)}")
    offsets = (0,) * len(view.layout.shape)
    _assemble(what, view, value, offsets, AtomicType.None_, site)
