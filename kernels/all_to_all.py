"""All-to-all, mesh: a block of N bytes from every rank to every rank. Pull.

One barrier, then every rank reads its block of every peer: (P-1)·N bytes per rank.
"""

from __future__ import annotations

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allreduce_mesh import Order, mesh_orders, peers_ascending
from a2a3sim.kernels.collective import Job, Slice, Slices
from a2a3sim.kernels.frame import Window, assemble

__all__ = ["MESH", "MESH_ROTATED"]


def build(job: Job, order: Order = peers_ascending) -> pl.Program:
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def all_to_all_mesh(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        peers = order(me, ranks, core)
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
            for at, size, row in job.tiles(parts[core]):
                for peer in peers:
                    pl.store(pld.tile.remote_load(data, peer, [me, at], [1, row], [1, size]), [peer, at], y)

    return assemble("all_to_all", job, all_to_all_mesh, (ranks, job.row), ranks)


def reference(job: Job, inputs: Slices, order: Order = peers_ascending) -> list[Slice]:
    """Row p of rank r is row r of rank p."""
    return [np.stack([inputs[peer][rank] for peer in range(job.ranks)]) for rank in range(job.ranks)]


MESH, MESH_ROTATED = mesh_orders("all_to_all", "its block of every peer", build, reference)
