"""Who owns what: a slice cut into chunks whose starts are multiples of 32 bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeVar

__all__ = [
    "ALIGNMENT",
    "Part",
    "Piece",
    "behind",
    "in_turn",
    "padded",
    "rotated",
    "signal_row",
    "span",
    "split",
    "stripes",
    "tiles",
]

ALIGNMENT = 32  # bytes: the granule of UB rows and of efficient transfers
_Item = TypeVar("_Item")

_LINE = 128  # int32 cells in the 512 bytes that signal memory updates one at a time


class Part(NamedTuple):
    """Elements ``start`` .. ``start + size - 1`` of a slice; ``size`` may be 0."""

    start: int
    size: int


class Piece(NamedTuple):
    """What one tile holds: ``size`` elements from ``at``, in a row of ``row``, whole 32-byte granules."""

    at: int
    size: int
    row: int


def padded(count: int, itemsize: int) -> int:
    """``count`` elements rounded up to whole 32-byte granules."""
    granule = ALIGNMENT // itemsize
    return -(-count // granule) * granule


def split(count: int, parts: int, itemsize: int, start: int = 0, multiple: int = 1) -> list[Part]:
    """Cut ``count`` elements into ``parts`` chunks as equal as granules of ``multiple`` x 32 bytes allow.

    The first chunks get the granules that are left over, the last non-empty one the ragged tail. If
    ``count / parts`` is a whole number of granules, all chunks are equal.
    """
    granule = ALIGNMENT * multiple // itemsize
    granules = -(-count // granule)
    each, more = divmod(granules, parts)
    found, at = [], 0
    for k in range(parts):
        stop = min(count, at + (each + (k < more)) * granule)
        found.append(Part(start + at, stop - at))
        at = stop
    return found


def stripes(count: int, cores: int, ranks: int, itemsize: int) -> list[list[Part]]:
    """The chunk of each rank within the stripe of each core: ``stripes(...)[core][rank]``.

    Every core works on a stripe of its own, so the cores of a device need not meet. Stripes are cut in
    multiples of ``ranks`` granules: the chunks of a rank differ by one granule at most, whatever the number
    of cores, and are equal over the ranks where ``count / ranks`` is a whole number of granules.
    """
    return [split(s.size, ranks, itemsize, s.start) for s in split(count, cores, itemsize, multiple=ranks)]


def span(parts: list[Part]) -> Part:
    """Adjacent chunks as one."""
    return Part(parts[0].start, sum(p.size for p in parts))


def tiles(part: Part, largest: int | None, itemsize: int) -> list[Piece]:
    """A chunk in pieces of at most ``largest`` elements (None: one piece)."""
    if part.size == 0:
        return []
    step = part.size if largest is None else largest
    stop = part.start + part.size
    sizes = ((at, min(step, stop - at)) for at in range(part.start, stop, step))
    return [Piece(at, size, padded(size, itemsize)) for at, size in sizes]


def in_turn(sequences: Iterable[Sequence[_Item]]) -> list[_Item]:
    """The first item of each, then the second of each, …: consecutive moves go to different peers."""
    return [item for items in zip_longest(*sequences) for item in items if item is not None]


def rotated(peers: list[int], core: int) -> list[int]:
    """Peers in turn, further cores starting further on: all links and ports are busy at any time."""
    first = core % len(peers) if peers else 0
    return peers[first:] + peers[:first]


def behind(made: Iterable[_Item], lag: int = 2) -> Iterator[_Item]:
    """Hand out each item once ``lag`` more have been made.

    A store into a window holds the scalar pipe until it is acknowledged. Stored two tiles behind, it does not
    keep the next loads from being issued.
    """
    held: deque[_Item] = deque()
    for item in made:
        held.append(item)
        if len(held) > lag:
            yield held.popleft()
    yield from held


def signal_row(cells: int) -> int:
    """Cells of a core's row in a signal window: whole 512-byte lines, so that cores do not share one."""
    return -(-cells // _LINE) * _LINE
