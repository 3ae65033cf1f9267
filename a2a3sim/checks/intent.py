"""What a result was meant to be: the law that its golden obeys, else the one that most of it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from a2a3sim.checks.contributions import Provenance
from a2a3sim.checks.laws import Law, Result, agreement, candidates, usual

__all__ = ["expected", "intended", "rounding_room"]

_SAMPLE = 4  # elements of a slice that a constant must explain at least
_LIKELY = 0.5  # share of a law that must be there before it is taken for the intended one
_AHEAD = 0.2  # by how much the usual must be nearer than a known law


def intended(
    result: Result,
    provenance: Provenance,
    values: list[np.ndarray],
    golden: np.ndarray | None,
    limit: np.ndarray | None,
) -> tuple[Law | None, bool]:
    """The law that the result should obey, and whether the golden says so.

    Args:
        values: what the sources held.
        golden, limit: what the result should be and by how much it may differ, [rank, element]; or None.
    """
    right = np.ones(result.positions.shape, bool)
    if golden is not None and limit is not None:
        right = (np.abs(result.values - golden) <= limit) & result.written
        for law in _golden_laws(result, provenance, right):
            for offsets in (False, True):
                found = _reproducing(law, values, golden, limit, provenance.combine, offsets)
                if found is not None:
                    return found, True
        if right.all():
            return None, False  # right, by a law that nobody knows here
    return _likely(result, provenance, right), False


def _factors(result: Result) -> list[float]:
    """Factors that laws may carry: none, the one that most contributions have, that of a mean."""
    used = result.counts[result.counts != 0]
    if not used.size:
        return [1.0]
    kinds, number = np.unique(used, return_counts=True)
    return list(dict.fromkeys([1.0, float(kinds[number.argmax()]), 1.0 / len(result.ranks)]))


def _golden_laws(result: Result, provenance: Provenance, right: np.ndarray) -> Iterator[Law]:
    known = [law for law in candidates(result, provenance.sources) if law.holds.all()]
    for factor in _factors(result):
        yield from known if factor == 1 else (law.scaled(factor) for law in known)
    most = usual(result, provenance.sources, right)
    if most is not None:
        yield most


def _likely(result: Result, provenance: Provenance, among: np.ndarray) -> Law | None:
    """The law that is nearest to the result; of two that fit equally well the one named first."""
    best, score = None, _LIKELY
    fractions = [factor for factor in _factors(result) if factor == 1 or not factor.is_integer()]
    for law in candidates(result, provenance.sources):
        for factor in fractions:
            scaled = law if factor == 1 else law.scaled(factor)
            share = agreement(result, scaled)
            if share > score:
                best, score = scaled, share
    most = usual(result, provenance.sources, among)
    if most is not None:
        share = agreement(result, most)
        if share > score + (_AHEAD if share < 1 and best is not None else 0):
            best = most
    return best


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


def rounding_room(law: Law, values: list[np.ndarray], unit: float) -> np.ndarray:
    """By how much rounding may change each element, whatever the order of additions, [rank, element].

    Args:
        unit: the type's unit round-off.
    """
    sizes = np.zeros(law.counts.shape[:2])
    for k, value in enumerate(values):
        held = np.abs(value)[np.maximum(law.index[..., k], 0) % len(value)] * np.abs(law.counts[..., k])
        sizes += np.where(law.index[..., k] >= 0, held, 0)
    terms = np.maximum((law.counts != 0).sum(axis=2), 1)
    return sizes * terms * unit / (1 - terms * unit)


def _reproducing(
    law: Law, values: list[np.ndarray], golden: np.ndarray, limit: np.ndarray, combine: str, offsets: bool
) -> Law | None:
    """The law if it gives the golden, with a number of its own on each rank if ``offsets``; else None."""
    left = golden - expected(law, values, combine)
    allowed = np.maximum(limit, 2 * rounding_room(law, values, 2.0**-24))
    if not offsets:
        return law if np.all(np.abs(left) <= allowed) else None
    if left.shape[1] < _SAMPLE:
        return None  # a number of its own on each rank would explain anything
    offset = np.median(left, axis=1)
    return replace(law, offset=offset) if np.all(np.abs(left - offset[:, None]) <= allowed) else None
