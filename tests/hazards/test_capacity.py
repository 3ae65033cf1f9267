"""B43, B44: what does not fit."""

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .harness import ADD, GE, everywhere, found, me, others, results

# ---- B43: a staging tile as large as the transfer -------------------------------------------------------------


def all_gather(size, chunk):
    def body(x, y, data, signal, e):
        rank = me(data)
        for p in range(2):
            pld.tensor.put(data, p, x, [rank, 0], [0, 0], [1, size], chunk_rows=1, chunk_cols=chunk)  # (put)
        pld.system.notify(signal, 1 - rank, [0, 0], 1, op=ADD)
        pld.system.wait(signal, [0, 0], 1, cmp=GE)

    return body


MIB = 1 << 18  # FP32 elements


def test_B43_a_tile_of_a_whole_row_of_1_mib():
    (told,) = everywhere(all_gather(MIB, 0), rows=2, size=MIB, tensor=(1, MIB), seeds=range(2))
    assert {v[:4] for v in told} == {("capacity", "error", ("put",), (0, 1))}
    (run,) = results(all_gather(MIB, 0), rows=2, size=MIB, tensor=(1, MIB))
    message = run.findings[0].message
    assert "1048576 B" in message  # needed
    assert "188416 B" in message  # available: 184 KiB
    assert "at most 47104 elements" in message  # the largest that fits


def test_B43_twin_in_chunks():
    assert found(all_gather(MIB, 4096), rows=2, size=MIB, tensor=(1, MIB), seeds=range(1)) == set()


def test_B43_rows_of_a_single_element():
    """Row r begins at byte 4r."""
    told = found(all_gather(1, 0), rows=2, size=1, tensor=(1, 1))
    assert told == {("alignment", "warning", ("put",))}


def test_B43_tiles_that_are_alive_together():
    def body(x, y, data, signal, e):
        tiles = [pl.load(x, [0, 0], [1, 16384]) for _ in range(4)]  # (four tiles)
        acc = tiles[0]
        for tile in tiles[1:]:
            acc = pl.add(acc, tile)
        pl.store(acc, [0, 0], y)

    (told,) = everywhere(body, size=16384, seeds=range(2))
    assert {(v.kind, v.severity, v.ranks) for v in told} == {("capacity", "error", (0, 1))}


# ---- B44: a window smaller than the worst case --------------------------------------------------------------------


def routed(capacity, tokens=8):
    """All-to-all of tokens of which all go to rank 0."""

    def body(x, y, data, signal, e):
        rank, count = me(data), 8
        for t in range(tokens):
            slot = rank * tokens + t
            pld.tile.remote_store(pl.load(x, [t, 0], [1, 16]), data, 0, [slot, 0])  # (token)
        pld.system.notify(signal, 0, [rank, 0], 1, op=ADD)
        if rank == 0:
            for p in range(count):
                pld.system.wait(signal, [p, 0], 1, cmp=GE)

    return body


def test_B44_all_tokens_go_to_one_rank():
    shape = {"ranks": 8, "size": 16, "tensor": (8, 16), "cells": (8, 16)}
    (told,) = everywhere(routed(32), rows=32, **shape)
    assert {v[:4] for v in told} == {("out-of-bounds", "error", ("token",), (4, 5, 6, 7))}
    (run,) = results(routed(32), rows=32, **shape)
    assert "holds [0, 32)" in run.findings[0].message
    assert found(routed(64), rows=64, **shape) == set()


def test_B44_windows_that_exceed_the_devices_memory():
    def body(x, y, data, signal, e):
        pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)

    (told,) = everywhere(
        body, rows=1024, size=1024, tensor=(1, 64), config={"platform_overrides": {"hbm.size": "4MiB"}}
    )
    ((kind, severity, _, _, _),) = told
    assert (kind, severity) == ("capacity", "error")
    (run,) = results(
        body, rows=1024, size=1024, tensor=(1, 64), config={"platform_overrides": {"hbm.size": "4MiB"}}
    )
    message = run.findings[0].message
    assert "window data_buf 4 MiB" in message and "4194304 B" in message
    fits = {"platform_overrides": {"hbm.size": "5MiB"}}
    assert found(body, rows=1024, size=1024, tensor=(1, 64), config=fits) == set()


@pytest.mark.parametrize("ranks", [2, 3])
def test_twin_a_barrier_of_everybody(ranks):
    def body(x, y, data, signal, e):
        for p in others(data):
            pld.system.notify(signal, p, [0, me(data)], 1, op=ADD)
        for p in others(data):
            pld.system.wait(signal, [0, p], 1, cmp=GE)

    assert found(body, ranks=ranks) == set()
