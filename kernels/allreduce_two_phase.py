"""All-reduce, two-phase: reduce-scatter, then all-gather, each by reading the peers' chunks.

Rank r owns chunk r: it reads chunk r of every peer and adds them up, and after a second barrier everybody
reads every owner's result. 2(P-1)/P·N bytes per rank instead of (P-1)·N, for one more barrier.
"""

from __future__ import annotations

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allreduce_mesh import ideal_read_ps, peers_ascending, peers_rotated
from a2a3sim.kernels.collective import Collective, Job, Transfer
from a2a3sim.kernels.partition import split, tiles

__all__ = ["TWO_PHASE", "TWO_PHASE_ROTATED", "reduced"]


def _chunks(job: Job):
    """Chunk of each rank, and each core's piece of it."""
    itemsize = job.dtype.itemsize
    owned = split(job.count, job.ranks, itemsize)
    return owned, [split(c.size, job.cores, itemsize, c.start) for c in owned]


def build(job: Job, order=peers_ascending):
    """The program for a job."""
    ranks, count, dtype, cores = job.ranks, job.count, job.dtype, job.cores
    _, pieces = _chunks(job)
    x_t = pl.Tensor[[1, count], dtype]
    y_t = pl.Out[pl.Tensor[[1, count], dtype]]
    window_t = pl.InOut[pld.DistributedTensor[[1, count], dtype]]
    signal_t = pl.InOut[pld.DistributedTensor[[2 * cores, ranks], pl.INT32]]

    @pl.program
    class AllReduceTwoPhase:
        @pl.function(type=pl.FunctionType.InCore)
        def reduce_step(self, x: x_t, y: y_t, data: window_t, result: window_t, signal: signal_t):
            me = pld.rank(pld.get_comm_ctx(data))
            core = pl.get_block_idx()
            peers = order(me, ranks)
            mine = tiles(pieces[me][core], job.tile)

            def barrier(row: int):
                for peer in peers:
                    pld.system.notify(signal, peer, [row, me], 1, op=pld.NotifyOp.AtomicAdd)
                for peer in peers:
                    pld.system.wait(signal, [row, peer], 1, cmp=pld.WaitCmp.Ge)

            with pl.phase("stage"):
                for peer in peers:
                    for at, size in tiles(pieces[peer][core], job.tile):
                        pl.store(pl.load(x, [0, at], [1, size]), [0, at], data)
                barrier(2 * core)
            with pl.phase("reduce-scatter"):
                for at, size in mine:
                    acc = pl.load(x, [0, at], [1, size])
                    for peer in peers:
                        acc = pl.add(acc, pld.tile.remote_load(data, peer, [0, at], [1, size]))
                    pl.store(acc, [0, at], result)
                    pl.store(acc, [0, at], y)
                barrier(2 * core + 1)
            with pl.phase("all-gather"):
                for peer in peers:
                    for at, size in tiles(pieces[peer][core], job.tile):
                        pl.store(pld.tile.remote_load(result, peer, [0, at], [1, size]), [0, at], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: x_t, y: y_t, data: window_t, result: window_t, signal: signal_t):
            with pl.spmd(cores):
                self.reduce_step(x, y, data, result, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def allreduce_two_phase(
            self, x: pl.Tensor[[ranks, 1, count], dtype], y: pl.Out[pl.Tensor[[ranks, 1, count], dtype]]
        ):
            data_buf = pld.alloc_window_buffer([1, count], dtype=dtype)
            result_buf = pld.alloc_window_buffer([1, count], dtype=dtype)
            signal_buf = pld.alloc_window_buffer([2 * cores, ranks], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, count], dtype=dtype)
                result = pld.window(result_buf, [1, count], dtype=dtype)
                signal = pld.window(signal_buf, [2 * cores, ranks], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, result, signal, device=r)

    return AllReduceTwoPhase


def reduced(job: Job, inputs, order=peers_ascending):
    """Chunk r as its owner adds it up: own first, then the peers in the kernel's order."""
    owned, _ = _chunks(job)
    chunks = []
    for rank, (start, size) in enumerate(owned):
        acc = inputs[rank][..., start : start + size]
        for peer in order(rank, job.ranks):
            acc = acc + inputs[peer][..., start : start + size]
        chunks.append(acc)
    return chunks


def reference(job: Job, inputs, order=peers_ascending):
    """Every rank holds the owners' sums."""
    import numpy as np

    whole = np.concatenate(reduced(job, inputs, order), axis=-1)
    return [whole] * job.ranks


def transfers(job: Job) -> list[Transfer]:
    """Reduce-scatter: own chunk from every peer; all-gather: every peer's chunk."""
    owned, _ = _chunks(job)
    itemsize = job.dtype.itemsize
    return [
        Transfer(rank, peer, (owned[rank].size + owned[peer].size) * itemsize)
        for rank in range(job.ranks)
        for peer in peers_ascending(rank, job.ranks)
    ]


def ideal_ps(job: Job, rate: int, latency: int) -> int | None:
    """2(L + (P-1)(2L + N/(P·B))), for chunks of equal size."""
    owned, _ = _chunks(job)
    if len({c.size for c in owned}) != 1:
        return None
    read = ideal_read_ps(owned[0].size * job.dtype.itemsize, rate, latency)
    return 2 * (latency + (job.ranks - 1) * read)


def _collective(name: str, title: str, order) -> Collective:
    return Collective(
        collective="allreduce",
        name=name,
        title=title,
        build=lambda job: build(job, order),
        shapes=lambda job: ((1, job.count), (1, job.count)),
        reference=lambda job, inputs: reference(job, inputs, order),
        transfers=transfers,
        formula="2(P-1)/P·N",
        rounds=lambda job: 2,
        barriers=lambda job: 2,
        latencies=lambda job: 6,
        ideal_ps=ideal_ps,
    )


TWO_PHASE = _collective("two_phase", "reduce-scatter then all-gather, peers in ascending order", peers_ascending)
TWO_PHASE_ROTATED = _collective("two_phase_rotated", "two-phase with peers from the right neighbour on", peers_rotated)
