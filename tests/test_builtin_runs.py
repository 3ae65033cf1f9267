"""Built-in collectives in programs: loops, fence modes, subsets of devices, order, sites of operations."""

from itertools import pairwise

import numpy as np
import pytest
from collective_programs import (
    assert_bits,
    compiled_run,
    in_kernel,
    mesh,
    on_host,
    outcome,
    reduce_scattered,
    ring,
    values,
)

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.checks import check
from a2a3sim.errors import DeadlockError

T = pld.tensor
RANKS = (2, 3, 4, 8)
OPS = list(pld.ReduceOp)
FLOATS = (pl.FP32, pl.FP16)


# ---- one signal for everything --------------------------------------------------------------------


def _medley(_, data, signal):
    """Different collectives on one window and one signal."""
    T.allreduce(data, signal)
    T.reduce_scatter(data, signal)
    T.barrier(signal)
    T.broadcast(data, signal, root=1)
    T.barrier(signal)
    T.allreduce(data, signal, op=pld.ReduceOp.Max)


def _medley_in_numpy(xs):
    xs = reduce_scattered(mesh(xs))
    return mesh([xs[1]] * len(xs), np.maximum)


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_signal_serves_a_loop_of_different_collectives(ranks, seed, tmp_path):
    x = values(ranks, (ranks, 24), pl.FP32)
    program = in_kernel(_medley, [ranks, 24], [ranks, 24], [ranks, 1], pl.FP32, repeats=3)
    y, _ = outcome(program, ranks, tmp_path, x, (ranks, 24), seed=seed, skew="20us", slow={0: "7x"})
    expected = list(x)
    for _ in range(3):
        expected = _medley_in_numpy(expected)
    assert_bits(y, expected)


@pytest.mark.parametrize("cores", [1, 4])
def test_host_collectives_in_a_loop_share_a_signal(cores, tmp_path):
    x = values(3, (1, 1300), pl.FP32)
    call = lambda _, data, signal: T.allreduce(data, signal, core_num=cores)  # noqa: E731
    program = on_host(call, [1, 1300], [1, 1300], [3, 4], pl.FP32, repeats=3)
    y, _ = outcome(program, 3, tmp_path, x, (1, 1300), skew="50us", slow={1: "5x"})
    assert_bits(y, mesh(mesh(mesh(list(x)))))


_MODES = {
    "mesh": (lambda _, d, s: T.allreduce(d, s), [4, 1], [4], mesh),
    "ring": (lambda _, d, s: T.allreduce(d, s, mode="ring"), [6, 4], [7, 4], lambda xs: ring(xs, pl.FP32)),
    "reduce_scatter": (lambda _, d, s: T.reduce_scatter(d, s), [4, 1], [4], reduce_scattered),
    "broadcast": (lambda _, d, s: T.broadcast(d, s, root=2), [4, 1], [4], lambda xs: [xs[2]] * 4),
}


@pytest.mark.parametrize("fences", ["notify", "explicit"])
@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize("name", _MODES)
def test_results_do_not_depend_on_the_fence_mode(name, fences, host, tmp_path):
    call, in_kernel_signal, host_signal, reference = _MODES[name]
    shape = [4, 1500]
    x = values(4, shape, pl.FP32)
    form, signal = (on_host, host_signal) if host else (in_kernel, in_kernel_signal)
    program = form(call, shape, shape, signal, pl.FP32, repeats=2)
    y, _ = outcome(program, 4, tmp_path, x, shape, fences=fences, skew="30us", slow={3: "4x"})
    assert_bits(y, reference(reference(list(x))))


@pytest.mark.parametrize("host", [False, True])
def test_a_timing_only_run_takes_the_same_time(host, tmp_path):
    x = values(3, (1, 900), pl.FP32)
    form, signal = (on_host, [3]) if host else (in_kernel, [3, 1])
    program = form(lambda _, d, s: T.allreduce(d, s), [1, 900], [1, 900], signal, pl.FP32)
    times = {
        compiled_run(program, 3, tmp_path, x, np.zeros_like(x), timing_only=only).last_run.kernel_ps
        for only in (False, True)
    }
    assert len(times) == 1


@pytest.mark.parametrize("closed", [False, True])
def test_a_broadcast_needs_a_barrier_before_its_slice_is_written_again(closed, tmp_path):
    def call(x, data, signal):
        T.broadcast(data, signal, root=0)
        if closed:
            T.barrier(signal)
        pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)

    x = values(3, (1, 64), pl.FP32)
    program = in_kernel(call, [1, 64], [1, 64], [3, 1], pl.FP32)
    compiled = compiled_run(program, 3, tmp_path, x, np.zeros_like(x))
    found = {(f.kind, f.subtype) for f in check(compiled.last_trace) if f.severity == "error"}
    assert found == (set() if closed else {("race", "WAR")})


# ---- where it runs and what it is called ----------------------------------------------------------


