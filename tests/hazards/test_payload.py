"""B21 - B27: bytes and the signals that announce them."""

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .harness import ADD, GE, everywhere, found, kinds, me, others, results

ROW = [1, 64]
EXPLICIT = {"config": {"fences": "explicit"}}


# ---- B21: the signal overtakes data that are still in the store pipe -------------------------------------


def published(order, remote=True):
    """Rank 0 writes (its own slice or rank 1's), signals; rank 1 waits and reads."""

    def body(x, y, data, signal, e):
        if me(data) == 0:
            if remote:
                pld.tensor.put(data, 1, x, [0, 0], [0, 0], ROW)  # (put)
            else:
                pl.store(pl.load(x, [0, 0], ROW), [0, 0], data)  # (store)
            if order is not None:
                getattr(pl.system, order)()
            pld.system.notify(signal, 1, [0, 0], 1, op=ADD)  # (notify)
        else:
            pld.system.wait(signal, [0, 0], 1, cmp=GE)
            if remote:
                tile = pl.load(data, [0, 0], ROW)  # (load)
            else:
                tile = pld.tile.remote_load(data, 0, [0, 0], ROW)  # (get)
            pl.store(tile, [0, 0], y)

    return body


def unfenced(body, **options):
    """Subtypes of the unfenced findings, over the seeds."""
    told = set()
    for seed in range(3):
        (run,) = results(body, seed=seed, **EXPLICIT, **options)
        told.add(tuple(sorted(f.subtype for f in run.findings if f.kind == "unfenced")))
    (only,) = told
    return only


def test_B21_the_signal_overtakes_a_put():
    assert found(published(None), **EXPLICIT) == {
        ("race", "error", ("put", "load")),
        ("unfenced", "error", ("notify", "put", "load")),
    }
    assert unfenced(published(None)) == ("in flight",)


def test_B21_the_signal_overtakes_a_store_to_the_own_slice():
    assert found(published(None, remote=False), **EXPLICIT) == {
        ("race", "error", ("store", "get")),
        ("unfenced", "error", ("notify", "store", "get")),
    }


def consumed(order):
    """Rank 0 reads rank 1's slice and tells it that it is free; rank 1 fills it again."""

    def body(x, y, data, signal, e):
        if me(data) == 0:
            pld.system.wait(signal, [0, 0], 1, cmp=GE)
            tile = pld.tile.remote_load(data, 1, [0, 0], ROW)  # (read)
            if order is not None:
                getattr(pl.system, order)()
            pld.system.notify(signal, 1, [1, 0], 1, op=ADD)  # (free)
            pl.store(tile, [0, 0], y)
        else:
            pl.store(pl.load(x, [0, 0], ROW), [0, 0], data)
            pl.system.fence()
            pld.system.notify(signal, 0, [0, 0], 1, op=ADD)
            pld.system.wait(signal, [1, 0], 1, cmp=GE)
            pl.store(pl.load(x, [0, 0], ROW), [0, 0], data)  # (refill)

    return body


def test_B21_an_input_is_announced_as_consumed_too_early():
    assert found(consumed(None), **EXPLICIT) == {
        ("race", "error", ("refill", "read")),
        ("unfenced", "error", ("free", "read", "refill")),
    }


@pytest.mark.parametrize("body", [published("fence"), published("fence", remote=False), consumed("drain")])
def test_B21_twins_with_the_pipe_waited_for(body):
    assert found(body, **EXPLICIT) == set()


def test_B21_twin_what_the_compiler_emits_needs_no_fences():
    assert found(published(None)) == set()
    assert found(published(None), config={"fences": "notify"}) == set()


# ---- B22: drained is not visible ---------------------------------------------------------------------------


def test_B22_drained_but_not_visible_across_the_fabric():
    told = found(published("drain", remote=False), **EXPLICIT)
    assert told == {("race", "error", ("store", "get")), ("unfenced", "error", ("notify", "store", "get"))}
    assert unfenced(published("drain", remote=False)) == ("not visible",)


