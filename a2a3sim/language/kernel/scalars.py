"""Single numbers: read from and written to global memory, compared, made constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from a2a3sim.errors import InvalidOperationError, KernelError
from a2a3sim.language.context import KernelContext, caller_site, current, device_context
from a2a3sim.language.dynamic import Dim, dim_value
from a2a3sim.language.handles import Tensor, Tile
from a2a3sim.language.kernel import demands
from a2a3sim.language.kernel.device_int import device_int
from a2a3sim.language.layout import Region
from a2a3sim.language.types import DataType, Indices, Number, as_dtype
from a2a3sim.models.operation import Site

__all__ = ["const", "maximum", "minimum", "read", "read_at", "write", "write_at"]

_Offset: TypeAlias = SupportsIndex | Indices  # an index for each axis, or a flat one


def _element(what: str, tensor: Tensor, offset: Any) -> Region:
    layout = tensor.layout
    ones = (1,) * len(layout.shape)
    if isinstance(offset, (list, tuple)):
        return layout.region(what, offset, ones)
    flat = dim_value(offset)
    size = int(np.prod(layout.shape))
    if not 0 <= flat < size:
        raise KernelError(
            f"out of bounds: {what} of element {flat} of {tensor.name}, which holds [0, {size})"
        )
    return layout.region(what, [int(i) for i in np.unravel_index(flat, layout.shape)], ones)


def _number(value: Any) -> int | float:
    """What a scalar unit has read, as the program sees it."""
    if type(value) is int:
        return device_int(value)
    return value if isinstance(value, (bool, float)) else float(value)


def read(src: Tensor | Tile, offset: _Offset) -> int | float:
    """Read one element of the rank's own global memory, or of a tile, as a number; the scalar pipe blocks.

    Args:
        offset: one number per axis, or a flat index.

    Raises:
        InvalidOperationError: neither tensor nor tile.
        KernelError: out of bounds, or no bytes are kept.
    """
    return _read("pl.read", src, offset, caller_site())


def read_at(src: Tensor, offset: Indices) -> int | float:
    """The element that a subscript names; the caller's caller is the user's line."""
    return _read(f"reading an element of {src.name}", src, offset, caller_site(3))


def _read(what: str, src: object, offset: _Offset, site: Site) -> int | float:
    if isinstance(src, Tile):
        return _read_tile(what, src, offset, site)
    if not isinstance(src, Tensor):
        raise InvalidOperationError(f"{what}: src must be a tensor in global memory or a tile, got {src!r}")
    context = device_context(what)
    region = _element(what, src, offset)
    if context.level == "kernel":
        return _number(demands.read_scalar(context, site, src, region))

    def kernel(ctx: KernelContext) -> int | float:
        return demands.read_scalar(ctx, site, src, region)

    # What follows may depend on the number, so it is ordered after the read.
    return _number(context.run_small("read", kernel, [(src, True, False)], site, joins=True))


def _read_tile(what: str, tile: Tile, offset: Any, site: Site) -> int | float:
    context = device_context(what)
    if context.level != "kernel":
        raise InvalidOperationError(f"{what}: a tile lives in its kernel only")
    core = context.core
    core.hold(tile.op)
    core.sync()
    if tile.data is None:
        raise KernelError(
            f"a timing-only run keeps no bytes of tiles, but the program reads a scalar from {tile!r}"
        )
    if isinstance(offset, (list, tuple)):
        index = tuple(dim_value(o) for o in offset)
    else:
        flat = dim_value(offset)
        size = int(np.prod(tile.shape))
        index = tuple(int(i) for i in np.unravel_index(flat, tile.shape)) if 0 <= flat < size else (flat,)
    inside = len(index) == len(tile.shape) and all(0 <= i < s for i, s in zip(index, tile.shape, strict=True))
    if not inside:
        raise KernelError(f"out of bounds: {what} of element {list(index)} of {tile!r}")
    if tile.holes is not None and tile.holes.mask[index]:
        context.note(
            "undefined",
            f"the program reads element {list(index)} of {tile.holes.origin}, which nobody has written",
            site,
        )
    return _number(tile.data[index].item())


def write(dst: Tensor, offset: _Offset, value: Number | Dim) -> Tensor:
    """Write one element of the rank's own global memory; the scalar pipe blocks until it is visible."""
    return _write("pl.write", dst, offset, value, caller_site())


def write_at(dst: Tensor, offset: Indices, value: Any) -> None:
    """Assign to the element that a subscript names."""
    _write(f"writing an element of {dst.name}", dst, offset, value, caller_site(3))


def _write(what: str, dst: object, offset: _Offset, value: object, site: Site) -> Tensor:
    if not isinstance(dst, Tensor):
        raise InvalidOperationError(f"{what}: dst must be a tensor in global memory, got {dst!r}")
    if not isinstance(value, (int, float, np.generic, Dim)):
        raise InvalidOperationError(f"{what}: value must be a number, got {value!r}")
    context = device_context(what)
    region = _element(what, dst, offset)
    number = dim_value(value) if isinstance(value, Dim) else value
    if context.level == "kernel":
        demands.write_scalar(context, site, dst, region, number)
    else:
        context.run_small(
            "write",
            lambda ctx: demands.write_scalar(ctx, site, dst, region, number),
            [(dst, False, True)],
            site,
        )
    return dst


def const(value: Number, dtype: Any) -> int | float:
    """A constant of a dtype; plain numbers do.

    Raises:
        InvalidOperationError: no number, or one that the dtype does not hold.
    """
    kind: DataType = as_dtype(dtype)
    if not isinstance(value, (int, float, np.generic)):
        raise InvalidOperationError(f"pl.const: value must be a number, got {value!r}")
    if kind.floating or kind.name == "bool":
        found: int | float = kind.numpy.type(value).item()
        return found
    number = dim_value(value)
    info = np.iinfo(kind.numpy)
    if not info.min <= number <= info.max:
        raise InvalidOperationError(f"pl.const: {number} does not fit into {kind!r}")
    context = current()
    return number if context is None or context.level == "host" else device_int(number)


def _extreme(name: str, choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def operation(a: Any, b: Any) -> Any:
        for value in (a, b):
            if not isinstance(value, (int, float, np.generic, Dim)):
                raise InvalidOperationError(f"pl.{name} takes two scalars, got {value!r}")
        return choose(a, b)

    operation.__name__ = operation.__qualname__ = name
    return operation


minimum = _extreme("min", min)
minimum.__doc__ = """The smaller of two scalars."""
maximum = _extreme("max", max)
maximum.__doc__ = """The larger of two scalars."""
