"""B10 - B13: how windows begin, how they become known, and what nobody has written."""

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .harness import ADD, GE, SET, everywhere, found, kinds, me, others, results

ROW = [1, 64]


# ---- B10: a window is cleared after peers may have written ---------------------------------------------


def cleared(how, met_before):
    def body(x, y, data, signal, e):
        if met_before:
            pld.system.notify(signal, 1 - me(data), [1, 0], 1, op=ADD)
            pld.system.wait(signal, [1, 0], 1, cmp=GE)
        if me(data) == 1:
            if met_before:
                pld.system.wait(signal, [2, 0], 1, cmp=GE)
            pld.system.notify(signal, 0, [0, 0], 1, op=ADD)  # (notify)
        else:
            if how == "set":
                pld.system.notify(signal, 0, [0, 0], 0, op=SET)  # (clear by set)
            elif how == "store":
                pl.store(pl.tile.full([1, 16], pl.INT32, 0), [0, 0], signal)  # (clear by store)
            else:
                pl.write(signal, [0, 0], 0)  # (clear by write)
            if met_before:
                pld.system.notify(signal, 1, [2, 0], 1, op=ADD)
            pld.system.wait(signal, [0, 0], 1, cmp=GE)  # (wait)

    return body


def test_B10_cleared_when_a_peer_may_have_notified():
    for how, mark in (("store", "clear by store"), ("write", "clear by write")):
        for seed in range(4):
            (run,) = results(cleared(how, False), seed=seed)
            assert {f.kind for f in run.findings} >= {"race", "lost-credit"}, (how, seed)
        assert ("race", "error", ("notify", mark)) in found(cleared(how, False), hangs=True)
    assert "lost-credit" in kinds(cleared("set", False), hangs=True)


def test_B10_twin_cleared_before_the_peer_is_told():
    for how in ("set", "store", "write"):
        assert found(cleared(how, True)) == set()


# ---- B11: signals that are assumed to start at zero -----------------------------------------------------


def recycled(apart, met=True):
    def body(x, y, data, signal, e):
        peer = 1 - me(data)
        if e == 0:
            # The first launch uses the bytes for data of its own.
            pl.store(pl.tile.full([1, 16], pl.INT32, 7), [1 if apart else 0, 0], signal)  # (data)
            if met:
                pld.system.notify(signal, peer, [2, 0], 1, op=ADD)
                pld.system.wait(signal, [2, 0], 1, cmp=GE)
        else:
            pl.store(pl.load(x, [0, 0], ROW), [0, 0], data)  # (stage)
            pld.system.notify(signal, peer, [0, 0], 1, op=ADD)  # (credit)
            pld.system.wait(signal, [0, 0], 1, cmp=GE)  # (opened)
            pl.store(pld.tile.remote_load(data, peer, [0, 0], ROW), [0, 0], y)  # (fetch)

    return body


def test_B11_cells_carved_from_used_scratch():
    told = found(recycled(apart=False), launches=2)
    assert told == {
        ("early-release", "error", ("opened", "credit")),
        ("race", "error", ("stage", "fetch")),
        ("residue", "warning", ("data",)),
    }
    (run,) = results(recycled(apart=False), launches=2)
    assert "plain data" in next(f.message for f in run.findings if f.kind == "early-release")


def test_B11_and_the_data_may_wipe_out_a_quick_peers_credit():
    told = found(recycled(apart=False, met=False), launches=2)
    assert {("lost-credit", "error", ("data", "credit")), ("race", "error", ("credit", "data"))} <= told


def test_B11_twin_cells_that_only_signals_touch():
    assert found(recycled(apart=True), launches=2) == set()


# ---- B12: the receive buffer is cleared after the fence --------------------------------------------------


def routing(clear_first):
    def body(x, y, data, signal, e):
        rank = me(data)

        def bar(row):
            for p in others(data):
                pld.system.notify(signal, p, [row, 16 * rank], 1, op=ADD)
            for p in others(data):
                pld.system.wait(signal, [row, 16 * p], 1, cmp=GE)

        if clear_first:
            pl.store(pl.tile.full([1, 64], pl.FP32, -1.0), [0, 0], data)
        bar(0)
        if not clear_first:
            pl.store(pl.tile.full([1, 64], pl.FP32, -1.0), [0, 0], data)  # (fill)
        for p in others(data):
            pld.tensor.put(data, p, x, [0, 16 * rank], [0, 0], [1, 16])  # (put)
        bar(1)
        pl.store(pl.load(data, [0, 0], ROW), [0, 0], y)

    return body


def test_B12_the_fill_hits_what_peers_have_put():
    told = everywhere(routing(False), ranks=4, cells=(2, 64))[0]
    (race,) = told
    assert race[:3] == ("race", "error", ("fill", "put"))
    assert race.ranks == (0, 1, 2, 3)
    assert race.where == "data_buf bytes [0, 256]"


def test_B12_twin_filled_before_the_first_barrier():
    assert found(routing(True), ranks=4, cells=(2, 64)) == set()


# ---- B13: the host compares rows that nobody wrote -------------------------------------------------------


def valid_rows(count):
    def body(x, y, data, signal, e):
        for row in range(count):
            pl.store(pl.load(x, [row, 0], ROW), [row, 0], y)

    return body


CAPACITY = {"rows": 4, "size": 64, "ranks": 2}


def expected(x):
    golden = np.zeros_like(x)
    golden[:, :2] = x[:, :2]
    return golden


def test_B13_rows_that_nobody_wrote_are_compared():
    for poison in (False, True):
        (run,) = results(valid_rows(2), golden=expected, config={"poison": poison}, **CAPACITY)
        unwritten = [f for f in run.findings if f.kind == "uninitialised"]
        assert [f.severity for f in unwritten] == ["error"]
        assert unwritten[0].where["memory"] == "y"
        assert unwritten[0].where["bytes"] == [512, 2048]  # rows 2, 3 of both ranks
        assert "rows" in unwritten[0].message or "elements" in unwritten[0].message


def test_B13_twin_the_kernel_itself_is_clean():
    assert found(valid_rows(2), **CAPACITY) == set()


def test_B13_twin_everything_is_written():
    assert found(valid_rows(4), golden=lambda x: x, **CAPACITY) == set()
