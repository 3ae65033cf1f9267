"""All-reduce, mesh: every rank reads every peer's whole slice and adds them up itself.

One barrier, then (P-1) reads of N bytes each: least latency, most traffic.
"""

from __future__ import annotations

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.collective import Collective, Job, Transfer
from a2a3sim.kernels.partition import split, tiles

__all__ = ["MESH", "MESH_ROTATED", "ideal_read_ps", "peers_ascending", "peers_rotated"]


def peers_ascending(rank: int, ranks: int) -> list[int]:
    """Peers 0, 1, 2, …: everybody starts with rank 0."""
    return [p for p in range(ranks) if p != rank]


def peers_rotated(rank: int, ranks: int) -> list[int]:
    """Peers rank+1, rank+2, …: in every step each rank is read by one other."""
    return [(rank + k) % ranks for k in range(1, ranks)]


def build(job: Job, order=peers_ascending):
    """The program for a job."""
    ranks, count, dtype, cores = job.ranks, job.count, job.dtype, job.cores
    parts = split(count, cores, dtype.itemsize)
    x_t = pl.Tensor[[1, count], dtype]
    y_t = pl.Out[pl.Tensor[[1, count], dtype]]
    data_t = pl.InOut[pld.DistributedTensor[[1, count], dtype]]
    signal_t = pl.InOut[pld.DistributedTensor[[cores, ranks], pl.INT32]]

    @pl.program
    class AllReduceMesh:
        @pl.function(type=pl.FunctionType.InCore)
        def reduce_step(self, x: x_t, y: y_t, data: data_t, signal: signal_t):
            me = pld.rank(pld.get_comm_ctx(data))
            core = pl.get_block_idx()
            mine = tiles(parts[core], job.tile)
            peers = order(me, ranks)
            with pl.phase("stage"):
                for at, size in mine:
                    pl.store(pl.load(x, [0, at], [1, size]), [0, at], data)
                for peer in peers:
                    pld.system.notify(signal, peer, [core, me], 1, op=pld.NotifyOp.AtomicAdd)
                for peer in peers:
                    pld.system.wait(signal, [core, peer], 1, cmp=pld.WaitCmp.Ge)
            with pl.phase("reduce"):
                for at, size in mine:
                    acc = pl.load(x, [0, at], [1, size])
                    for peer in peers:
                        acc = pl.add(acc, pld.tile.remote_load(data, peer, [0, at], [1, size]))
                    pl.store(acc, [0, at], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: x_t, y: y_t, data: data_t, signal: signal_t):
            with pl.spmd(cores):
                self.reduce_step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def allreduce_mesh(
            self, x: pl.Tensor[[ranks, 1, count], dtype], y: pl.Out[pl.Tensor[[ranks, 1, count], dtype]]
        ):
            data_buf = pld.alloc_window_buffer([1, count], dtype=dtype)
            signal_buf = pld.alloc_window_buffer([cores, ranks], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, count], dtype=dtype)
                signal = pld.window(signal_buf, [cores, ranks], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)

    return AllReduceMesh


def reference(job: Job, inputs, order=peers_ascending):
    """Own slice first, then the peers in the kernel's order."""
    results = []
    for rank in range(job.ranks):
        acc = inputs[rank]
        for peer in order(rank, job.ranks):
            acc = acc + inputs[peer]
        results.append(acc)
    return results


def ideal_read_ps(nbytes: int, rate: int, latency: int) -> int:
    """A remote load on a free path: round trip + bytes / rate."""
    return 2 * latency + -(-nbytes * 10**12 // rate)


def _collective(name: str, title: str, order) -> Collective:
    return Collective(
        collective="allreduce",
        name=name,
        title=title,
        build=lambda job: build(job, order),
        shapes=lambda job: ((1, job.count), (1, job.count)),
        reference=lambda job, inputs: reference(job, inputs, order),
        transfers=lambda job: [
            Transfer(rank, peer, job.nbytes) for rank in range(job.ranks) for peer in order(rank, job.ranks)
        ],
        formula="(P-1)·N",
        rounds=lambda job: 1,
        barriers=lambda job: 1,
        latencies=lambda job: 3,
        ideal_ps=lambda job, rate, latency: latency + (job.ranks - 1) * ideal_read_ps(job.nbytes, rate, latency),
    )


MESH = _collective("mesh", "every rank reads every peer's slice, peers in ascending order", peers_ascending)
MESH_ROTATED = _collective("mesh_rotated", "mesh with peers read from the right neighbour on", peers_rotated)
