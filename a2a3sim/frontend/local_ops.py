"""Operations on a core's own data: moves between global memory and UB, vector arithmetic, scalar accesses."""

from __future__ import annotations

from sys import _getframe

import numpy as np

from a2a3sim.errors import InvalidOperationError, KernelError
from a2a3sim.frontend import demands
from a2a3sim.frontend.context import current, kernel_context
from a2a3sim.frontend.dynamic import dim_value
from a2a3sim.frontend.handles import DistributedTensor, Tensor, Tile
from a2a3sim.frontend.types import AtomicType, MemorySpace, as_dtype

__all__ = [
    "add",
    "cast",
    "full",
    "load",
    "maximum",
    "minimum",
    "mul",
    "need_tensor",
    "need_tile",
    "place",
    "read",
    "read_at",
    "store",
    "sub",
    "write",
]


def need_tensor(what: str, role: str, value) -> Tensor:
    """A tensor in global memory, or InvalidOperationError."""
    if not isinstance(value, Tensor):
        raise InvalidOperationError(f"{what}: {role} must be a tensor in global memory, got {_kind(value)}")
    return value


def need_tile(what: str, role: str, value) -> Tile:
    """A tile, or InvalidOperationError."""
    if not isinstance(value, Tile):
        raise InvalidOperationError(f"{what}: {role} must be a tile (load it first), got {_kind(value)}")
    return value


def _kind(value) -> str:
    if isinstance(value, Tile):
        return f"a tile of shape {list(value.shape)}"
    if isinstance(value, DistributedTensor):
        return f"the window {value.name}"
    if isinstance(value, Tensor):
        return f"the tensor {value.name}"
    return repr(value)


def load(tensor, offsets, shapes, valid_shape=None, target_memory=MemorySpace.Vec, clamp=False) -> Tile:
    """Load a rectangle of the rank's own global memory (HBM → UB, MTE2).

    Args:
        offsets, shapes: one number per axis of the tensor; the tile has extents ``shapes``.
        valid_shape: only this part is read and valid; it must lie inside the tensor, ``shapes`` need not.
        clamp: cut the valid part off at the tensor's end.

    Raises:
        InvalidOperationError: wrong kind of operand or rank.
        KernelError: out of bounds, or the tile exceeds UB.
    """
    ctx = kernel_context("pl.load")
    frame = _getframe(1)
    layout = need_tensor("pl.load", "tensor", tensor).layout
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


def place(what: str, tile: Tile, tensor: Tensor, offsets, shapes=None):
    """The region of ``tensor`` that a tile's valid part covers at ``offsets``; leading axes may be added."""
    if tile.dtype is not tensor.layout.dtype:
        raise InvalidOperationError(
            f"{what}: the tile is {tile.dtype!r} but {tensor.name} is {tensor.layout.dtype!r}; pl.cast it first"
        )
    extent = tile.valid if shapes is None else tuple(dim_value(s) for s in shapes)
    rank = len(tensor.layout.shape)
    if len(extent) < rank:
        extent = (1,) * (rank - len(extent)) + tuple(extent)
    elif len(extent) > rank and all(s == 1 for s in extent[: len(extent) - rank]):
        extent = extent[len(extent) - rank :]
    return tensor.layout.region(what, offsets, extent)


def store(tile, offsets, output_tensor, shapes=None, *, atomic=AtomicType.None_) -> Tensor:
    """Store a tile's valid part to the rank's own global memory (UB → HBM, MTE3); returns the tensor.

    Raises:
        InvalidOperationError: wrong kind, rank or dtype.
        KernelError: out of bounds.
    """
    ctx = kernel_context("pl.store")
    frame = _getframe(1)
    need_tile("pl.store", "tile", tile)
    need_tensor("pl.store", "output_tensor", output_tensor)
    region = place("pl.store", tile, output_tensor, offsets, shapes)
    add = atomic == AtomicType.Add
    if add:
        ctx.machine.check_atomic("pl.store", tile.dtype)
    demands.store(ctx, (frame.f_code, frame.f_lasti), "store", tile, output_tensor, region, None, add)
    return output_tensor


def full(shape, dtype, value) -> Tile:
    """A tile of one value (V)."""
    ctx = kernel_context("pl.tile.full")
    frame = _getframe(1)
    extent = tuple(dim_value(s) for s in shape)
    return demands.fill(ctx, (frame.f_code, frame.f_lasti), extent, as_dtype(dtype), value)


def _elementwise(name: str, ufunc, python, what: str | None = None):
    what = what or f"pl.{name}"
    with_scalar = f"{name}s"

    def operation(a, b):
        if isinstance(a, Tile):
            ctx = current()
            if ctx is None or ctx.level != "kernel":
                kernel_context(what)
            frame = _getframe(1)
            site = (frame.f_code, frame.f_lasti)
            if isinstance(b, Tile):
                if a.dtype is not b.dtype:
                    raise InvalidOperationError(
                        f"{what}: operands must have one dtype, got {a.dtype!r} and {b.dtype!r}; pl.cast one of them"
                    )
                if a.shape != b.shape:
                    return _broadcast(ctx, site, what, name, ufunc, a, b)
                ctx.machine.check_vector(what, a.dtype)
                valid = None
                if a.valid != a.shape or b.valid != b.shape:
                    valid = tuple(min(v) for v in zip(a.valid, b.valid, strict=True))
                return demands.vector(
                    ctx, site, name, a.dtype, a.shape, (a, b), lambda: ufunc(a.data, b.data), valid
                )
            if isinstance(b, (Tensor, str)) or not hasattr(b, "__add__"):
                raise InvalidOperationError(f"{what}: cannot combine a tile with {_kind(b)}; load it first")
            ctx.machine.check_vector(what, a.dtype)
            value = a.dtype.numpy.type(b)
            valid = None if a.valid == a.shape else a.valid
            return demands.vector(
                ctx, site, with_scalar, a.dtype, a.shape, (a,), lambda: ufunc(a.data, value), valid
            )
        if isinstance(b, Tile):
            if isinstance(a, Tensor):
                raise InvalidOperationError(f"{what}: cannot combine {_kind(a)} with a tile; load it first")
            raise InvalidOperationError(f"{what}: a scalar can only be the second operand, got {a!r} first")
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            raise InvalidOperationError(
                f"{what} of whole tensors is not a kernel operation: load tiles of {_kind(a)} first"
            )
        try:
            return python(a, b)
        except TypeError:
            raise InvalidOperationError(f"{what}: cannot combine {_kind(a)} and {_kind(b)}") from None

    operation.__name__ = operation.__qualname__ = what.rpartition(".")[2]
    operation.__doc__ = (
        f"Elementwise {name} (V): tile with tile of the same shape and dtype, tile with scalar, or scalars.\n\n"
        "    Raises:\n        InvalidOperationError: operands of other kinds, shapes or dtypes.\n    "
    )
    return operation


