"""What a result was meant to be: the law that its golden obeys, else the one that most of it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from a2a3sim.checks.mismatch.contributions import Provenance
from a2a3sim.checks.mismatch.laws import Law, agreement, candidates, usual
from a2a3sim.checks.mismatch.results import Result

__all__ = ["expected", "intended", "rounding_room"]

_SAMPLE = 4  # elements of a slice that a constant must explain at least
_LIKELY = 0.5  # share of a law that must be there before it is taken for the intended one
_THIN = 512  # elements of each rank by which laws are tried
_AHEAD = 0.2  # by how much the usual must be nearer than a known law


def intended(
    result: Result,
    provenance: Provenance,
    values: list[np.ndarray],
    golden: np.ndarray | None,
    limit: np.ndarray | None,
    unit: float,
) -> tuple[Law | None, bool]:
    """The law that the result should obey, and whether the golden says so.

    Args:
        values: what the sources held.
        unit: the element type's unit round-off, 0 for integers.
        golden, limit: what the result should be and by how much it may differ, [rank, element]; or None.
    """
    known = list(candidates(result, provenance.sources))
    factors = _factors(result)
    if golden is None or limit is None:
        return _likely(result, provenance, known, factors, np.ones(result.positions.shape, bool)), False
    right = (np.abs(result.values - golden) <= limit) & result.written
    thin = result.thinned(_THIN)
    at = np.searchsorted(result.elements, thin.elements)
    few = list(candidates(thin, provenance.sources))

    def obeyed(make: Callable[[], Law | None], law: Law | None, factor: float, offsets: bool) -> Law | None:
        """The law in full if the golden obeys it, first on a few elements."""
        if law is None or not law.holds.all():
            return None
        some = golden[:, at], limit[:, at], unit, provenance.combine, offsets
        if _reproducing(_times(law, factor), values, *some) is None:
            return None
        whole = make()
        if whole is None or not whole.holds.all():
            return None
        return _reproducing(_times(whole, factor), values, golden, limit, unit, provenance.combine, offsets)

    for offsets in (False, True):
        for factor in factors:
            for make, make_few in zip(known, few, strict=True):
                law = obeyed(make, make_few(), factor, offsets)
                if law is not None:
                    return law, True
        most = usual(thin, provenance.sources, right[:, at])
        law = obeyed(lambda: usual(result, provenance.sources, right), most, 1.0, offsets)
        if law is not None:
            return law, True
    if right.all():
        return None, False  # right, by a law that nobody knows here
    return _likely(result, provenance, known, factors, right), False


def _times(law: Law, factor: float) -> Law:
    return law if factor == 1 else law.scaled(factor)


def _factors(result: Result) -> list[float]:
    """Factors that laws may carry: none, the one that most contributions have, that of a mean."""
    used = result.counts[result.counts != 0]
    if not used.size:
        return [1.0]
    kinds, number = np.unique(used, return_counts=True)
    return list(dict.fromkeys([1.0, float(kinds[number.argmax()]), 1.0 / len(result.ranks)]))


def _likely(
    result: Result,
    provenance: Provenance,
    known: list[Callable[[], Law]],
    factors: list[float],
    among: np.ndarray,
) -> Law | None:
    """The law that is nearest to the result; of two that fit equally well the one named first."""
    thin = result.thinned(_THIN)
    at = np.searchsorted(result.elements, thin.elements)
    best, score = None, _LIKELY
    for make, make_few in zip(known, candidates(thin, provenance.sources), strict=True):
        few = make_few()
        for factor in factors:
            if factor != 1 and factor.is_integer():
                continue
            share = agreement(thin, _times(few, factor))
            if share > score:
                best, score = (make, factor), share
    most = usual(thin, provenance.sources, among[:, at])
    if most is not None:
        share = agreement(thin, most)
        if share > score + (_AHEAD if share < 1 and best is not None else 0):
            return usual(result, provenance.sources, among)
    return None if best is None else _times(best[0](), best[1])


def expected(law: Law, values: list[np.ndarray], combine: str) -> np.ndarray:
    """What a law makes of the inputs, [rank, element]."""
    total = np.zeros(law.counts.shape[:2])
    for k, value in enumerate(values):
        there = law.index[..., k] >= 0
        part = np.where(there, value[np.maximum(law.index[..., k], 0) % len(value)] * law.counts[..., k], 0)
        if combine == "sum":
            total = total + part
        else:
            first = ~(law.index[..., :k] >= 0).any(axis=2)
            total = np.where(there, np.where(first, part, np.maximum(total, part)), total)
    return total


def rounding_room(law: Law, values: list[np.ndarray], golden: np.ndarray, unit: float) -> np.ndarray:
    """By how much two sums of the same terms may differ, in whatever orders they are added, [rank, element].

    Args:
        unit: the type's unit round-off.
    """
    sizes = np.zeros(law.counts.shape[:2])
    for k, value in enumerate(values):
        held = np.abs(value)[np.maximum(law.index[..., k], 0) % len(value)] * np.abs(law.counts[..., k])
        sizes += np.where(law.index[..., k] >= 0, held, 0)
    terms = np.maximum((law.counts != 0).sum(axis=2), 1)
    room: np.ndarray = 2 * sizes * terms * unit / (1 - terms * unit) + 2 * unit * np.abs(golden)
    return room


def _reproducing(
    law: Law,
    values: list[np.ndarray],
    golden: np.ndarray,
    limit: np.ndarray,
    unit: float,
    combine: str,
    offsets: bool,
) -> Law | None:
    """The law if it gives the golden, with a number of its own on each rank if ``offsets``; else None."""
    left = golden - expected(law, values, combine)
    allowed = np.maximum(limit, rounding_room(law, values, golden, unit))
    if not offsets:
        return law if np.all(np.abs(left) <= allowed) else None
    if left.shape[1] < _SAMPLE:
        return None  # a number of its own on each rank would explain anything
    offset = np.median(left, axis=1)
    return replace(law, offset=offset) if np.all(np.abs(left - offset[:, None]) <= allowed) else None
