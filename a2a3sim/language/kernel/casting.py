"""``pl.cast``: conversions of dtype with the machine's rounding modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.context import KernelContext, caller_site, device_context, kernel_context
from a2a3sim.language.handles import Tensor, Tile
from a2a3sim.language.kernel import demands
from a2a3sim.language.kernel.tensors import mapped
from a2a3sim.language.types import Array, DataType, as_dtype
from a2a3sim.models.operation import Site

__all__ = ["cast", "convert"]

_MODES = {"none": 0, "rint": 1, "round": 2, "floor": 3, "ceil": 4, "trunc": 5, "odd": 6}


def cast(x: Any, target_type: Any, mode: str | int = "round") -> Any:
    """Convert a tile to another dtype (V), a tensor or a scalar.

    Args:
        mode: what becomes of a value between two of the target's: ``round`` takes the nearest and of two
            equally near ones that away from zero, ``rint`` and ``none`` the even one; ``floor``, ``ceil``,
            ``trunc`` (towards zero), ``odd`` (the odd one of the two neighbours).

    Raises:
        InvalidOperationError: unknown mode or operand; a scalar with another mode than the default.
    """
    what = "pl.cast"
    target = as_dtype(target_type)
    names = list(_MODES)
    if isinstance(mode, int) and not isinstance(mode, bool) and 0 <= mode < len(names):
        mode = names[mode]
    if mode not in _MODES:
        raise InvalidOperationError(f"{what}: mode must be one of {', '.join(names)}, got {mode!r}")
    site = caller_site()
    if isinstance(x, Tile):
        return _cast_tile(kernel_context(what), site, x, target, mode)
    if isinstance(x, Tensor):
        return mapped(
            device_context(what),
            site,
            "cast",
            (x,),
            target,
            lambda ctx, t: _cast_tile(ctx, site, t, target, mode),
        )
    if not isinstance(x, (int, float, np.generic)):
        raise InvalidOperationError(f"{what}: x must be a tile, a tensor or a scalar, got {x!r}")
    if mode != "round":
        raise InvalidOperationError(f"{what} of a scalar takes the default mode only, got {mode!r}")
    return convert(np.asarray(x), target, mode).item()


def _cast_tile(ctx: KernelContext, site: Site, x: Tile, target: DataType, mode: str) -> Tile:
    valid = None if x.valid == x.shape else x.valid
    return demands.vector(
        ctx,
        site,
        "cast",
        target,
        x.shape,
        (x,),
        lambda: convert(x.data, target, mode),
        valid,
        holes=lambda _op: x.holes,
    )


def convert(data: Array, target: DataType, mode: str) -> Array:
    """Values in another dtype; integers saturate when they come from floats and wrap when from integers."""
    floating = data.dtype.kind not in "iub"
    if not floating:
        return data.astype(target.numpy)
    if target.floating:
        return _to_half(data, target, mode) if target.itemsize == 2 else data.astype(target.numpy)
    wide = data.astype(np.float64)
    if target.name == "bool":
        return np.not_equal(wide, 0)
    rounded = np.nan_to_num(_to_whole(wide, mode), nan=0.0, posinf=np.inf, neginf=-np.inf)
    info = np.iinfo(target.numpy)
    below, above = rounded <= info.min, rounded >= info.max
    inside = np.where(below | above, 0, rounded).astype(np.int64)
    return np.where(below, info.min, np.where(above, info.max, inside)).astype(target.numpy)


def _to_whole(x: Array, mode: str) -> Any:
    if mode == "round":
        down = np.trunc(x)
        with np.errstate(invalid="ignore"):  # infinities stay what they are
            return down + np.where(np.abs(x - down) >= 0.5, np.sign(x), 0)
    if mode == "odd":
        down = np.trunc(x)
        return down + np.where((down != x) & (np.mod(down, 2) == 0), np.sign(x), 0)
    return {"rint": np.rint, "none": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}[mode](x)


def _to_half(x: Array, target: DataType, mode: str) -> Array:
    """To a 2-byte float. numpy rounds to even; the other modes choose among the two neighbours."""
    near = x.astype(target.numpy)
    if mode in ("rint", "none"):
        return near
    exact = x.astype(np.float64)
    found = near.astype(np.float64)
    bits = near.view(np.int16).copy()
    # Neighbours in the sign-magnitude order: one less in the bits is the next value towards zero.
    inner = np.where(np.abs(found) > np.abs(exact), bits - 1, bits).astype(np.int16)
    outer = np.where(np.abs(found) < np.abs(exact), bits + 1, bits).astype(np.int16)
    inexact = (found != exact) & ~np.isnan(exact)
    negative = np.signbit(exact)
    if mode == "trunc":
        chosen = inner
    elif mode == "floor":
        chosen = np.where(negative, outer, inner)
    elif mode == "ceil":
        chosen = np.where(negative, inner, outer)
    elif mode == "odd":
        chosen = np.where(inner & 1, inner, outer)
    else:
        a, b = inner.view(target.numpy).astype(np.float64), outer.view(target.numpy).astype(np.float64)
        chosen = np.where(np.abs(exact - a) < np.abs(b - exact), inner, outer)
        inexact &= ~np.isinf(found)
    return np.where(inexact, chosen, bits).astype(np.int16).view(target.numpy)