def two_cores(order):
    def body(x, y, data, signal, e):
        if me(data) == 0:
            if pl.get_block_idx() == 0:
                pl.store(pl.load(x, [0, 0], ROW), [0, 0], data)  # (write here)
                if order is not None:
                    getattr(pl.system, order)()
                pld.system.notify(signal, 0, [0, 0], 1, op=ADD)
            else:
                pld.system.wait(signal, [0, 0], 1, cmp=GE)
                pl.store(pl.load(data, [0, 0], ROW), [0, 0], y)  # (read here)

    return body


def test_B22_twin_a_reader_on_the_same_device_needs_no_more_than_a_drain():
    assert found(two_cores("drain"), blocks=2, **EXPLICIT) == set()
    assert {kind for kind, _, _ in found(two_cores(None), blocks=2, **EXPLICIT)} == {"race", "unfenced"}


# ---- B23: a barrier in place of the missing fence -------------------------------------------------------------


def ring(fence, barrier):
    def body(x, y, data, signal, e):
        rank = me(data)
        peer = 1 - rank
        acc = pl.load(x, [0, 0], ROW)
        pl.store(acc, [0, 0], data)  # (stage in)
        if barrier:
            pld.system.notify(signal, peer, [2, 0], 1, op=ADD)  # (barrier)
            pld.system.wait(signal, [2, 0], 1, cmp=GE)
        if fence:
            pl.system.fence()
        pld.system.notify(signal, peer, [0, 0], 1, op=ADD)  # (ready)
        pld.system.wait(signal, [0, 0], 1, cmp=GE)
        pl.store(pl.add(acc, pld.tile.remote_load(data, peer, [0, 0], ROW)), [0, 0], y)  # (from the left)

    return body


def test_B23_an_extra_barrier_does_not_add_the_missing_edge():
    for barrier in (False, True):
        told = everywhere(ring(False, barrier), **EXPLICIT)[0]
        (fault,) = {v.marks for v in told if v.kind == "unfenced"}
        assert fault[1:] == ("stage in", "from the left")
    (run,) = results(ring(False, True), **EXPLICIT)
    (fault,) = [f for f in run.findings if f.kind == "unfenced"]
    assert "barrier after the notify does not add" in fault.fix


def test_B23_twin_a_fence_after_the_store():
    for barrier in (False, True):
        assert found(ring(True, barrier), **EXPLICIT) == set()


# ---- B24: one lane signals for all --------------------------------------------------------------------------------


def lanes(how, count=4):
    def body(x, y, data, signal, e):
        block = pl.get_block_idx()
        if me(data) == 0:
            pld.tensor.put(data, 1, x, [0, 16 * block], [0, 16 * block], [1, 16])  # (slice)
            if how == "sync":
                pl.system.sync_all()
            if how == "each" or block == 0:
                pld.system.notify(signal, 1, [0, 0], 1, op=ADD)
        elif block == 0:
            pld.system.wait(signal, [0, 0], count if how == "each" else 1, cmp=GE)
            for k in range(count):
                pl.store(pl.load(data, [0, 16 * k], [1, 16]), [0, 16 * k], y)  # (reader)

    return body


def test_B24_one_lane_signals_for_its_siblings():
    (told,) = everywhere(lanes("one"), blocks=4)
    (race,) = told
    assert race[:3] == ("race", "error", ("slice", "reader"))
    assert race.where == "data_buf bytes [64, 256]"  # slices 1 to 3 only


@pytest.mark.parametrize("how", ["sync", "each"])
def test_B24_twins_a_lane_barrier_or_a_credit_of_each(how):
    assert found(lanes(how), blocks=4) == set()


# ---- B25: one growing counter for chunks in flight ------------------------------------------------------------------


def chunks(how, count=8):
    """Each block of rank 0 sends a chunk; rank 1 takes them one by one."""

    def body(x, y, data, signal, e):
        block = pl.get_block_idx()
        if me(data) == 0:
            pld.tensor.put(data, 1, x, [0, 8 * block], [0, 8 * block], [1, 8])  # (chunk)
            pld.system.notify(signal, 1, [block if how == "rows" else 0, 0], 1, op=ADD)
        elif block == 0:
            if how == "all":
                pld.system.wait(signal, [0, 0], count, cmp=GE)
            for k in range(count):
                if how == "count":
                    pld.system.wait(signal, [0, 0], k + 1, cmp=GE)
                elif how == "rows":
                    pld.system.wait(signal, [k, 0], 1, cmp=GE)
                pl.store(pl.load(data, [0, 8 * k], [1, 8]), [0, 8 * k], y)  # (chunk k)

    return body


