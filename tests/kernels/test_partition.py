"""Chunks: complete, disjoint, on 32-byte starts, and as equal as that allows."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from a2a3sim.kernels.partition import (
    Part,
    behind,
    in_turn,
    padded,
    rotated,
    signal_row,
    split,
    stripes,
    tiles,
)

SIZES = {"count": st.integers(1, 5000), "itemsize": st.sampled_from([1, 2, 4])}


@given(parts=st.integers(1, 40), start=st.integers(0, 10), **SIZES)
def test_a_split_is_complete_and_starts_on_granules(count, parts, itemsize, start):
    start *= 32 // itemsize
    chunks = split(count, parts, itemsize, start)
    assert len(chunks) == parts
    at = start
    for chunk in chunks:
        assert chunk.start == at
        assert chunk.size == 0 or chunk.start * itemsize % 32 == 0
        at += chunk.size
    assert at == start + count
    assert max(c.size for c in chunks) - min(c.size for c in chunks) <= 2 * 32 // itemsize


@given(cores=st.integers(1, 8), ranks=st.integers(2, 17), **SIZES)
def test_ranks_share_alike_whatever_the_number_of_cores(count, cores, ranks, itemsize):
    cut = stripes(count, cores, ranks, itemsize)
    filled = [part for chunks in cut for part in chunks if part.size]
    assert [part.start for part in filled] == [0, *accumulate(part.size for part in filled[:-1])]
    owned = [sum(p.size for p in column) * itemsize for column in zip(*cut, strict=True)]
    assert sum(owned) == count * itemsize
    assert max(owned) - min(owned) <= 64  # a granule more and a ragged tail
    if count * itemsize % (32 * ranks) == 0:
        assert len(set(owned)) == 1


def test_one_mebibyte_on_eight_ranks_and_24_cores_is_divided_exactly():
    owned = [sum(p.size for p in column) * 4 for column in zip(*stripes(262144, 24, 8, 4), strict=True)]
    assert owned == [131072] * 8


def test_fewer_elements_than_ranks_leave_chunks_empty():
    assert split(9, 4, 4) == [(0, 8), (8, 1), (9, 0), (9, 0)]
    assert split(1, 3, 4, start=16) == [(16, 1), (17, 0), (17, 0)]


def test_tiles_have_rows_of_whole_granules():
    assert tiles(Part(8, 21), 16, 4) == [(8, 16, 16), (24, 5, 8)]
    assert tiles(Part(8, 21), None, 4) == [(8, 21, 24)]
    assert tiles(Part(8, 0), 16, 4) == []
    assert padded(33, 1) == 64


def test_orders():
    assert in_turn([[1, 2, 3], [10], [20, 21]]) == [1, 10, 20, 2, 21, 3]
    assert rotated([1, 2, 3], 4) == [2, 3, 1]
    assert rotated([], 3) == []
    assert [signal_row(cells) for cells in (1, 128, 129)] == [128, 128, 256]


def test_items_are_handed_out_behind_those_made():
    log = []

    def making():
        for k in range(4):
            log.append(f"make {k}")
            yield k

    for item in behind(making(), 2):
        log.append(f"use {item}")
    assert log == ["make 0", "make 1", "make 2", "use 0", "make 3", "use 1", "use 2", "use 3"]
