"""Faults that must be found on the first run, lucky or not, and the sound program beside each."""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .harness import ADD, GE, SET, everywhere, found, me, others, results

P = 4
CHUNK = 16
SIZE = P * CHUNK


def total(x):
    return np.broadcast_to(x.sum(axis=0, keepdims=True), x.shape)


def barrier(signal, row, value):
    rank = me(signal)
    for p in others(signal):
        pld.system.notify(signal, p, [row, 16 * rank], 1, op=ADD)  # (arrive)
    for p in others(signal):
        pld.system.wait(signal, [row, 16 * p], value, cmp=GE)  # (all here)


def two_phase(rows):
    """Reduce-scatter, barrier B, all-gather; ``rows``: signal rows of barriers A and B."""

    def body(x, y, data, signal, e):
        rank = me(data)
        pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
        barrier(signal, rows[0], 1)
        own = [0, CHUNK * rank]
        acc = pl.load(data, own, [1, CHUNK])
        for p in others(data):
            acc = pl.add(acc, pld.tile.remote_load(data, p, own, [1, CHUNK]))
        pl.store(acc, [1, CHUNK * rank], data)  # (reduce-scatter)
        for p in others(data):
            pld.system.notify(signal, p, [rows[1], 16 * rank], 1, op=ADD)  # (B arrives)
        for p in others(data):
            pld.system.wait(signal, [rows[1], 16 * p], 1, cmp=GE)  # (B)
        pl.store(acc, own, y)
        for p in others(data):
            at = CHUNK * p
            pl.store(pld.tile.remote_load(data, p, [1, at], [1, CHUNK]), [0, at], y)  # (all-gather)

    return body


TWO_PHASE = {"ranks": P, "rows": 2, "size": SIZE, "tensor": (1, SIZE), "cells": (2, 16 * P), "golden": total}


def test_two_phase_with_both_barriers_on_one_signal_row():
    (told,) = everywhere(two_phase((0, 0)), **TWO_PHASE)
    early = [v for v in told if v.kind == "early-release"]
    assert [v[:4] for v in early] == [("early-release", "error", ("B", "B arrives"), (0, 1, 2, 3))]
    races = [v for v in told if v.kind == "race"]
    assert [v[:4] for v in races] == [("race", "error", ("reduce-scatter", "all-gather"), (0, 1, 2, 3))]
    assert races[0].where == f"data_buf bytes [{4 * SIZE}, {8 * SIZE}]"
    (run,) = results(two_phase((0, 0)), **TWO_PHASE)
    race = next(f for f in run.findings if f.kind == "race")
    assert race.where["pieces"] == {
        str(r): [[4 * (SIZE + CHUNK * r), 4 * (SIZE + CHUNK * (r + 1))]] for r in range(P)
    }  # each owner's chunk of the second row
    assert "early-release" in race.fix


def test_also_where_the_result_happens_to_be_right():
    """With a slow fabric and no skew the reads come late enough; the verdict is the same."""
    lucky = {"config": {"skew": "none"}, "machine": "ideal"}
    (run,) = results(two_phase((0, 0)), **TWO_PHASE, **lucky)
    assert {f.kind for f in run.findings if f.severity == "error"} >= {"early-release", "race"}


def test_twin_a_row_for_each_barrier():
    assert found(two_phase((0, 1)), **TWO_PHASE) == set()


# ---- mesh ---------------------------------------------------------------------------------------------------


def mesh(barriers, in_place):
    def body(x, y, data, signal, e):
        pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)  # (stage)
        if barriers > 0:
            barrier(signal, 0, 1)
        acc = pl.load(data, [0, 0], [1, SIZE])
        for p in others(data):
            acc = pl.add(acc, pld.tile.remote_load(data, p, [0, 0], [1, SIZE]))  # (read)
        if barriers > 1:
            barrier(signal, 1, 1)
        if in_place:
            pl.store(acc, [0, 0], data)  # (in place)
        pl.store(acc, [0, 0], y)

    return body


MESH = {"ranks": P, "size": SIZE, "cells": (2, 16 * P)}


def test_mesh_without_its_barrier():
    (told,) = everywhere(mesh(0, False), **MESH)
    assert {v[:4] for v in told} == {("race", "error", ("stage", "read"), (0, 1, 2, 3))}


def test_in_place_mesh_without_a_second_barrier():
    (told,) = everywhere(mesh(1, True), **MESH)
    assert {v[:4] for v in told} == {("race", "error", ("in place", "read"), (0, 1, 2, 3))}


@pytest.mark.parametrize(("barriers", "in_place"), [(1, False), (2, True)])
def test_mesh_twins(barriers, in_place):
    assert found(mesh(barriers, in_place), **MESH) == set()


# ---- counters ---------------------------------------------------------------------------------------------------


def three_writers(value, op):
    """Ranks 1 to 3 put a part each into rank 0's slice and raise one cell."""

    def body(x, y, data, signal, e):
        rank = me(data)
        if rank:
            pld.tensor.put(data, 0, x, [0, CHUNK * rank], [0, 0], [1, CHUNK])  # (part)
            pld.system.notify(signal, 0, [0, 0], 1, op=op)  # (raise)
        else:
            pld.system.wait(signal, [0, 0], value, cmp=GE)
            pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)  # (use)

    return body


WRITERS = {"ranks": P, "size": SIZE}


def test_at_least_one_on_a_cell_with_three_writers():
    (told,) = everywhere(three_writers(1, ADD), **WRITERS)
    assert {v[:4] for v in told if v.severity != "note"} == {("race", "error", ("part", "use"), (0, 1, 2, 3))}


def test_a_set_on_a_shared_cell():
    told = found(three_writers(1, SET), **WRITERS)
    assert told == {("race", "error", ("part", "use")), ("lost-credit", "error", ("raise", "raise"))}


def test_twin_all_three_are_waited_for():
    assert found(three_writers(3, ADD), **WRITERS) == set()
