"""What results are held against, and how deviations are called, on kernels of a few lines."""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig
from a2a3sim.checks.mismatch.reasons import explain

from .programs import exchange, summed


def total(x):
    return np.broadcast_to(x.sum(axis=0), x.shape)


def explained(kernel, golden, **options):
    """The only result of a run, explained."""
    made = exchange(kernel, golden=golden, **options)
    (said,) = explain(made.call)
    return said, made.result


def get(peer, at, width=4):
    """A kernel that fetches ``width`` elements of one rank; peer and place may depend on the own rank."""

    def kernel(data, y, me, n):
        got = pld.tile.remote_load(data, peer=peer(me, n), offsets=[0, at(me, n)], shape=[1, width])
        pl.store(got, [0, 0], y)

    return kernel


@pytest.mark.parametrize(
    ("kernel", "golden", "law"),
    [
        (summed(), total, "all-reduce"),
        (
            get(lambda me, n: 2, lambda me, n: 0, 16),
            lambda x: np.broadcast_to(x[2:3], x.shape),
            "broadcast of rank 2",
        ),
        (
            get(lambda me, n: (me + 1) % n, lambda me, n: 0, 16),
            lambda x: np.roll(x, -1, axis=0),
            "shift by 3",
        ),
        (get(lambda me, n: me, lambda me, n: 0, 16), lambda x: x, "copy"),
    ],
)
def test_the_golden_says_what_is_meant(kernel, golden, law):
    said, result = explained(kernel, golden)
    assert (said.law.name, said.certain, said.wrong, said.lines) == (law, True, [], [])
    assert result.numerics.ok


def test_gathering_and_scattering_change_the_size():
    def gather(data, y, me, n):
        for peer in range(n):
            pl.store(pld.tile.remote_load(data, peer=peer, offsets=[0, 0], shape=[1, 16]), [0, 16 * peer], y)

    said, _ = explained(gather, lambda x: np.broadcast_to(x.reshape(1, 1, -1), (4, 1, 64)), out_size=64)
    assert (said.law.name, said.lines) == ("all-gather", [])

    def scatter(data, y, me, n):
        mine = None
        for peer in range(n):
            got = pld.tile.remote_load(data, peer=peer, offsets=[0, 4 * me], shape=[1, 4])
            mine = got if mine is None else pl.add(mine, got)
        pl.store(mine, [0, 0], y)

    said, _ = explained(scatter, lambda x: x.sum(axis=0).reshape(4, 1, 4), out_size=4)
    assert (said.law.name, said.lines) == ("reduce-scatter", [])


def test_a_mean_is_a_scaled_sum():
    def mean(data, y, me, n):
        own = None
        for peer in range(n):
            got = pld.tile.remote_load(data, peer=peer, offsets=[0, 0], shape=[1, 16])
            own = got if own is None else pl.add(own, got)
        pl.store(pl.mul(own, 0.25), [0, 0], y)

    said, _ = explained(mean, lambda x: np.broadcast_to(x.mean(axis=0), x.shape))
    assert said.law.words == "0.25 times the sum over all ranks, element by element"
    # The same kernel where the sum is wanted: every contribution is a quarter of what it should be.
    said, result = explained(mean, total)
    assert not result.numerics.ok
    assert "contributions of ranks 0..3 counted 0.25 times instead of 1" in said.text()


def test_neighbours_obey_a_law_without_a_name():
    def sides(data, y, me, n):
        left = pld.tile.remote_load(data, peer=(me + n - 1) % n, offsets=[0, 0], shape=[1, 16])
        right = pld.tile.remote_load(data, peer=(me + 1) % n, offsets=[0, 0], shape=[1, 16])
        pl.store(pl.sub(left, right), [0, 0], y)

    said, _ = explained(sides, lambda x: np.roll(x, 1, axis=0) - np.roll(x, -1, axis=0))
    assert said.law.name == ""
    assert said.law.words == "-1·right neighbour's x + left neighbour's x"


def test_another_elements_stand_there():
    def late(data, y, me, n):
        pl.store(pld.tile.remote_load(data, peer=0, offsets=[0, 2], shape=[1, 14]), [0, 0], y)

    said, _ = explained(late, lambda x: np.broadcast_to(x[:1], x.shape))
    assert "elements 2..15 stand where elements 0..13 belong" in said.text()
    assert "elements 14..15: never written" in said.text()


def test_some_ranks_contribute_other_elements():
    def mixed(data, y, me, n):
        own = pl.load(data, [0, 0], [1, 8])
        got = pld.tile.remote_load(data, peer=(me + 1) % n, offsets=[0, 8], shape=[1, 8])
        pl.store(pl.add(own, got), [0, 0], y)
        pl.store(pl.add(own, own), [0, 8], y)

    said, _ = explained(mixed, total, ranks=2)
    assert "rank 1 contributes elements 8..15 instead of elements 0..7" in said.text()


def test_a_result_on_one_rank_only():
    def first(data, y, me, n):
        if me == 0:
            summed()(data, y, me, n)

    said, _ = explained(first, total)
    assert said.lines == ["ranks 1..3, all elements: never written"]


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16, pl.BF16])
def test_rounding_is_told_from_a_fault_in_every_type(dtype):
    x = np.random.default_rng(5).standard_normal((4, 1, 64)).astype(dtype.numpy)
    exact = total(x.astype(np.float64)).astype(dtype.numpy)
    strict = RunConfig(machine="ideal", rtol=0, atol=0)
    said, result = explained(summed(), exact, dtype=dtype, size=64, x=x, config=strict)
    assert said.rounding and result.numerics.ok and result.numerics.wrong > 0
    assert [(f.kind, f.subtype, f.severity) for f in result.findings if f.kind == "mismatch"] == [
        ("mismatch", "rounding", "note")
    ]
    off = exact.copy()
    off[2, 0, 7] += dtype.numpy.type(1)
    said, result = explained(summed(), off, dtype=dtype, size=64, x=x, config=strict)
    assert not said.rounding and not result.numerics.ok


def test_nan_is_never_rounding():
    golden = np.full((4, 1, 16), np.nan, np.float32)
    said, result = explained(summed(), golden)
    assert not said.rounding and not result.numerics.ok


def test_a_golden_of_something_else_is_called_so():
    said, result = explained(summed(), lambda x: total(x) ** 2 + 1)
    assert not said.certain and not result.numerics.ok
    assert "the golden is something else" in said.text()


def test_without_checks_no_cause_is_searched():
    made = exchange(
        summed(lambda n: range(1, n)), golden=total, config=RunConfig(machine="ideal", checks=False)
    )
    assert made.call.provenance is None
    assert made.result.findings == []
    assert not made.result.numerics.ok


def test_a_cause_that_cannot_be_searched_is_no_silence():
    def product(data, y, me, n):
        own = pl.load(data, [0, 0], [1, 16])
        pl.store(pl.mul(own, own), [0, 0], y)

    said, result = explained(product, total)
    assert "not linear in the inputs" in said.text()
    (finding,) = [f for f in result.findings if f.kind == "mismatch"]
    assert finding.severity == "error" and "not linear" in finding.message
