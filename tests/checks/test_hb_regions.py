"""Overlap of rectangular byte regions against a set of bytes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a3sim.checks.happens_before.regions import overlapping, ragged


def bytes_of(region):
    memory, offset, rows, row_bytes, stride = region
    return {(memory, offset + r * stride + b) for r in range(rows) for b in range(row_bytes)}


@st.composite
def region(draw):
    rows, row_bytes = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    stride = row_bytes + draw(st.integers(0, 10))
    return (draw(st.integers(0, 1)), draw(st.integers(0, 40)), rows, row_bytes, stride)


@settings(max_examples=150)
@given(st.lists(region(), min_size=1, max_size=8, unique=True))
def test_pairs_are_those_that_share_a_byte(regions):
    a, b = overlapping(np.array(regions, np.int64), np.arange(len(regions)))
    found = {frozenset((int(x), int(y))) for x, y in zip(a, b, strict=True)}
    assert len(found) == len(a)
    wanted = {
        frozenset((i, j))
        for i in range(len(regions))
        for j in range(i, len(regions))
        if bytes_of(regions[i]) & bytes_of(regions[j])
    }
    assert found == wanted


def test_columns_of_a_matrix_do_not_overlap():
    left, right = (0, 0, 4, 16, 32), (0, 16, 4, 16, 32)
    row = (0, 32, 1, 32, 32)
    a, b = overlapping(np.array([left, right, row], np.int64), np.arange(3))
    assert {tuple(sorted(p)) for p in zip(a.tolist(), b.tolist(), strict=True)} == {
        (0, 0),
        (1, 1),
        (2, 2),
        (0, 2),
        (1, 2),
    }


def test_ragged_ranges():
    assert ragged(np.array([5, 0, 7]), np.array([2, 0, 3])).tolist() == [5, 6, 7, 8, 9]
    assert ragged(np.array([], np.int64), np.array([], np.int64)).tolist() == []
