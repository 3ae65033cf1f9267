"""Which bytes or cells of which ranks a finding is about."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

from a2a3sim.checks.wording import listed, ranks_text

__all__ = ["Extent", "cell_name"]

_SHOWN = 4  # ranges or cells named; more are counted


def cell_name(name: str, shape: Sequence[int] | None, cell: int) -> str:
    """A cell as its program addresses it, ``signal[1, 3]``; by its number where the extents are not known."""
    if not shape:
        return f"{name}[{cell}]"
    parts = []
    for size in reversed(shape):
        cell, part = divmod(cell, size)
        parts.append(str(part))
    return f"{name}[{', '.join(reversed(parts))}]"


class Extent:
    """Ranges of the slices of one memory object, by the rank that owns the slice.

    Args:
        unit: ``bytes`` or ``cells``.
        shape: extents by which the program addresses its cells, if it has any.
    """

    __slots__ = ("_ranges", "name", "shape", "unit")

    def __init__(self, name: str, unit: str, shape: Sequence[int] | None = None) -> None:
        self.name = name
        self.unit = unit
        self.shape = shape
        self._ranges: dict[int, set[tuple[int, int]]] = {}

    def add(self, owner: int, low: int, high: int) -> None:
        """From ``low`` to one before ``high`` of a rank's slice."""
        ranges = self._ranges.get(owner)
        if ranges is None:
            self._ranges[owner] = {(low, high)}
        else:
            ranges.add((low, high))

    @property
    def owners(self) -> list[int]:
        """The ranks that own the slices."""
        return sorted(self._ranges)

    def pieces(self) -> dict[int, list[list[int]]]:
        """Per owner its ranges, joined where they touch."""
        return {owner: _joined(self._ranges[owner]) for owner in self.owners}

    def where(self) -> dict[str, Any]:
        """As findings state it: the hull, ``pieces`` by rank where that says too little, and ``names`` of cells."""
        pieces = self.pieces()
        low = min(p[0][0] for p in pieces.values())
        high = max(p[-1][1] for p in pieces.values())
        where: dict[str, Any] = {"memory": self.name, "ranks": self.owners, self.unit: [low, high]}
        if any(p != [[low, high]] for p in pieces.values()):
            where["pieces"] = {str(owner): p for owner, p in pieces.items()}
        if self.unit == "cells":
            where["names"] = self._names()
        return where

    def _names(self) -> list[str]:
        ranges = {r for found in self._ranges.values() for r in found}
        cells = sorted({cell for low, high in ranges for cell in range(low, high)})
        return [cell_name(self.name, self.shape, cell) for cell in cells]

    @property
    def text(self) -> str:
        """``bytes 0-255 of data of ranks 0..3``; with other ranges on other ranks, each with its own."""
        groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        for owner, pieces in self.pieces().items():
            groups.setdefault(tuple(map(tuple, pieces)), []).append(owner)
        if self.unit == "cells":
            return f"{_first(self._names())} of {ranks_text(self.owners)}"
        if len(groups) == 1:
            ((spans, owners),) = groups.items()
            return f"bytes {_spans(spans)} of {self.name} of {ranks_text(owners)}"
        parts = [f"bytes {_spans(spans)} of {ranks_text(owners)}" for spans, owners in groups.items()]
        return f"{self.name}: {_first(parts)}"


def _joined(ranges: set[tuple[int, int]]) -> list[list[int]]:
    found: list[list[int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1][1] = max(found[-1][1], high)
        else:
            found.append([low, high])
    return found


def _spans(pieces: Sequence[Sequence[int]]) -> str:
    """``0-255``, ``0-31 and 64-95``; evenly spaced ones as ``0-31, 64-95, … 448-479``."""
    texts = [f"{low}-{high - 1}" for low, high in pieces]
    if len(texts) <= _SHOWN:
        return listed(texts)
    steps = {b[0] - a[0] for a, b in pairwise(pieces)}
    even = len(list(groupby(high - low for low, high in pieces))) == 1 and len(steps) == 1
    if even:
        return f"{texts[0]}, {texts[1]}, … {texts[-1]}"
    return f"{', '.join(texts[:_SHOWN])} and {len(texts) - _SHOWN} more ranges"


def _first(texts: list[str]) -> str:
    if len(texts) <= _SHOWN:
        return listed(texts)
    return f"{', '.join(texts[:_SHOWN])} and {len(texts) - _SHOWN} more"
