"""PyPTO's built-in collectives: results bit for bit, bytes moved, signals left at zero, in both forms."""

import numpy as np
import pytest
from collective_programs import (
    REDUCE,
    assert_bits,
    compiled_run,
    in_kernel,
    mesh,
    moved,
    on_host,
    outcome,
    reduce_scattered,
    ring,
    signal_cells,
    values,
)

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.checks import check

T = pld.tensor
RANKS = (2, 3, 4, 8)
OPS = list(pld.ReduceOp)
FLOATS = (pl.FP32, pl.FP16)


# ---- all-reduce -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_mesh_in_a_kernel_adds_own_first_then_peers_ascending(ranks, dtype, op, tmp_path):
    n = 300
    x = values(ranks, (1, n), dtype)
    call = lambda x, data, signal: T.allreduce(data, signal, op=op)  # noqa: E731
    y, compiled = outcome(in_kernel(call, [1, n], [1, n], [ranks, 1], dtype), ranks, tmp_path, x, (1, n))
    assert_bits(y, mesh(list(x), REDUCE[op]))
    assert moved(compiled) == [((ranks - 1) * n * dtype.itemsize, 0)] * ranks


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_ring_in_a_kernel_passes_chunks_from_left_to_right(ranks, dtype, op, tmp_path):
    n = 301
    x = values(ranks, (1, n), dtype)
    call = lambda x, data, signal: T.allreduce(data, signal, op=op, mode="ring")  # noqa: E731
    program = in_kernel(call, [1, n], [1, n], [2 * (ranks - 1), ranks], dtype)
    y, compiled = outcome(program, ranks, tmp_path, x, (1, n))
    assert_bits(y, ring(list(x), dtype, REDUCE[op]))
    # 2(P-1)/P·N on average over the ranks: each of the P chunks is read 2(P-1) times in all.
    assert sum(read for read, _ in moved(compiled)) == 2 * (ranks - 1) * n * dtype.itemsize


@pytest.mark.parametrize(("n", "barriers"), [(4096, 2), (4097, 3), (10_000, 4)])
def test_mesh_in_a_kernel_has_a_barrier_more_than_16_kib_pieces(n, barriers, tmp_path):
    x = values(2, (1, n), pl.FP32)
    program = in_kernel(lambda x, d, s: T.allreduce(d, s), [1, n], [1, n], [2, 1], pl.FP32)
    y, compiled = outcome(program, 2, tmp_path, x, (1, n))
    assert_bits(y, mesh(list(x)))
    # One peer: one credit out per barrier, and one settlement.
    assert [r.notifies for r in compiled.last_run.per_rank] == [barriers + 1] * 2
    assert [r.waits for r in compiled.last_run.per_rank] == [barriers] * 2


def test_ring_in_a_kernel_has_two_barriers_for_each_piece_of_each_round(tmp_path):
    ranks, n = 3, 13_000  # chunks of 4333 or 4334 elements: two pieces
    x = values(ranks, (1, n), pl.FP32)
    program = in_kernel(lambda x, d, s: T.allreduce(d, s, mode="ring"), [1, n], [1, n], [4, ranks], pl.FP32)
    y, compiled = outcome(program, ranks, tmp_path, x, (1, n))
    assert_bits(y, ring(list(x), pl.FP32))
    # 4 rounds x 2 pieces x 2 barriers x 2 peers
    assert [r.waits for r in compiled.last_run.per_rank] == [32] * ranks


def test_ring_of_more_ranks_than_elements(tmp_path):
    x = values(4, (1, 3), pl.FP32)
    program = in_kernel(lambda x, d, s: T.allreduce(d, s, mode="ring"), [1, 3], [1, 3], [6, 4], pl.FP32)
    y, _ = outcome(program, 4, tmp_path, x, (1, 3))
    assert_bits(y, ring(list(x), pl.FP32))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(("cores", "own"), [(1, False), (4, False), (1, True), (4, True)])
