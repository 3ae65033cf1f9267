"""Which elements of an argument each rank was handed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from a2a3sim.language.layout import Layout
from a2a3sim.run.rerun import Argument

__all__ = ["Slice", "positions_of", "slices_of"]


@dataclass(frozen=True)
class Slice:
    """The part of an argument that belongs to one rank.

    Attributes:
        rank: None for elements that several ranks were handed.
        positions: element numbers in the argument, ascending; an element's number in the slice is its place
            here.
        shape: the extents under which the rank sees it.
    """

    name: str
    rank: int | None
    positions: np.ndarray = field(repr=False)
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Elements."""
        return len(self.positions)


def positions_of(part: Layout, whole: Layout) -> np.ndarray:
    """Element numbers of one layout in another that is contiguous; what lies outside is left out."""
    itemsize = whole.dtype.itemsize
    found = np.array((part.base - whole.base) // itemsize)
    for extent, stride in zip(part.shape, part.strides, strict=True):
        found = found[..., None] + np.arange(extent) * (stride // itemsize)
    found = found.ravel()
    return found[(found >= 0) & (found < int(np.prod(whole.shape)))]


def slices_of(argument: Argument) -> list[Slice]:
    """The slices of one argument, by rank; the common part, if there is one, last."""
    whole = argument.layout
    owner = np.full(int(np.prod(whole.shape)), -1)
    shapes: dict[int, list[tuple[int, ...]]] = {}
    for rank, part in argument.parts:
        if part.dtype is not whole.dtype:
            continue
        positions = positions_of(part, whole)
        taken = owner[positions]
        owner[positions] = np.where((taken == -1) | (taken == rank), rank, -2)
        if part.shape not in shapes.setdefault(rank, []):
            shapes[rank].append(tuple(part.shape))
    found = []
    for rank in [*sorted(shapes), -2]:
        positions = np.flatnonzero(owner == rank)
        if len(positions):
            views = shapes.get(rank, [])
            whole_view = len(views) == 1 and int(np.prod(views[0])) == len(positions)
            shape = views[0] if whole_view else (len(positions),)
            found.append(Slice(argument.name, None if rank == -2 else rank, positions, shape))
    return found
