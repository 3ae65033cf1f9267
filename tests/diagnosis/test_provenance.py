"""Contributions found by tagged repetitions: how often, which element, and when nothing can be said."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig
from a2a3sim.checks.mismatch.contributions import MIXED, NONE
from a2a3sim.checks.mismatch.provenance import trace_back

from .programs import exchange, summed


def contributions(made):
    """Counts and element numbers of rank q's element j from rank r, [q, j, r]."""
    provenance = trace_back(made.call)
    assert provenance.obstacle == ""
    (c,) = provenance.outputs.values()
    positions = np.stack([s.positions for s in c.slices])
    return provenance, c.counts[positions], c.index[positions], c


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16, pl.BF16, pl.INT32, pl.INT16, pl.INT8])
def test_a_sum_counts_every_rank_once_at_the_same_place(dtype):
    made = exchange(summed(), dtype=dtype)
    provenance, counts, index, c = contributions(made)
    assert provenance.combine == "sum"
    assert (counts == 1).all()
    assert (index == np.arange(16)[None, :, None]).all()
    assert c.known.all() and c.written.all() and not c.fresh.any()


def test_ranks_and_digits_share_repetitions():
    # zeros, ones, fresh memory; counts of 4 ranks, 3 bits each, in one word of 24; element numbers of 4 bits
    # and one for the sum, four of them in one word; one to verify.
    provenance, *_ = contributions(exchange(summed()))
    assert provenance.runs == 6


def test_a_repeated_rank_and_a_missing_one():
    _, counts, index, _ = contributions(exchange(summed(lambda n: [0, 1, 1])))
    assert (counts == [1, 2, 0, 0]).all()
    assert (index[..., 3] == NONE).all()
    assert (index[..., 1] == np.arange(16)).all()


def test_scaled_contributions_keep_their_factor():
    def kernel(data, y, me, n):
        left = pld.tile.remote_load(data, peer=(me + n - 1) % n, offsets=[0, 0], shape=[1, 16])
        own = pl.load(data, [0, 0], [1, 16])
        pl.store(pl.mul(pl.add(left, own), 0.3), [0, 0], y)

    _, counts, index, c = contributions(exchange(kernel))
    assert counts[1, 0] == pytest.approx([0.3, 0.3, 0, 0])
    assert (index[1, :, 0] == np.arange(16)).all()
    assert c.known.all()


def test_constants_are_no_contributions():
    def kernel(data, y, me, n):
        pl.store(pl.add(pl.load(data, [0, 0], [1, 16]), 1000.0), [0, 0], y)

    _, counts, _, c = contributions(exchange(kernel))
    assert (c.constant == 1000).all()
    assert (counts.sum(axis=2) == 1).all()


def test_what_nobody_stores_is_not_written():
    _, counts, _, c = contributions(exchange(summed(width=12)))
    assert c.written.reshape(4, 16).tolist() == [[True] * 12 + [False] * 4] * 4
    assert not counts[:, 12:].any()


def test_different_elements_of_a_rank_are_told_from_one_counted_often():
    def kernel(data, y, me, n):
        halves = pl.add(pl.load(data, [0, 0], [1, 8]), pl.load(data, [0, 8], [1, 8]))
        pl.store(halves, [0, 0], y)

    _, counts, index, c = contributions(exchange(kernel))
    assert (counts[2, :8, 2] == 2).all()
    assert (index[2, :8, 2] == MIXED).all()
    assert c.known[c.written].all()


def test_the_largest_of_the_inputs_is_seen_as_such():
    def kernel(data, y, me, n):
        most = pl.load(data, [0, 0], [1, 16])
        for peer in range(3):
            most = pl.maximum(most, pld.tile.remote_load(data, peer=peer, offsets=[0, 0], shape=[1, 16]))
        pl.store(most, [0, 0], y)

    provenance, counts, _, c = contributions(exchange(kernel))
    assert provenance.combine == "maximum"
    assert counts[3, 0].tolist() == [1, 1, 1, 1]
    assert counts[1, 0].tolist() == [1, 1, 1, 0]
    assert c.known.all()


def test_a_product_is_not_claimed():
    def kernel(data, y, me, n):
        own = pl.load(data, [0, 0], [1, 16])
        pl.store(pl.mul(own, own), [0, 0], y)

    *_, c = contributions(exchange(kernel))
    assert not c.known.all()


def test_fresh_memory_is_seen():
    def kernel(data, y, me, n):
        pl.store(pld.tile.remote_load(data, peer=0, offsets=[0, 8], shape=[1, 8]), [0, 0], y)

    *_, c = contributions(exchange(kernel))
    assert not c.fresh.any()

    def unstaged(data, y, me, n):
        pl.store(pl.load(y, [0, 8], [1, 8]), [0, 0], y)

    *_, c = contributions(exchange(unstaged))
    assert not c.counts.any()


def test_repetitions_leave_no_trace():
    made = exchange(summed(), golden=lambda x: np.broadcast_to(x.sum(axis=0), x.shape))
    output, path = made.output.copy(), made.result.to_json()
    trace_back(made.call)
    assert (made.output == output).all()
    assert made.result.to_json() == path


def test_a_budget_is_kept():
    assert "repetitions" in trace_back(exchange(summed()).call, budget=50).obstacle


def test_a_run_without_bytes_cannot_be_traced_back():
    made = exchange(summed(), config=RunConfig(timing_only=True))
    assert trace_back(made.call).obstacle == "a timing-only run moves no bytes"


@settings(max_examples=12)
@given(st.data())
def test_any_mixture_of_slices_is_read_back(data):
    ranks = data.draw(st.integers(2, 4))
    size = data.draw(st.sampled_from([4, 12]))
    pieces = data.draw(
        st.lists(
            st.tuples(st.integers(0, ranks - 1), st.integers(0, size - 4)),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )

    def kernel(window, y, me, n):
        total = None
        for peer, at in pieces:
            got = pld.tile.remote_load(window, peer=peer, offsets=[0, at], shape=[1, 4])
            total = got if total is None else pl.add(total, got)
        pl.store(total, [0, 0], y)

    _, counts, index, c = contributions(exchange(kernel, ranks=ranks, size=size))
    for rank in range(ranks):
        at = sorted(a for peer, a in pieces if peer == rank)
        assert (counts[0, :4, rank] == len(at)).all()
        if len(at) == 1:
            assert index[0, :4, rank].tolist() == [at[0] + k for k in range(4)]
        elif at:
            assert (index[0, :4, rank] == MIXED).all()
    assert c.known[c.written].all()
