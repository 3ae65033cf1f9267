"""All-gather: every rank's row of N bytes to all ranks. Both algorithms pull.

Mesh: one barrier, then everybody reads every peer's row. Ring: rows travel round in P-1
steps between neighbours. Either way (P-1)·N bytes per rank.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allreduce_mesh import Order, mesh_orders, peers_ascending
from a2a3sim.kernels.collective import Collective, Job, Slice, Slices, Transfer, transfer_ps, uniform
from a2a3sim.kernels.frame import Tiles, Window, assemble, published

__all__ = ["MESH", "MESH_ROTATED", "RING", "ring_of_rows"]


def build_mesh(job: Job, order: Order = peers_ascending) -> pl.Program:
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def allgather_mesh(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        peers = order(me, ranks, core)
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
            for at, size, row in job.tiles(parts[core]):
                for peer in peers:
                    pl.store(pld.tile.remote_load(data, peer, [0, at], [1, row], [1, size]), [peer, at], y)

    return assemble("allgather", job, allgather_mesh, (1, job.count), ranks)


def build_ring(job: Job) -> pl.Program:
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def allgather_ring(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        left, right = (me + ranks - 1) % ranks, (me + 1) % ranks
        start, size = parts[core]
        if size == 0:
            return

        def notify(step: int) -> None:
            pld.system.notify(signal, right, [core, step], 1, op=pld.NotifyOp.AtomicAdd)

        def arriving(step: int) -> Tiles:
            origin = (me + ranks - step) % ranks
            for at, size, row in job.tiles(parts[core]):
                yield [origin, at], pld.tile.remote_load(data, left, [origin, at], [1, row], [1, size])

        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [me, start], [0, start], [1, size], **job.staging)
            notify(0)
            for at, size, row in job.tiles(parts[core]):
                pl.store(pl.load(x, [0, at], [1, row], [1, size]), [me, at], y)
        with pl.phase("all-gather"):
            for step in range(1, ranks):
                pld.system.wait(signal, [core, step - 1], 1, cmp=pld.WaitCmp.Ge)
                rows = arriving(step)
                if step < ranks - 1:
                    rows = published(rows, data, partial(notify, step))
                for where, tile in rows:
                    pl.store(tile, where, y)

    return assemble("allgather", job, allgather_ring, (ranks, job.row), ranks - 1)


def reference(job: Job, inputs: Slices, order: Order = peers_ascending) -> list[Slice]:
    """The rows in the order of the ranks."""
    return [np.concatenate(inputs)] * job.ranks


def from_the_left(job: Job) -> list[Transfer]:
    """All P-1 rows from the left neighbour."""
    return [Transfer(rank, (rank - 1) % job.ranks, (job.ranks - 1) * job.nbytes) for rank in range(job.ranks)]


def ideal_ring_ps(job: Job, rate: int, latency: int) -> int | None:
    """(P-1)(3L + N/B)."""
    nbytes = uniform(job, [[part] for part in job.parts()])
    return None if nbytes is None else (job.ranks - 1) * (3 * latency + transfer_ps(nbytes, rate))


def ring_of_rows(
    collective: str,
    title: str,
    build: Callable[[Job], pl.Program],
    reference: Callable[[Job, Slices], list[Slice]],
) -> Collective:
    """A ring in which P-1 rows of N bytes come to every rank, each from its left neighbour."""
    return Collective(
        collective=collective,
        name="ring",
        title=title,
        build=build,
        reference=reference,
        transfers=from_the_left,
        formula="(P-1)·N",
        rounds=lambda job: job.ranks - 1,
        barriers=lambda job: job.ranks - 1,
        latencies=lambda job: 3 * (job.ranks - 1),
        ideal_ps=ideal_ring_ps,
    )


MESH, MESH_ROTATED = mesh_orders("allgather", "every peer's row", build_mesh, reference)
RING = ring_of_rows(
    "allgather", "rows travel round, each rank reads its left neighbour", build_ring, reference
)
