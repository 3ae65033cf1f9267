"""Programs around one call of a built-in collective, and what numpy says it does, in the documented order."""

import numpy as np
import running

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.checks import check

REDUCE = {
    pld.ReduceOp.Sum: np.add,
    pld.ReduceOp.Max: np.maximum,
    pld.ReduceOp.Min: np.minimum,
    pld.ReduceOp.Prod: np.multiply,
}


def values(ranks, shape, dtype, seed=1):
    """Numbers around 1, so that products stay finite and rounding differs between orders."""
    rng = np.random.default_rng(seed)
    if dtype.floating:
        return rng.uniform(0.5, 1.5, (ranks, *shape)).astype(dtype.numpy)
    return rng.integers(-50, 50, (ranks, *shape)).astype(dtype.numpy)


def whole(tensor, shape, dtype):
    """All of a tensor as a tile, whose rows take whole 32-byte blocks."""
    granule = 32 // dtype.itemsize
    room = [*shape[:-1], -(-shape[-1] // granule) * granule]
    return pl.load(tensor, [0] * len(shape), room, valid_shape=list(shape))


def compiled_run(program, ranks, tmp_path, *arrays, **config):
    """Compile and run; returns the compiled program."""
    return running.run(program, ranks, *arrays, machine="a2", **config).program


def in_kernel(call, x, window, signal, dtype, *, staged=True, repeats=1):
    """``call(x, data, signal)`` inside a kernel, ``repeats`` times.

    Args:
        x: shape of the input of one rank; ``window`` and ``signal`` those of the windows.
        staged: copy x into the window first.
    """

    @pl.program
    class InKernel:
        @pl.function(type=pl.FunctionType.InCore)
        def step(
            self,
            x: pl.Tensor[x, dtype],
            y: pl.Out[pl.Tensor[window, dtype]],
            data: pl.InOut[pld.DistributedTensor[window, dtype]],
            signal: pl.InOut[pld.DistributedTensor[signal, pl.INT32]],
        ):
            if staged:
                data = pl.store(whole(x, window, dtype), [0] * len(window), data)
            for _ in pl.range(repeats):
                call(x, data, signal)
            pl.store(whole(data, window, dtype), [0] * len(window), y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[x, dtype],
            y: pl.Out[pl.Tensor[window, dtype]],
            data: pl.InOut[pld.DistributedTensor[window, dtype]],
            signal: pl.InOut[pld.DistributedTensor[signal, pl.INT32]],
        ):
            self.step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor, y: pl.Out[pl.Tensor]):
            data_buf = pld.alloc_window_buffer(window, dtype=dtype)
            signal_buf = pld.alloc_window_buffer(signal, dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, window, dtype=dtype)
                signals = pld.window(signal_buf, signal, dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signals, device=r)

    return InKernel


def on_host(call, source, window, signal, dtype, *, same=True, repeats=1, ranks=None):
    """``call(source, data, signal)`` in a host body between a dispatch that stages and one that collects.

    Args:
        same: x is staged into the target itself, else into a window of its own.
        ranks: ``device=`` of the dispatches, default all.
    """
    zeros = [0] * len(window)

    @pl.program
    class OnHost:
        @pl.function(type=pl.FunctionType.InCore)
        def stage_step(
            self, x: pl.Tensor[source, dtype], into: pl.InOut[pld.DistributedTensor[source, dtype]]
        ):
            pl.store(whole(x, source, dtype), [0] * len(source), into)

        @pl.function(type=pl.FunctionType.Orchestration)
        def stage(self, x: pl.Tensor[source, dtype], into: pl.InOut[pld.DistributedTensor[source, dtype]]):
            self.stage_step(x, into)

        @pl.function(type=pl.FunctionType.InCore)
        def collect_step(
            self, y: pl.Out[pl.Tensor[window, dtype]], data: pld.DistributedTensor[window, dtype]
        ):
            pl.store(whole(data, window, dtype), zeros, y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def collect(self, y: pl.Out[pl.Tensor[window, dtype]], data: pld.DistributedTensor[window, dtype]):
            self.collect_step(y, data)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor, y: pl.Out[pl.Tensor]):
            data_buf = pld.alloc_window_buffer(window, dtype=dtype)
            data = source_view = pld.window(data_buf, window, dtype=dtype)
            if not same:
                source_buf = pld.alloc_window_buffer(source, dtype=dtype)
                source_view = pld.window(source_buf, source, dtype=dtype)
            signals = None
            if signal is not None:
                signal_buf = pld.alloc_window_buffer(signal, dtype=pl.INT32)
                signals = pld.window(signal_buf, signal, dtype=pl.INT32)
            devices = range(pld.world_size()) if ranks is None else ranks
            for r in devices:
                self.stage(x[r], source_view, device=r)
            for _ in range(repeats):
                call(source_view, data, signals)
            for r in devices:
                self.collect(y[r], data, device=r)

    return OnHost


def mesh(xs, combine=np.add):
    """Per rank: own first, then the peers in ascending order."""
    results = []
    for rank, own in enumerate(xs):
        acc = own
        for peer, other in enumerate(xs):
            if peer != rank:
                acc = combine(acc, other)
        results.append(acc)
    return results


def ring(xs, dtype, combine=np.add):
    """Chunk c goes round from rank c on and is added to the right operand: x[c-1] + (… + (x[c+1] + x[c]))."""
    ranks = len(xs)
    flat = [x.reshape(-1) for x in xs]
    granule = 16 if dtype is pl.FP16 else 1
    starts = [i * flat[0].size // ranks // granule * granule for i in range(ranks)] + [flat[0].size]
    whole = np.empty_like(flat[0])
    for c in range(ranks):
        part = slice(starts[c], starts[c + 1])
        acc = flat[c][part]
        for k in range(1, ranks):
            acc = combine(flat[(c + k) % ranks][part], acc)
        whole[part] = acc
    return [whole.reshape(xs[0].shape)] * ranks


def reduce_scattered(xs):
    """Row r of rank r is reduced; the others keep the input."""
    results = []
    for rank, x in enumerate(xs):
        result = x.copy()
        acc = x[rank]
        for peer, other in enumerate(xs):
            if peer != rank:
                acc = acc + other[rank]
        result[rank] = acc
        results.append(result)
    return results


def signal_cells(compiled, name="signal_buf"):
    """The cells of a signal window on all ranks after the run."""
    found = [m.data.view(np.int32) for m in compiled.last_trace.memories if m.name == name]
    assert found, [m.name for m in compiled.last_trace.memories]
    return np.concatenate(found)


def moved(compiled):
    """(remote bytes read, remote bytes written) of each rank."""
    return [(r.remote_read_bytes, r.remote_write_bytes) for r in compiled.last_run.per_rank]


def outcome(program, ranks, tmp_path, x, window, name="signal_buf", **config):
    """Run; the results, after checking that the run is safe and every signal cell is back at zero."""
    y = np.zeros((ranks, *window), x.dtype)
    compiled = compiled_run(program, ranks, tmp_path, x, y, **config)
    assert not signal_cells(compiled, name).any()
    assert [f.message for f in check(compiled.last_trace) if f.severity != "note"] == []
    return y, compiled


def assert_bits(got, wanted):
    """Equal to the last bit, rank by rank."""
    for rank, (a, b) in enumerate(zip(got, wanted, strict=True)):
        assert a.tobytes() == np.ascontiguousarray(b).tobytes(), f"rank {rank}"
