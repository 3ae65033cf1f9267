"""Which regions of the same memory object overlap, and where."""

from __future__ import annotations

import numpy as np

__all__ = ["overlapping", "ragged"]

_SPAN = 1 << 42  # bytes; larger than any memory object, so that memory and offset make one sortable number


def ragged(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The ranges starts[k] … starts[k] + counts[k] - 1, one after another."""
    ends = np.cumsum(counts)
    if not len(ends) or not ends[-1]:
        return np.zeros(0, np.int64)
    numbers: np.ndarray = np.arange(ends[-1]) + np.repeat(starts - (ends - counts), counts)
    return numbers


def overlapping(regions: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (a, b) of region numbers among ``ids`` that share a byte; a region pairs with itself too.

    Args:
        regions: one row (memory, offset, rows, row_bytes, stride) per region number.
    """
    r = regions[ids]
    low = r[:, 0] * _SPAN + r[:, 1]
    high = low + (r[:, 2] - 1) * r[:, 4] + r[:, 3]
    order = np.argsort(low, kind="stable")
    low, high, r, ids = low[order], high[order], r[order], ids[order]
    first = np.arange(len(ids)) + 1
    counts = np.searchsorted(low, high) - first
    counts = np.maximum(counts, 0)
    a = np.repeat(first - 1, counts)
    b = ragged(first, counts)
    strided = np.flatnonzero((r[a, 2] > 1) | (r[b, 2] > 1))
    if len(strided):
        keep = np.ones(len(a), bool)
        keep[strided] = _rectangles_meet(r[a[strided]], r[b[strided]])
        a, b = a[keep], b[keep]
    every = np.arange(len(ids))
    return ids[np.concatenate((every, a))], ids[np.concatenate((every, b))]


def _rectangles_meet(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Do rows of p and rows of q share a byte? p starts no later than q."""
    meet = np.zeros(len(p), bool)
    gap = q[:, 1] - p[:, 1]
    one = (p[:, 2] == 1) | (q[:, 2] == 1)
    same = ~one & (p[:, 4] == q[:, 4])
    k = np.flatnonzero(one)
    if len(k):
        # A run [s, s + n) meets rows i·stride … i·stride + row: one begins before its end and ends after s.
        rows_are_q = p[k, 2] == 1
        many = np.where(rows_are_q[:, None], q[k], p[k])
        run = np.where(rows_are_q[:, None], p[k], q[k])
        start = run[:, 1] - many[:, 1]
        first = np.maximum(-((many[:, 3] - start - 1) // many[:, 4]), 0)
        last = np.minimum((start + run[:, 3] - 1) // many[:, 4], many[:, 2] - 1)
        meet[k] = first <= last
    k = np.flatnonzero(same)
    if len(k):
        down, right = gap[k] // p[k, 4], gap[k] % p[k, 4]
        here = (right < p[k, 3]) & (down < p[k, 2])
        wraps = (right + q[k, 3] > p[k, 4]) & (down + 1 < p[k, 2])
        meet[k] = here | wraps
    for n in np.flatnonzero(~one & ~same):
        meet[n] = _row_by_row(p[n], q[n])
    return meet


def _row_by_row(p: np.ndarray, q: np.ndarray) -> bool:
    few, many = (p, q) if p[2] <= q[2] else (q, p)
    begins = many[1] + np.arange(many[2]) * many[4]
    for row in range(few[2]):
        start = few[1] + row * few[4]
        k = np.searchsorted(begins, start + few[3]) - 1
        if k >= 0 and begins[k] + many[3] > start:
            return True
    return False
