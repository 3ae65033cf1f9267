"""All-gather: every rank's row of N bytes to all ranks. Both algorithms pull.

Mesh: one barrier, then everybody reads every peer's row, in ascending order. Ring: rows travel round in P-1
steps between neighbours. Either way (P-1)·N bytes per rank.
"""

from __future__ import annotations

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allreduce_mesh import barrier_and_reads_ps, peers_ascending
from a2a3sim.kernels.collective import Collective, Job, Transfer, transfer_ps, uniform
from a2a3sim.kernels.frame import assemble
from a2a3sim.kernels.partition import behind, padded

__all__ = ["MESH", "RING"]


def build_mesh(job: Job):
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def allgather_mesh(x, y, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        peers = peers_ascending(me, ranks, core)
        start, size = parts[core]
        if size == 0:
            return
        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
            for peer in peers:
                pld.system.notify(signal, peer, [core, me], 1, op=pld.NotifyOp.AtomicAdd)
            for at, size, row in job.tiles(parts[core]):
                pl.store(pl.load(x, [0, at], [1, row], [1, size]), [me, at], y)
            for peer in peers:
                pld.system.wait(signal, [core, peer], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("all-gather"):
            for peer in peers:
                for at, size, row in job.tiles(parts[core]):
                    pl.store(pld.tile.remote_load(data, peer, [0, at], [1, row], [1, size]), [peer, at], y)

    return assemble("allgather", job, allgather_mesh, (1, job.count), ranks)


def build_ring(job: Job):
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def allgather_ring(x, y, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        left, right = (me + ranks - 1) % ranks, (me + 1) % ranks
        start, size = parts[core]
        if size == 0:
            return

        def arriving(step: int):
            origin = (me + ranks - step) % ranks
            for at, size, row in job.tiles(parts[core]):
                tile = pld.tile.remote_load(data, left, [origin, at], [1, row], [1, size])
                pl.store(tile, [origin, at], y)
                if step < ranks - 1:
                    yield [origin, at], tile

        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [me, start], [0, start], [1, size], **job.staging)
            pld.system.notify(signal, right, [core, 0], 1, op=pld.NotifyOp.AtomicAdd)
            for at, size, row in job.tiles(parts[core]):
                pl.store(pl.load(x, [0, at], [1, row], [1, size]), [me, at], y)
        with pl.phase("all-gather"):
            for step in range(1, ranks):
                pld.system.wait(signal, [core, step - 1], 1, cmp=pld.WaitCmp.Ge)
                for where, tile in behind(arriving(step)):
                    pl.store(tile, where, data)
                if step < ranks - 1:
                    pld.system.notify(signal, right, [core, step], 1, op=pld.NotifyOp.AtomicAdd)

    return assemble("allgather", job, allgather_ring, (ranks, padded(job.count, job.dtype.itemsize)), ranks - 1)


def reference(job: Job, inputs):
    """The rows in the order of the ranks."""
    return [np.concatenate(inputs)] * job.ranks


def ideal_mesh_ps(job: Job, rate: int, latency: int) -> int | None:
    """L + (P-1)(2L + N/B)."""
    nbytes = uniform(job, [[part] for part in job.parts()])
    return None if nbytes is None else barrier_and_reads_ps(job.ranks - 1, nbytes, rate, latency)


def ideal_ring_ps(job: Job, rate: int, latency: int) -> int | None:
    """(P-1)(3L + N/B)."""
    nbytes = uniform(job, [[part] for part in job.parts()])
    return None if nbytes is None else (job.ranks - 1) * (3 * latency + transfer_ps(nbytes, rate))


MESH = Collective(
    collective="allgather",
    name="mesh",
    title="every rank reads every peer's row, peers in ascending order",
    build=build_mesh,
    reference=reference,
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
    collective="allgather",
    name="ring",
    title="rows travel round, each rank reads its left neighbour",
    build=build_ring,
    reference=reference,
    transfers=lambda job: [
        Transfer(rank, (rank - 1) % job.ranks, (job.ranks - 1) * job.nbytes) for rank in range(job.ranks)
    ],
    formula="(P-1)·N",
    rounds=lambda job: job.ranks - 1,
    barriers=lambda job: job.ranks - 1,
    latencies=lambda job: 3 * (job.ranks - 1),
    ideal_ps=ideal_ring_ps,
)
