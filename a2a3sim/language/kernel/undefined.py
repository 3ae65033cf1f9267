"""Values that nobody has written: where they are, how they travel, and where a program uses one.

Outputs and created tensors hold garbage on the machine until they are written, and so does a new tile. Copying
garbage along is no fault, so it is followed from memory to tiles and back; arithmetic on it, or a scalar read, is
a use, of which the run keeps a note.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from a2a3sim.language.context import KernelContext
from a2a3sim.language.handles import Holes, Tensor, Tile
from a2a3sim.language.layout import Region
from a2a3sim.language.types import Array
from a2a3sim.models.operation import Operation, Site

__all__ = ["deposited", "inserted", "read", "taken", "used", "written"]


def _view(tensor: Tensor) -> Array:
    """Element-wise: has it been written? The flag of an element is that of its first byte."""
    layout = tensor.layout
    return np.ndarray(layout.shape, np.bool_, tensor.memory.written, layout.base, layout.strides)


def taken(tensor: Tensor, region: Region, shape: tuple[int, ...], valid: tuple[int, ...]) -> Holes | None:
    """What a load of a region finds undefined, in a tile of ``shape`` of which ``valid`` is filled."""
    missing = ~_view(tensor)[region.index].reshape(valid)
    if not missing.any():
        return None
    mask = np.zeros(shape, np.bool_)
    mask[tuple(slice(0, v) for v in valid)] = missing
    return Holes(mask, _named(tensor))


def _named(tensor: Tensor) -> str:
    kind = "the output" if tensor.memory.kind == "tensor" else "the tensor"
    return f"{kind} {tensor.memory.name}"


def deposited(
    ctx: KernelContext,
    op: Operation,
    tile: Tile,
    tensor: Tensor,
    region: Region,
    valid: tuple[slice, ...] | None,
    add: bool,
) -> None:
    """A tile has been stored: what was written is defined, what was undefined in the tile is not.

    Args:
        valid: slices of the part that was stored, None for all.
    """
    memory = tensor.memory
    holes = tile.holes
    if memory.written is None:
        memory.written = np.ones(memory.nbytes, np.bool_)  # a window: all of it is zero-filled
    view = _view(tensor)
    if add:
        missing = view[region.index].size - int(np.count_nonzero(view[region.index]))
        if missing:
            _note(
                ctx, op, f"{op.kind} adds to {missing} elements of {_named(tensor)} that nobody has written"
            )
        view[region.index] = True
    elif holes is None:
        view[region.index] = True
    else:
        mask = holes.mask if valid is None else holes.mask[valid]
        view[region.index] = ~mask.reshape(view[region.index].shape)


def inserted(target: Tile, source: Tile, index: tuple[slice, ...]) -> Holes | None:
    """``source`` put into ``target`` at ``index``."""
    before, after = target.holes, source.holes
    if before is None and after is None:
        return None
    mask = np.zeros(target.shape, np.bool_) if before is None else before.mask.copy()
    mask[index] = False if after is None else after.mask
    origin = (after or before or Holes(mask, "")).origin
    return Holes(mask, origin) if mask.any() else None


def used(ctx: KernelContext, op: Operation, operands: Iterable[Tile]) -> None:
    """Arithmetic on tiles of which some are partly undefined."""
    for tile in operands:
        holes = tile.holes
        if holes is not None:
            inside = holes.mask[tuple(slice(0, v) for v in tile.valid)]
            count = int(np.count_nonzero(inside))
            if count:
                _note(
                    ctx,
                    op,
                    f"{op.kind} uses {count} of {inside.size} elements of {holes.origin} that nobody has written",
                )


def written(tensor: Tensor, index: tuple[int, ...]) -> None:
    """A scalar has been stored."""
    _view(tensor)[index] = True


def read(ctx: KernelContext, site: Site, tensor: Tensor, index: tuple[int, ...]) -> None:
    """A scalar read of global memory."""
    if not _view(tensor)[index]:
        where = ", ".join(str(int(i)) for i in index)
        ctx.note(
            "undefined",
            f"the program reads {tensor.name}[{where}], which nobody has written",
            ctx.site or site,
        )


def _note(ctx: KernelContext, op: Operation, message: str) -> None:
    assert op.site is not None
    ctx.note("undefined", message, op.site)