def _broadcast(ctx, site, what, name, ufunc, a, b):
    raise InvalidOperationError(
        f"{what}: operands must have one shape, got {list(a.shape)} and {list(b.shape)}"
    )


add = _elementwise("add", np.add, lambda a, b: a + b)
sub = _elementwise("sub", np.subtract, lambda a, b: a - b)
mul = _elementwise("mul", np.multiply, lambda a, b: a * b)
maximum = _elementwise("max", np.maximum, max, "pl.tile.maximum")
minimum = _elementwise("min", np.minimum, min, "pl.tile.minimum")

_ROUNDING = {"none": 0, "rint": 1, "round": 2, "floor": 3, "ceil": 4, "trunc": 5, "odd": 6}


def cast(x, target_type, mode="round"):
    """Convert a tile to another dtype (V), or a scalar.

    Args:
        mode: how a float becomes an integer: ``round`` half away from zero, ``rint`` half to even, ``floor``,
            ``ceil``, ``trunc``, ``none`` (as ``rint``). Floats to narrower floats round to nearest even.

    Raises:
        InvalidOperationError: unknown mode or operand.
    """
    target = as_dtype(target_type)
    if isinstance(mode, int) and not isinstance(mode, bool):
        names = [n for n, k in _ROUNDING.items() if k == mode]
        mode = names[0] if names else mode
    if mode not in _ROUNDING:
        raise InvalidOperationError(f"pl.cast: mode must be one of {', '.join(_ROUNDING)}, got {mode!r}")
    if mode == "odd":
        raise InvalidOperationError("pl.cast: mode 'odd' is not supported; use 'rint'")
    if isinstance(x, Tile):
        ctx = kernel_context("pl.cast")
        frame = _getframe(1)
        valid = None if x.valid == x.shape else x.valid
        return demands.vector(
            ctx,
            (frame.f_code, frame.f_lasti),
            "cast",
            target,
            x.shape,
            (x,),
            lambda: _convert(x.data, x.dtype, target, mode),
            valid,
        )
    if isinstance(x, Tensor):
        raise InvalidOperationError(f"pl.cast of a whole tensor is not a kernel operation: load tiles of {x.name}")
    if mode != "round":
        raise InvalidOperationError("pl.cast of a scalar takes the default mode only")
    return _convert(np.asarray(x), None, target, mode).item()


def _convert(data, source, target, mode):
    floating = source.floating if source is not None else data.dtype.kind == "f"
    if floating and not target.floating:
        wide = data.astype(np.float64)
        if mode == "round":
            wide = np.trunc(wide + np.copysign(0.5, wide))
        elif mode in ("rint", "none"):
            wide = np.rint(wide)
        else:
            wide = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}[mode](wide)
        info = np.iinfo(target.numpy)
        return np.clip(np.nan_to_num(wide, nan=0.0), info.min, info.max).astype(target.numpy)
    return data.astype(target.numpy)


def _element(what: str, tensor: Tensor, offset):
    layout = tensor.layout
    if isinstance(offset, (list, tuple)):
        return layout.region(what, offset, (1,) * len(layout.shape))
    flat = dim_value(offset)
    size = int(np.prod(layout.shape))
    if not 0 <= flat < size:
        raise KernelError(f"out of bounds: {what} of element {flat} of {tensor.name}, which holds [0, {size})")
    return layout.region(what, [int(i) for i in np.unravel_index(flat, layout.shape)], (1,) * len(layout.shape))


def read(src, offset):
    """Read one element of the rank's own global memory as a number; the scalar pipe blocks.

    Args:
        offset: one number per axis, or a flat index.
    """
    ctx = kernel_context("pl.read")
    frame = _getframe(1)
    need_tensor("pl.read", "src", src)
    return demands.read_scalar(ctx, (frame.f_code, frame.f_lasti), src, _element("pl.read", src, offset))


def read_at(src: Tensor, offset):
    """The element that a subscript names; the caller's caller is the user's line."""
    ctx = kernel_context(f"reading an element of {src.name}")
    frame = _getframe(3)
    return demands.read_scalar(ctx, (frame.f_code, frame.f_lasti), src, _element("subscript", src, offset))


def write(dst, offset, value) -> Tensor:
    """Write one element of the rank's own global memory; the scalar pipe blocks until it is visible."""
    ctx = kernel_context("pl.write")
    frame = _getframe(1)
    need_tensor("pl.write", "dst", dst)
    region = _element("pl.write", dst, offset)
    demands.write_scalar(ctx, (frame.f_code, frame.f_lasti), dst, region, value)
    return dst