def test_a_subset_of_the_devices_has_ranks_of_its_own(tmp_path):
    x = values(4, (1, 100), pl.FP32)
    call = lambda _, data, signal: T.broadcast(data, signal, root=1)  # noqa: E731
    program = on_host(call, [1, 100], [1, 100], [2], pl.FP32, ranks=(1, 2))
    y, compiled = outcome(program, 4, tmp_path, x, (1, 100))
    assert_bits(y, [np.zeros_like(x[0]), x[2], x[2], np.zeros_like(x[0])])  # root 1 of {1, 2} is device 2
    assert sorted(d.rank for d in compiled.last_run.dispatches if d.kernel == "broadcast") == [1, 2]


def test_an_own_signal_has_the_extents_of_the_subset(tmp_path):
    x = values(4, (1, 100), pl.FP32)
    program = on_host(lambda _, d, s: T.allreduce(d), [1, 100], [1, 100], None, pl.FP32, ranks=(0, 2))
    y, _ = outcome(program, 4, tmp_path, x, (1, 100), "allreduce_signal")
    assert_bits([y[0], y[2]], mesh([x[0], x[2]]))


def test_collectives_stand_in_each_devices_program_order(tmp_path):
    program = on_host(lambda _, d, s: T.allreduce(d, s), [1, 64], [1, 64], [2], pl.FP32, repeats=2)
    x = values(2, (1, 64), pl.FP32)
    _, compiled = outcome(program, 2, tmp_path, x, (1, 64))
    dispatches = sorted(compiled.last_run.dispatches, key=lambda d: d.index)
    assert [d.index for d in dispatches] == list(range(8))
    for rank in range(2):
        mine = [d for d in dispatches if d.rank == rank]
        assert [d.kernel for d in mine] == ["stage", "allreduce", "allreduce", "collect"]
        assert all(a.end_ps <= b.start_ps for a, b in pairwise(mine))


@pytest.mark.parametrize("host", [False, True])
def test_operations_carry_the_line_of_the_call(host, tmp_path):
    def call(_, data, signal):
        T.allreduce(data, signal)  # here

    form, signal = (on_host, [2]) if host else (in_kernel, [2, 1])
    x = values(2, (1, 64), pl.FP32)
    _, compiled = outcome(form(call, [1, 64], [1, 64], signal, pl.FP32), 2, tmp_path, x, (1, 64))
    inside = [
        op for op in compiled.last_trace.operations() if op.kind in ("notify", "wait", "remote_load", "add")
    ]
    assert {op.kind for op in inside} == {"notify", "wait", "remote_load", "add"}
    assert {compiled.last_trace.site(op).source for op in inside} == {"T.allreduce(data, signal)  # here"}
    stores = (op for op in compiled.last_trace.operations() if op.kind == "store")
    after = next(op for op in stores if op.writes[0].memory.buffer != "data_buf")
    assert "here" not in compiled.last_trace.site(after).source


def test_a_rank_that_stays_away_is_reported_at_the_call(tmp_path):
    def call(_, data, signal):
        if pld.rank(pld.get_comm_ctx(data)) != 1:
            T.barrier(signal)

    x = values(3, (1, 64), pl.FP32)
    with pytest.raises(DeadlockError, match=r"T\.barrier\(signal\)"):
        compiled_run(in_kernel(call, [1, 64], [1, 64], [3, 1], pl.FP32), 3, tmp_path, x, np.zeros_like(x))


def test_a_single_rank_has_nobody_to_wait_for(tmp_path):
    x = values(1, (1, 64), pl.FP32)
    y, compiled = outcome(
        in_kernel(lambda _, d, s: T.allreduce(d, s), [1, 64], [1, 64], [1, 1], pl.FP32),
        1,
        tmp_path,
        x,
        (1, 64),
    )
    assert_bits(y, x)
    assert compiled.last_run.per_rank[0].notifies == 0


@pytest.mark.parametrize("operation", ["maximum", "minimum"])
def test_elementwise_extrema_of_tiles_and_scalars(operation, tmp_path):
    def call(_, data, signal):
        pick = getattr(pl.tile, operation)
        tile = pick(pick(pl.load(data, [0, 0], [1, 64]), pl.load(data, [0, 64], [1, 64])), 1.0)
        pl.store(tile, [0, 0], data)

    x = values(1, (1, 128), pl.FP32)
    y = np.zeros_like(x)
    compiled = compiled_run(in_kernel(call, [1, 128], [1, 128], [1, 1], pl.FP32), 1, tmp_path, x, y)
    pick = getattr(np, operation)
    assert_bits([y[0, 0, :64]], [pick(pick(x[0, 0, :64], x[0, 0, 64:]), np.float32(1))])
    name = operation[:3]
    kinds = [op.kind for op in compiled.last_trace.operations() if op.pipe == "V"]
    assert kinds == [name, f"{name}s"]
