"""Reduce-scatter: rank r gets the sum of everybody's row r, N bytes. Both algorithms pull.

Mesh: one barrier, then every rank reads its row of every peer, in ascending order. Ring: partial sums travel
round in P-1 steps between neighbours. Either way (P-1)·N bytes per rank.
"""

from __future__ import annotations

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allgather import ideal_mesh_ps, ideal_ring_ps
from a2a3sim.kernels.allreduce_mesh import peers_ascending
from a2a3sim.kernels.collective import Collective, Job, Transfer
from a2a3sim.kernels.frame import assemble
from a2a3sim.kernels.partition import behind, padded

__all__ = ["MESH", "RING"]


def build_mesh(job: Job):
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def reduce_scatter_mesh(x, y, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        peers = peers_ascending(me, ranks, core)
        start, size = parts[core]
        if size == 0:
            return
        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [0, start], [0, start], [ranks, size], **job.staging)
            for peer in peers:
                pld.system.notify(signal, peer, [core, me], 1, op=pld.NotifyOp.AtomicAdd)
            for peer in peers:
                pld.system.wait(signal, [core, peer], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("reduce-scatter"):
            for at, size, row in job.tiles(parts[core]):
                acc = pl.load(x, [me, at], [1, row], [1, size])
                for peer in peers:
                    acc = pl.add(acc, pld.tile.remote_load(data, peer, [me, at], [1, row], [1, size]))
                pl.store(acc, [0, at], y)

    return assemble("reduce_scatter", job, reduce_scatter_mesh, (ranks, padded(job.count, job.dtype.itemsize)), ranks)


def build_ring(job: Job):
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def reduce_scatter_ring(x, y, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        left, right = (me + ranks - 1) % ranks, (me + 1) % ranks
        start, size = parts[core]
        if size == 0:
            return

        def sums(step: int):
            owner = (me + ranks - 1 - step) % ranks
            for at, size, row in job.tiles(parts[core]):
                partial = pld.tile.remote_load(data, left, [owner, at], [1, row], [1, size])
                acc = pl.add(partial, pl.load(x, [owner, at], [1, row], [1, size]))
                if step < ranks - 1:
                    yield [owner, at], acc
                else:
                    pl.store(acc, [0, at], y)

        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [left, start], [left, start], [1, size], **job.staging)
            pld.system.notify(signal, right, [core, 0], 1, op=pld.NotifyOp.AtomicAdd)
        with pl.phase("reduce-scatter"):
            for step in range(1, ranks):
                pld.system.wait(signal, [core, step - 1], 1, cmp=pld.WaitCmp.Ge)
                for where, acc in behind(sums(step)):
                    pl.store(acc, where, data)
                if step < ranks - 1:
                    pld.system.notify(signal, right, [core, step], 1, op=pld.NotifyOp.AtomicAdd)

    data_shape = (ranks, padded(job.count, job.dtype.itemsize))
    return assemble("reduce_scatter", job, reduce_scatter_ring, data_shape, ranks - 1)


def reference_mesh(job: Job, inputs):
    """Own part first, then the peers' in ascending order."""
    results = []
    for rank in range(job.ranks):
        acc = inputs[rank][rank : rank + 1]
        for peer in peers_ascending(rank, job.ranks, 0):
            acc = acc + inputs[peer][rank : rank + 1]
        results.append(acc)
    return results


def reference_ring(job: Job, inputs):
    """Row r starts at rank r+1 and ends at rank r."""
    results = []
    for rank in range(job.ranks):
        acc = inputs[(rank + 1) % job.ranks][rank : rank + 1]
        for step in range(2, job.ranks + 1):
            acc = acc + inputs[(rank + step) % job.ranks][rank : rank + 1]
        results.append(acc)
    return results


MESH = Collective(
    collective="reduce_scatter",
    name="mesh",
    title="every rank reads its row of every peer, peers in ascending order",
    build=build_mesh,
    reference=reference_mesh,
    transfers=lambda job: [
        Transfer(rank, peer, job.nbytes) for rank in range(job.ranks) for peer in range(job.ranks) if peer != rank
    ],
    formula="(P-1)·N",
    rounds=lambda job: 1,
    barriers=lambda job: 1,
    latencies=lambda job: 3,
    ideal_ps=ideal_mesh_ps,
)
RING = Collective(
    collective="reduce_scatter",
    name="ring",
    title="partial sums travel round, each rank reads its left neighbour",
    build=build_ring,
    reference=reference_ring,
    transfers=lambda job: [
        Transfer(rank, (rank - 1) % job.ranks, (job.ranks - 1) * job.nbytes) for rank in range(job.ranks)
    ],
    formula="(P-1)·N",
    rounds=lambda job: job.ranks - 1,
    barriers=lambda job: job.ranks - 1,
    latencies=lambda job: 3 * (job.ranks - 1),
    ideal_ps=ideal_ring_ps,
)
