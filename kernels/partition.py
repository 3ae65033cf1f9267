"""Who owns what: a slice cut into chunks whose starts are multiples of 32 bytes."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ALIGNMENT", "Part", "split", "tiles"]

ALIGNMENT = 32  # bytes: the granule of UB rows and of efficient transfers


class Part(NamedTuple):
    """Elements ``start`` .. ``start + size - 1`` of a slice; ``size`` may be 0."""

    start: int
    size: int


def split(count: int, parts: int, itemsize: int, start: int = 0) -> list[Part]:
    """Cut ``count`` elements into ``parts`` chunks as equal as whole 32-byte granules allow.

    The first chunks get the granules that are left over, the last non-empty one the ragged tail. If
    ``count / parts`` is a multiple of 32 bytes, all chunks are equal.
    """
    granule = ALIGNMENT // itemsize
    granules = -(-count // granule)
    each, more = divmod(granules, parts)
    found, at = [], 0
    for k in range(parts):
        stop = min(count, at + (each + (k < more)) * granule)
        found.append(Part(start + at, stop - at))
        at = stop
    return found


def tiles(part: Part, largest: int | None) -> list[Part]:
    """A chunk as pieces of at most ``largest`` elements (None: one piece)."""
    if part.size == 0:
        return []
    step = part.size if largest is None else largest
    return [Part(at, min(step, part.start + part.size - at)) for at in range(part.start, part.start + part.size, step)]
