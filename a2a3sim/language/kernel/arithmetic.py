"""Elementwise arithmetic: on tiles (V), on whole tensors, on scalars."""

from __future__ import annotations

from collections.abc import Callable
from sys import _getframe
from typing import Any

import numpy as np

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.context import KernelContext, current, device_context, kernel_context
from a2a3sim.language.handles import Tensor, Tile
from a2a3sim.language.kernel import demands
from a2a3sim.language.kernel.local import described
from a2a3sim.language.kernel.tensors import mapped
from a2a3sim.models.operation import Site

__all__ = ["add", "maximum", "minimum", "mul", "sub"]


def _elementwise(
    name: str, ufunc: np.ufunc, python: Callable[[Any, Any], Any], called: str | None = None
) -> Callable[[Any, Any], Any]:
    what = called or f"pl.{name}"
    with_scalar = f"{name}s"

    def on_tiles(ctx: KernelContext, site: Site, a: Tile, b: Any) -> Tile:
        if isinstance(b, Tile):
            if a.dtype is not b.dtype:
                raise InvalidOperationError(
                    f"{what}: operands must have one dtype, got {a.dtype!r} and {b.dtype!r}; pl.cast "
                    "one of them"
                )
            if a.shape != b.shape:
                raise InvalidOperationError(
                    f"{what}: operands must have one shape, got {list(a.shape)} and {list(b.shape)}"
                )
            if (name, a.dtype, a.shape) not in ctx.vector:
                ctx.machine.check_vector(what, a.dtype)
            valid = None
            if a.valid != a.shape or b.valid != b.shape:
                valid = tuple(min(v) for v in zip(a.valid, b.valid, strict=True))
            return demands.vector(
                ctx, site, name, a.dtype, a.shape, (a, b), lambda: ufunc(a.data, b.data), valid
            )
        if isinstance(b, (Tensor, str)) or not hasattr(b, "__add__"):
            raise InvalidOperationError(f"{what}: cannot combine a tile with {described(b)}; load it first")
        if isinstance(b, float) and not a.dtype.floating:
            raise InvalidOperationError(
                f"{what}: a {a.dtype!r} tile takes a whole number, got {b!r}; pl.cast the tile"
            )
        ctx.machine.check_vector(what, a.dtype)
        value = a.dtype.numpy.type(b)
        valid = None if a.valid == a.shape else a.valid
        return demands.vector(
            ctx, site, with_scalar, a.dtype, a.shape, (a,), lambda: ufunc(a.data, value), valid
        )

    def operation(a: Any, b: Any) -> Any:
        if isinstance(a, Tile):
            ctx = current()
            if type(ctx) is not KernelContext:
                ctx = kernel_context(what)
            frame = _getframe(1)
            return on_tiles(ctx, (frame.f_code, frame.f_lasti), a, b)
        if isinstance(b, Tile):
            if isinstance(a, Tensor):
                raise InvalidOperationError(
                    f"{what}: cannot combine {described(a)} with a tile; load it first"
                )
            raise InvalidOperationError(f"{what}: a scalar can only be the second operand, got {a!r} first")
        if isinstance(a, Tensor):
            frame = _getframe(1)
            return _on_tensors(name, what, on_tiles, (frame.f_code, frame.f_lasti), a, b)
        if isinstance(b, Tensor):
            raise InvalidOperationError(f"{what}: a scalar can only be the second operand, got {a!r} first")
        try:
            return python(a, b)
        except TypeError:
            raise InvalidOperationError(f"{what}: cannot combine {described(a)} and {described(b)}") from None

    operation.__name__ = operation.__qualname__ = what.rpartition(".")[2]
    operation.__doc__ = (
        f"Elementwise {name}: tile with tile of the same shape and dtype (V), tile with scalar, "
        "tensors, or scalars.\n\n"
        "    Raises:\n        InvalidOperationError: operands of other kinds, shapes or dtypes.\n    "
    )
    return operation


def _on_tensors(
    name: str,
    what: str,
    on_tiles: Callable[[KernelContext, Site, Tile, Any], Tile],
    site: Site,
    a: Tensor,
    b: Any,
) -> Tile | Tensor:
    context = device_context(what)
    if isinstance(b, Tensor):
        if a.layout.dtype is not b.layout.dtype:
            raise InvalidOperationError(
                f"{what}: operands must have one dtype, got {a.layout.dtype!r} and {b.layout.dtype!r}"
            )
        return mapped(
            context, site, name, (a, b), a.layout.dtype, lambda ctx, x, y: on_tiles(ctx, site, x, y)
        )
    return mapped(context, site, name, (a,), a.layout.dtype, lambda ctx, x: on_tiles(ctx, site, x, b))


add = _elementwise("add", np.add, lambda a, b: a + b)
sub = _elementwise("sub", np.subtract, lambda a, b: a - b)
mul = _elementwise("mul", np.multiply, lambda a, b: a * b)
maximum = _elementwise("max", np.maximum, max, "pl.tile.maximum")
minimum = _elementwise("min", np.minimum, min, "pl.tile.minimum")
