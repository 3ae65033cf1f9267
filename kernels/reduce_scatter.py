"""Reduce-scatter: rank r gets the sum of everybody's row r, N bytes. Both algorithms pull.

Mesh: one barrier, then every rank reads its row of every peer. Ring: partial sums travel
round in P-1 steps between neighbours. Either way (P-1)·N bytes per rank.
"""

from __future__ import annotations

from collections.abc import Iterator

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allgather import ring_of_rows
from a2a3sim.kernels.allreduce_mesh import Order, mesh_orders, peers_ascending
from a2a3sim.kernels.collective import Job, Slice, Slices
from a2a3sim.kernels.frame import Window, assemble
from a2a3sim.kernels.partition import behind

__all__ = ["MESH", "MESH_ROTATED", "RING"]


def build_mesh(job: Job, order: Order = peers_ascending) -> pl.Program:
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def reduce_scatter_mesh(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
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
            for peer in peers:
                pld.system.wait(signal, [core, peer], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("reduce-scatter"):
            for at, size, row in job.tiles(parts[core]):
                acc = pl.load(x, [me, at], [1, row], [1, size])
                for peer in peers:
                    acc = pl.add(acc, pld.tile.remote_load(data, peer, [me, at], [1, row], [1, size]))
                pl.store(acc, [0, at], y)

    return assemble("reduce_scatter", job, reduce_scatter_mesh, (ranks, job.row), ranks)


def build_ring(job: Job) -> pl.Program:
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def reduce_scatter_ring(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        left, right = (me + ranks - 1) % ranks, (me + 1) % ranks
        start, size = parts[core]
        if size == 0:
            return

        def sums(step: int) -> Iterator[tuple[int, int, pl.Tile]]:
            owner = (me + ranks - 1 - step) % ranks
            for at, size, row in job.tiles(parts[core]):
                own = pl.load(x, [owner, at], [1, row], [1, size])
                partial = pld.tile.remote_load(data, left, [owner, at], [1, row], [1, size])
                yield owner, at, pl.add(own, partial)

        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [left, start], [left, start], [1, size], **job.staging)
            pld.system.notify(signal, right, [core, 0], 1, op=pld.NotifyOp.AtomicAdd)
        with pl.phase("reduce-scatter"):
            for step in range(1, ranks):
                pld.system.wait(signal, [core, step - 1], 1, cmp=pld.WaitCmp.Ge)
                for owner, at, acc in behind(sums(step)):
                    if step < ranks - 1:
                        pl.store(acc, [owner, at], data)
                    else:
                        pl.store(acc, [0, at], y)
                if step < ranks - 1:
                    pld.system.notify(signal, right, [core, step], 1, op=pld.NotifyOp.AtomicAdd)

    return assemble("reduce_scatter", job, reduce_scatter_ring, (ranks, job.row), ranks - 1)


def reference_mesh(job: Job, inputs: Slices, order: Order = peers_ascending) -> list[Slice]:
    """Own part first, then the peers' in the order of each core."""
    results = []
    for rank in range(job.ranks):
        total = inputs[rank][rank : rank + 1].copy()
        for core, (start, size) in enumerate(job.parts()):
            for peer in order(rank, job.ranks, core):
                total[:, start : start + size] += inputs[peer][rank : rank + 1, start : start + size]
        results.append(total)
    return results


def reference_ring(job: Job, inputs: Slices) -> list[Slice]:
    """Row r starts at rank r+1 and ends at rank r."""
    results = []
    for rank in range(job.ranks):
        acc = inputs[(rank + 1) % job.ranks][rank : rank + 1]
        for step in range(2, job.ranks + 1):
            acc = acc + inputs[(rank + step) % job.ranks][rank : rank + 1]
        results.append(acc)
    return results


MESH, MESH_ROTATED = mesh_orders("reduce_scatter", "its row of every peer", build_mesh, reference_mesh)
RING = ring_of_rows(
    "reduce_scatter",
    "partial sums travel round, each rank reads its left neighbour",
    build_ring,
    reference_ring,
)