@pytest.mark.parametrize(("dtype", "op"), [(pl.FP32, op) for op in OPS] + [(pl.FP16, pld.ReduceOp.Sum)])
def test_mesh_on_the_host_deals_tiles_to_its_cores(ranks, cores, own, dtype, op, tmp_path):
    n = 1300  # six tiles of 256 elements, the last one of 20
    x = values(ranks, (1, n), dtype)

    def call(_, data, signal):
        signals = () if own else (signal,)
        assert T.allreduce(data, *signals, op=op, core_num=cores) is data

    signal = None if own else [ranks] if cores == 1 else [ranks, cores + 1]
    program = on_host(call, [1, n], [1, n], signal, dtype)
    name = "allreduce_signal" if own else "signal_buf"
    y, compiled = outcome(program, ranks, tmp_path, x, (1, n), name)
    assert_bits(y, mesh(list(x), REDUCE[op]))
    assert moved(compiled) == [((ranks - 1) * n * dtype.itemsize, 0)] * ranks
    dispatches = [(d.kernel, d.cores) for d in compiled.last_run.dispatches if d.kernel == "allreduce"]
    assert dispatches == [("allreduce", cores)] * ranks
    # Each lane: one barrier, and one for each of its tiles.
    assert compiled.last_run.per_rank[0].waits == (cores + 6) * (ranks - 1)


@pytest.mark.parametrize("ranks", RANKS)
def test_ring_on_the_host_has_a_barrier_a_round_and_one_behind(ranks, tmp_path):
    n = 120 * ranks
    x = values(ranks, (1, n), pl.FP32)
    call = lambda _, data, signal: T.allreduce(data, signal, mode="ring")  # noqa: E731
    program = on_host(call, [1, n], [1, n], [2 * (ranks - 1) + 1, ranks], pl.FP32, repeats=2)
    y, compiled = outcome(program, ranks, tmp_path, x, (1, n))
    assert_bits(y, ring(ring(list(x), pl.FP32), pl.FP32))
    # Two calls of 2(P-1) chunks of 120 elements.
    assert moved(compiled) == [(2 * 2 * (ranks - 1) * 120 * 4, 0)] * ranks
    assert [r.waits for r in compiled.last_run.per_rank] == [2 * (2 * ranks - 1) * (ranks - 1)] * ranks


# ---- the others -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("host", [False, True])
def test_broadcast_reads_roots_slice(ranks, host, tmp_path):
    n, root = 5000, ranks - 1
    x = values(ranks, (1, n), pl.FP32)
    call = lambda _, data, signal: T.broadcast(data, signal, root=root)  # noqa: E731
    form, signal = (on_host, [ranks]) if host else (in_kernel, [ranks, 1])
    y, compiled = outcome(form(call, [1, n], [1, n], signal, pl.FP32), ranks, tmp_path, x, (1, n))
    assert_bits(y, [x[root]] * ranks)
    assert moved(compiled) == [(0 if rank == root else n * 4, 0) for rank in range(ranks)]
    assert compiled.last_run.per_rank[0].waits == ranks - 1


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("host", [False, True])
def test_allgather_writes_the_own_row_everywhere(ranks, host, tmp_path):
    n = 5000  # more than one staging tile
    x = values(ranks, (1, n), pl.FP32)
    call = T.allgather
    if host:
        program = on_host(call, [1, n], [ranks, n], [ranks], pl.FP32, same=False)
    else:
        program = in_kernel(call, [1, n], [ranks, n], [ranks, 1], pl.FP32, staged=False)
    y, compiled = outcome(program, ranks, tmp_path, x, (ranks, n))
    assert_bits(y, [x[:, 0]] * ranks)
    assert moved(compiled) == [(0, (ranks - 1) * n * 4)] * ranks
    assert compiled.last_run.per_rank[0].waits == ranks - 1


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("host", [False, True])
def test_all_to_all_exchanges_rows(ranks, host, tmp_path):
    n = 130
    x = values(ranks, (ranks, n), pl.FP32)
    call = T.all_to_all
    if host:
        program = on_host(call, [ranks, n], [ranks, n], [ranks, 1], pl.FP32, same=False)
    else:
        program = in_kernel(call, [ranks, n], [ranks, n], [ranks, 1], pl.FP32, staged=False)
    y, compiled = outcome(program, ranks, tmp_path, x, (ranks, n))
    assert_bits(y, [x[:, rank] for rank in range(ranks)])
    assert moved(compiled) == [(0, (ranks - 1) * n * 4)] * ranks


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("host", [False, True])
def test_reduce_scatter_reduces_the_own_row_and_keeps_the_others(ranks, host, tmp_path):
    n = 130
    x = values(ranks, (ranks, n), pl.FP32)
    call = lambda _, data, signal: T.reduce_scatter(data, signal, op=pld.ReduceOp.Sum)  # noqa: E731
    form, signal = (on_host, [ranks]) if host else (in_kernel, [ranks, 1])
    y, compiled = outcome(form(call, [ranks, n], [ranks, n], signal, pl.FP32), ranks, tmp_path, x, (ranks, n))
    assert_bits(y, reduce_scattered(list(x)))
    assert moved(compiled) == [((ranks - 1) * n * 4, 0)] * ranks
    assert compiled.last_run.per_rank[0].waits == 2 * (ranks - 1)


