"""B39 - B42: no race, and yet not what it should be."""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .harness import ADD, GE, everywhere, found, kinds, me, others, results

ROW = [1, 64]


def gathered(x):
    """What an all-gather of row r of each rank r must give."""
    ranks = x.shape[0]
    return np.stack([np.concatenate([x[p, :1] for p in range(ranks)])] * ranks)


# ---- B39: the wrong source row in an all-gather ------------------------------------------------------------


def gather(source):
    """Every rank stages its row in a window and pushes it into row ``me`` of all others' second half."""

    def body(x, y, data, signal, e):
        rank = me(data)
        count = 4
        pl.store(pl.load(x, [0, 0], ROW), [rank, 0], data)  # (stage)
        for p in range(count):
            row = p if source == "dest" else rank
            pld.tensor.put(data, p, data, [count + rank, 0], [row, 0], ROW)  # (push)
        for p in others(data):
            pld.system.notify(signal, p, [rank, 0], 1, op=ADD)
        for p in others(data):
            pld.system.wait(signal, [p, 0], 1, cmp=GE)
        for p in range(count):
            pl.store(pl.load(data, [count + p, 0], ROW), [p, 0], y)

    return body


GATHER = {"ranks": 4, "rows": 8, "size": 64, "tensor": (4, 64), "golden": gathered}


def test_B39_rows_that_were_never_staged_are_pushed():
    for seed in range(3):
        (run,) = results(gather("dest"), seed=seed, **GATHER)
        assert not run.numerics.ok
        told = {(f.kind, f.severity) for f in run.findings}
        assert ("mismatch", "error") in told
        assert ("uninitialised", "note") in told
        assert "race" not in {kind for kind, _ in told}
    zeros = next(f for f in run.findings if f.kind == "uninitialised")
    assert zeros.ranks == [0, 1, 2, 3]


def test_B39_twin_the_own_row():
    assert found(gather("own"), notes=True, **GATHER) == set()


# ---- B40: a size that does not divide --------------------------------------------------------------------------


def blocks_of(size, parts, early_return=False):
    def body(x, y, data, signal, e):
        if early_return and size % parts:
            return
        each = size // parts
        for k in range(parts):
            room = -(-each // 8) * 8
            tile = pl.load(x, [0, k * each], [1, room], valid_shape=[1, each])
            pl.store(pl.mul(tile, 2.0), [0, k * each], y)

    return body


def doubled(x):
    return 2 * x


def test_B40_floor_division_drops_the_tail():
    (told,) = everywhere(blocks_of(1000, 32), tensor=(1, 1000), size=8, golden=doubled)
    (missing,) = [v for v in told if v.kind == "uninitialised"]
    assert (missing.severity, missing.ranks) == ("error", (0, 1))
    (run,) = results(blocks_of(1000, 32), tensor=(1, 1000), size=8, golden=doubled)
    message = next(f.message for f in run.findings if f.kind == "uninitialised")
    assert "elements 992..999" in message


def test_B40_a_kernel_that_returns_without_doing_anything():
    (told,) = everywhere(blocks_of(256, 3, early_return=True), tensor=(1, 256), size=8)
    assert {(v.kind, v.severity, v.ranks) for v in told} == {("uninitialised", "warning", (0, 1))}
    told = kinds(blocks_of(256, 3, early_return=True), tensor=(1, 256), size=8, golden=doubled)
    assert "uninitialised" in told


def test_B40_twin_a_size_that_divides():
    assert found(blocks_of(1024, 32), tensor=(1, 1024), size=8, golden=doubled) == set()


# ---- B41: a signal table one row short ----------------------------------------------------------------------------


def table(rows):
    """Rounds 0 .. 2(P-1), a row each; the window goes on behind the table."""

    def body(x, y, data, signal, e):
        rank, count = me(data), 4
        cells = signal[0:rows, 0:16]
        for step in range(2 * (count - 1) + 1):
            pld.system.notify(cells, (rank + 1) % count, [step, 0], 1, op=ADD)  # (step)
            pld.system.wait(cells, [step, 0], 1, cmp=GE)

    return body


def test_B41_a_row_that_the_table_lacks_although_the_window_goes_on():
    (told,) = everywhere(table(6), ranks=4, cells=(12, 16))
    assert {v[:4] for v in told} == {("out-of-bounds", "error", ("step",), (0, 1, 2, 3))}
    (run,) = results(table(6), ranks=4, cells=(12, 16))
    message = run.findings[0].message
    assert "signal_buf[0:6, 0:16]" in message and "holds [0, 6)" in message


def test_B41_twin_a_row_for_every_round():
    assert found(table(7), ranks=4, cells=(12, 16)) == set()


# ---- B42: a type that memory cannot add ------------------------------------------------------------------------------


def summed(x, y, data, signal, e):
    pld.tensor.put(data, 0, x, atomic=pld.AtomicType.Add)  # (add)


@pytest.mark.parametrize(
    ("dtype", "overrides"), [(pl.UINT8, {}), (pl.BF16, {"atomic.dtypes": "fp32, fp16, int32"})]
)
def test_B42_a_type_that_the_machine_does_not_add(dtype, overrides):
    (told,) = everywhere(summed, ranks=4, dtype=dtype, config={"platform_overrides": overrides})
    assert {v[:4] for v in told} == {("type", "error", ("add",), (0, 1, 2, 3))}


def test_B42_twin_bf16_on_a_machine_that_has_it():
    assert found(summed, ranks=4, dtype=pl.BF16) == set()
    (run,) = results(summed, ranks=4)
    assert "rounding" in run.verdict  # the order of the sums is not fixed
