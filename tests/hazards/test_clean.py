"""No false alarm: everything that ships is clean, whatever the ranks, cores, sizes and machines."""

import numpy as np
import pytest
from running import compiled

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig
from a2a3sim.kernels import CATALOGUE, find
from a2a3sim.kernels.collective import Job

KERNELS = [(collective, name) for collective, names in CATALOGUE.items() for name in names]
LARGER = {"topology.devices": "32"}


def serious(run):
    return [(f.kind, f.subtype, f.severity, f.message) for f in run.findings if f.severity != "note"]


def shipped(kernel, job, tmp_path, seed=0, **config):
    """The result of a shipped kernel; None if it does not do this job."""
    form = find(*kernel)
    if form.restriction(job):
        return None
    program = compiled(form.build(job), job.ranks)
    given, taken = form.shapes(job)
    x = np.ones((job.ranks, *given), job.dtype.numpy)
    program(x, np.zeros((job.ranks, *taken), job.dtype.numpy), config=RunConfig(seed=seed, **config))
    return program.last_run


@pytest.mark.parametrize("cores", [1, 4])
@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
def test_shipped_kernels(kernel, cores, tmp_path):
    for ranks in (2, 3, 4, 7, 8):
        for count in (64 * ranks, 37):  # one that divides, one that nothing divides
            job = Job(ranks, count, pl.FP32, cores=cores, tile_bytes=1 << 14)
            run = shipped(kernel, job, tmp_path, seed=ranks, machine="a2")
            assert run is None or (serious(run) == [] and run.verdict is not None)


@pytest.mark.parametrize("machine", ["a3", "ideal", "ideal-switch"])
@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
def test_shipped_kernels_on_other_machines(kernel, machine, tmp_path):
    job = Job(16 if machine == "a3" else 6, 1000, pl.FP16, cores=2, tile_bytes=1 << 14)
    run = shipped(kernel, job, tmp_path, machine=machine)
    assert run is None or serious(run) == []


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k[0] == "allreduce"], ids="-".join)
def test_shipped_kernels_where_only_notifies_wait(kernel, tmp_path):
    run = shipped(kernel, Job(4, 256, pl.FP32, cores=2), tmp_path, machine="a2", fences="notify")
    assert serious(run) == []


# ---- built-in collectives -------------------------------------------------------------------------------------

BUILTIN = {
    "barrier": lambda x, data, signal: pld.tensor.barrier(signal),
    "broadcast": lambda x, data, signal: pld.tensor.broadcast(data, signal, root=1),
    "allgather": pld.tensor.allgather,
    "reduce_scatter": lambda x, data, signal: pld.tensor.reduce_scatter(data, signal),
    "all_to_all": pld.tensor.all_to_all,
    "mesh": lambda x, data, signal: pld.tensor.allreduce(data, signal),
    "ring": lambda x, data, signal: pld.tensor.allreduce(data, signal, mode="ring"),
}


def builtin(name, ranks, size, calls=1):
    """The collective in a kernel, on a window that is staged first and collected afterwards."""
    rows = ranks if name in ("allgather", "reduce_scatter", "all_to_all") else 1
    given = ranks if name == "all_to_all" else 1
    cells = [2 * (ranks - 1), ranks] if name == "ring" else [ranks, 1]
    room = -(-size // 8) * 8

    @pl.program
    class Builtin:
        @pl.function(type=pl.FunctionType.InCore)
        def step(
            self,
            x: pl.Tensor[[given, size], pl.FP32],
            y: pl.Out[pl.Tensor[[rows, size], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[rows, size], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[cells, pl.INT32]],
        ):
            for row in range(rows):
                tile = pl.load(x, [row if given > 1 else 0, 0], [1, room], valid_shape=[1, size])
                if name not in ("allgather", "all_to_all"):
                    pl.store(tile, [row, 0], data)
            for _ in range(calls):
                BUILTIN[name](x, data, signal)
            for row in range(rows):
                pl.store(pl.load(data, [row, 0], [1, room], valid_shape=[1, size]), [row, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[given, size], pl.FP32],
            y: pl.Out[pl.Tensor[[rows, size], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[rows, size], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[cells, pl.INT32]],
        ):
            self.step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[ranks, given, size], pl.FP32],
            y: pl.Out[pl.Tensor[[ranks, rows, size], pl.FP32]],
        ):
            data_buf = pld.alloc_window_buffer([rows, size], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer(cells, dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [rows, size], dtype=pl.FP32)
                signal = pld.window(signal_buf, cells, dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)

    return Builtin, (ranks, given, size), (ranks, rows, size)


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("name", BUILTIN)
def test_builtin_collectives(name, ranks, tmp_path):
    for size in (64, 100):  # chunks of 100 elements begin anywhere, which their caller cannot help
        program, given, taken = builtin(name, ranks, size)
        bound = compiled(program, ranks)
        bound(np.ones(given, np.float32), np.zeros(taken, np.float32))
        assert serious(bound.last_run) == []


def varying(ranks, rows=4, size=16):
    """``all_to_all_v``, whose counts every sender sets in a neighbouring word."""

    @pl.program
    class Varying:
        @pl.function(type=pl.FunctionType.InCore)
        def step(
            self,
            x: pl.Tensor[[ranks * rows, size], pl.FP32],
            counts: pl.Tensor[[ranks, 1], pl.INT32],
            y: pl.Out[pl.Tensor[[ranks * rows, size], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[ranks * rows, size], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
            got: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
        ):
            pld.tensor.all_to_all_v(x, data, signal, counts, got)
            for r in range(ranks):
                if pl.read(got, [r, 0]) > 0:
                    tile = pl.load(data, [r * rows, 0], [rows, size])
                    pl.store(tile, [r * rows, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[ranks * rows, size], pl.FP32],
            counts: pl.Tensor[[ranks, 1], pl.INT32],
            y: pl.Out[pl.Tensor[[ranks * rows, size], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[ranks * rows, size], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
            got: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
        ):
            self.step(x, counts, y, data, signal, got)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[ranks, ranks * rows, size], pl.FP32],
            counts: pl.Tensor[[ranks, ranks, 1], pl.INT32],
            y: pl.Out[pl.Tensor[[ranks, ranks * rows, size], pl.FP32]],
        ):
            data_buf = pld.alloc_window_buffer([ranks * rows, size], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
            got_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [ranks * rows, size], dtype=pl.FP32)
                signal = pld.window(signal_buf, [ranks, 1], dtype=pl.INT32)
                got = pld.window(got_buf, [ranks, 1], dtype=pl.INT32)
                self.per_rank(x[r], counts[r], y[r], data, signal, got, device=r)

    shape = (ranks, ranks * rows, size)
    return Varying, shape


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_all_to_all_v_is_clean_but_for_a_note_on_its_counts(ranks, tmp_path):
    program, shape = varying(ranks)
    bound = compiled(program, ranks)
    counts = np.full((ranks, ranks, 1), 3, np.int32)
    bound(np.ones(shape, np.float32), counts, np.zeros(shape, np.float32))
    assert serious(bound.last_run) == []
    (shared,) = [f for f in bound.last_run.findings if f.kind == "line-share"]
    assert "caller" in shared.fix