CHUNKS = {"blocks": 8, "cells": (8, 16)}


def test_B25_the_value_tells_how_many_chunks_are_done_and_not_which():
    (told,) = everywhere(chunks("count"), **CHUNKS)
    (race,) = told
    assert race[:3] == ("race", "error", ("chunk", "chunk k"))
    assert race.where == "data_buf bytes [0, 224]"  # every chunk but the last, for which all are waited for


@pytest.mark.parametrize("how", ["rows", "all"])
def test_B25_twins_a_row_for_each_chunk_or_a_wait_for_all(how):
    assert found(chunks(how), **CHUNKS) == set()


def test_B25_twin_chunks_of_one_core_come_in_order():
    def body(x, y, data, signal, e):
        for k in range(8):
            if me(data) == 0:
                pld.tensor.put(data, 1, x, [0, 8 * k], [0, 8 * k], [1, 8])
                pld.system.notify(signal, 1, [0, 0], 1, op=ADD)
            else:
                pld.system.wait(signal, [0, 0], k + 1, cmp=GE)
                pl.store(pl.load(data, [0, 8 * k], [1, 8]), [0, 8 * k], y)

    assert found(body) == set()


# ---- B26: a barrier that does not release ---------------------------------------------------------------------------


def relaxed(fence):
    def body(x, y, data, signal, e):
        pl.store(pl.load(x, [0, 0], ROW), [0, 0], data)  # (own part)
        if fence:
            pl.system.fence()
        for p in others(data):
            pld.system.notify(signal, p, [0, 16 * me(data)], 1, op=ADD)  # (flag)
        for p in others(data):
            pld.system.wait(signal, [0, 16 * p], 1, cmp=GE)
        for p in others(data):
            pl.store(pld.tile.remote_load(data, p, [0, 0], ROW), [0, 0], y)  # (their part)

    return body


RELAXED = {"ranks": 4, "cells": (1, 64), **EXPLICIT}


def test_B26_flags_without_a_release():
    assert found(relaxed(False), **RELAXED) == {
        ("race", "error", ("own part", "their part")),
        ("unfenced", "error", ("flag", "own part", "their part")),
    }


def test_B26_twin_with_a_fence():
    assert found(relaxed(True), **RELAXED) == set()


# ---- B27: two puts to one place ------------------------------------------------------------------------------------------


def two_puts(ordered):
    """Block 0 sends zeros, block 1 the values."""

    def body(x, y, data, signal, e):
        block = pl.get_block_idx()
        if me(data) == 0:
            if block == 0:
                pld.tile.remote_store(pl.tile.full([1, 64], pl.FP32, 0.0), data, 1, [0, 0])  # (zeros)
            if ordered:
                pl.system.sync_all()
            if block == 1:
                pld.tensor.put(data, 1, x, [0, 0], [0, 0], ROW)  # (values)
                pld.system.notify(signal, 1, [0, 0], 1, op=ADD)
        elif block == 0:
            pld.system.wait(signal, [0, 0], 1, cmp=GE)
            pl.store(pl.load(data, [0, 0], ROW), [0, 0], y)

    return body


def test_B27_two_puts_to_one_place():
    told = found(two_puts(False), blocks=2)
    assert ("race", "error", ("values", "zeros")) in told or ("race", "error", ("zeros", "values")) in told
    (run,) = results(two_puts(False), blocks=2)
    assert {f.subtype for f in run.findings if f.kind == "race"} >= {"WAW"}


def test_B27_twin_ordered_by_the_barrier_of_the_blocks():
    assert found(two_puts(True), blocks=2) == set()


def polled(x, y, data, signal, e):
    """Rank 1 polls the last element of the data instead of a signal."""
    if me(data) == 0:
        pld.tensor.put(data, 1, x, [0, 0], [0, 0], ROW)  # (data)
    else:
        while pl.read(data, [0, 63]) == 0:  # (poll)
            pass
        pl.store(pl.load(data, [0, 0], ROW), [0, 0], y)  # (use)


def test_B27_a_data_word_is_no_signal():
    for machine in ("a2", "ideal"):
        told = kinds(polled, machine=machine, seeds=range(1))
        assert "race" in told
