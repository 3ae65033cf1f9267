"""All-to-all, mesh: a block of N bytes from every rank to every rank. Pull.

One barrier, then every rank reads its block of every peer, in ascending order: (P-1)·N bytes per rank.
"""

from __future__ import annotations

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allgather import ideal_mesh_ps
from a2a3sim.kernels.allreduce_mesh import peers_ascending
from a2a3sim.kernels.collective import Collective, Job, Transfer
from a2a3sim.kernels.frame import assemble
from a2a3sim.kernels.partition import padded

__all__ = ["MESH"]


def build(job: Job):
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def all_to_all_mesh(x, y, data, signal):
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
            for at, size, row in job.tiles(parts[core]):
                pl.store(pl.load(x, [me, at], [1, row], [1, size]), [me, at], y)
            for peer in peers:
                pld.system.wait(signal, [core, peer], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("all-to-all"):
            for peer in peers:
                for at, size, row in job.tiles(parts[core]):
                    pl.store(pld.tile.remote_load(data, peer, [me, at], [1, row], [1, size]), [peer, at], y)

    return assemble("all_to_all", job, all_to_all_mesh, (ranks, padded(job.count, job.dtype.itemsize)), ranks)


def reference(job: Job, inputs):
    """Row p of rank r is row r of rank p."""
    return [np.stack([inputs[peer][rank] for peer in range(job.ranks)]) for rank in range(job.ranks)]


MESH = Collective(
    collective="all_to_all",
    name="mesh",
    title="every rank reads its block of every peer, peers in ascending order",
    build=build,
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