def test_reduce_scatter_of_rows_longer_than_a_piece_still_has_two_barriers(tmp_path):
    n = 10_000
    x = values(2, (2, n), pl.FP32)
    program = in_kernel(lambda x, d, s: T.reduce_scatter(d, s), [2, n], [2, n], [2, 1], pl.FP32)
    y, compiled = outcome(program, 2, tmp_path, x, (2, n))
    assert_bits(y, reduce_scattered(list(x)))
    assert compiled.last_run.per_rank[0].waits == 2


@pytest.mark.parametrize("dtype", [pl.INT32, pl.BF16, pl.INT16], ids=repr)
def test_moving_collectives_in_a_kernel_take_any_dtype(dtype, tmp_path):
    x = values(3, (1, 48), dtype)
    program = in_kernel(T.allgather, [1, 48], [3, 48], [3, 1], dtype, staged=False)
    y, _ = outcome(program, 3, tmp_path, x, (3, 48))
    assert_bits(y, [x[:, 0]] * 3)


def _exchange_blocks(ranks, rows, size, host):
    """Blocks of ``rows`` x ``size`` with counts; the host form stages both into windows."""
    whole = [ranks * rows, size]
    data_t, counts_t = pld.DistributedTensor[whole, pl.FP32], pld.DistributedTensor[[ranks, 1], pl.INT32]
    x_t, c_t = pl.Tensor[whole, pl.FP32], pl.Tensor[[ranks, 1], pl.INT32]

    @pl.program
    class Exchange:
        @pl.function(type=pl.FunctionType.InCore)
        def exchange_step(
            self,
            x: x_t,
            counts: c_t,
            target: pl.InOut[data_t],
            signal: pl.InOut[counts_t],
            received: pl.InOut[counts_t],
        ):
            T.all_to_all_v(x, target, signal, counts, received)

        @pl.function(type=pl.FunctionType.Orchestration)
        def exchange(
            self,
            x: x_t,
            counts: c_t,
            target: pl.InOut[data_t],
            signal: pl.InOut[counts_t],
            received: pl.InOut[counts_t],
        ):
            self.exchange_step(x, counts, target, signal, received)

        @pl.function(type=pl.FunctionType.InCore)
        def stage_step(self, x: x_t, counts: c_t, rows_in: pl.InOut[data_t], counts_in: pl.InOut[counts_t]):
            pl.store(pl.load(x, [0, 0], whole), [0, 0], rows_in)
            pl.store(pl.load(counts, [0, 0], [ranks, 1]), [0, 0], counts_in)

        @pl.function(type=pl.FunctionType.Orchestration)
        def stage(self, x: x_t, counts: c_t, rows_in: pl.InOut[data_t], counts_in: pl.InOut[counts_t]):
            self.stage_step(x, counts, rows_in, counts_in)

        @pl.function(type=pl.FunctionType.InCore)
        def collect_step(
            self, y: pl.Out[x_t], got: pl.Out[c_t], target: pl.InOut[data_t], received: pl.InOut[counts_t]
        ):
            pl.store(pl.load(target, [0, 0], whole), [0, 0], y)
            pl.store(pl.load(received, [0, 0], [ranks, 1]), [0, 0], got)

        @pl.function(type=pl.FunctionType.Orchestration)
        def collect(
            self, y: pl.Out[x_t], got: pl.Out[c_t], target: pl.InOut[data_t], received: pl.InOut[counts_t]
        ):
            self.collect_step(y, got, target, received)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor, counts: pl.Tensor, y: pl.Out[pl.Tensor], got: pl.Out[pl.Tensor]):
            target_buf = pld.alloc_window_buffer(whole, dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
            received_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
            target = pld.window(target_buf, whole, dtype=pl.FP32)
            signal = pld.window(signal_buf, [ranks, 1], dtype=pl.INT32)
            received = pld.window(received_buf, [ranks, 1], dtype=pl.INT32)
            if host:
                rows_buf = pld.alloc_window_buffer(whole, dtype=pl.FP32)
                counts_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
                rows_in = pld.window(rows_buf, whole, dtype=pl.FP32)
                counts_in = pld.window(counts_buf, [ranks, 1], dtype=pl.INT32)
                for r in pl.range(pld.world_size()):
                    self.stage(x[r], counts[r], rows_in, counts_in, device=r)
                T.all_to_all_v(rows_in, target, signal, counts_in, received)
            else:
                for r in pl.range(pld.world_size()):
                    self.exchange(x[r], counts[r], target, signal, received, device=r)
            for r in pl.range(pld.world_size()):
                self.collect(y[r], got[r], target, received, device=r)

    return Exchange


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("host", [False, True])
def test_all_to_all_v_moves_whole_blocks_and_clips_the_counts(ranks, host, tmp_path):
    rows, size = 5, 24
    x = values(ranks, (ranks * rows, size), pl.FP32)
    counts = np.random.default_rng(3).integers(0, rows + 4, (ranks, ranks, 1)).astype(np.int32)
    y, got = np.zeros_like(x), np.full_like(counts, -1)
    compiled = compiled_run(_exchange_blocks(ranks, rows, size, host), ranks, tmp_path, x, counts, y, got)
    blocks = x.reshape(ranks, ranks, rows, size)
    for rank in range(ranks):
        # Rows beyond the count are the sender's, not zero.
        assert y[rank].tobytes() == np.ascontiguousarray(blocks[:, rank]).tobytes()
        assert got[rank, :, 0].tolist() == np.minimum(counts[:, rank, 0], rows).tolist()
    assert moved(compiled) == [(0, (ranks - 1) * rows * size * 4)] * ranks
    assert not signal_cells(compiled).any()
    # The counts are neighbouring words that different ranks Set: a finding where a Set writes its whole line.
    assert {(f.kind, f.severity) for f in check(compiled.last_trace)} == {("line-share", "note")}
    assert not [f for f in check(compiled.last_trace, set_writes_line=False) if f.severity != "note"]


# ---- barriers -------------------------------------------------------------------------------------


def _barrier_program(ranks, host):
    """Stage, barrier, read the left neighbour's slice: right only if the barrier holds."""
    data_t = pld.DistributedTensor[[1, 64], pl.FP32]
    signal_t = pld.DistributedTensor[[ranks, 1], pl.INT32]
    x_t = pl.Tensor[[1, 64], pl.FP32]

    @pl.program
    class Barrier:
        @pl.function(type=pl.FunctionType.InCore)
        def stage_step(self, x: x_t, data: pl.InOut[data_t], signal: pl.InOut[signal_t]):
            pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)
            if not host:
                assert T.barrier(signal) is signal

        @pl.function(type=pl.FunctionType.Orchestration)
        def stage(self, x: x_t, data: pl.InOut[data_t], signal: pl.InOut[signal_t]):
            self.stage_step(x, data, signal)

        @pl.function(type=pl.FunctionType.InCore)
        def read_step(self, y: pl.Out[x_t], data: data_t, signal: signal_t):
            me = pld.rank(pld.get_comm_ctx(data))
            left = pld.tile.remote_load(data, (me + ranks - 1) % ranks, [0, 0], [1, 64])
            pl.store(left, [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def read(self, y: pl.Out[x_t], data: data_t, signal: signal_t):
            self.read_step(y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def entry(self, x: pl.Tensor, y: pl.Out[pl.Tensor]):
            data_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([ranks], dtype=pl.INT32)
            data = pld.window(data_buf, [1, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [ranks], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.stage(x[r], data, signal, device=r)
            if host:
                pld.tensor.barrier(signal)
            for r in pl.range(pld.world_size()):
                self.read(y[r], data, signal, device=r)

    return Barrier


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("host", [False, True])
def test_nobody_passes_a_barrier_before_the_slowest_has_come(ranks, host, tmp_path):
    x = values(ranks, (1, 64), pl.FP32)
    y, compiled = outcome(
        _barrier_program(ranks, host), ranks, tmp_path, x, (1, 64), skew="500us", slow={ranks - 1: "9x"}
    )
    assert_bits(y, np.roll(x, 1, axis=0))
    assert moved(compiled) == [(256, 0)] * ranks  # the reads of the test, none of the barrier
    assert [d.kernel for d in compiled.last_run.dispatches].count("barrier") == (ranks if host else 0)
