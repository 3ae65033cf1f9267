"""All-reduce, mesh: every rank reads every peer's whole slice and adds them up itself.

One barrier, then (P-1) reads of N bytes each: least latency, most traffic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.collective import Collective, Job, Slice, Slices, all_pairs, transfer_ps, uniform
from a2a3sim.kernels.frame import Window, assemble
from a2a3sim.kernels.partition import rotated

__all__ = [
    "MESH",
    "MESH_ROTATED",
    "Order",
    "barrier_and_reads_ps",
    "mesh_orders",
    "peers_ascending",
    "peers_rotated",
]

Order: TypeAlias = Callable[[int, int, int], list[int]]  # (rank, ranks, core) -> its peers, as they are read


def peers_ascending(rank: int, ranks: int, core: int) -> list[int]:
    """Peers 0, 1, 2, …: everybody starts with rank 0."""
    return [p for p in range(ranks) if p != rank]


def peers_rotated(rank: int, ranks: int, core: int) -> list[int]:
    """Peers rank+1, rank+2, …, so that each rank is read by one other; further cores start further on."""
    return rotated([(rank + k) % ranks for k in range(1, ranks)], core)


def build(job: Job, order: Order = peers_ascending) -> pl.Program:
    """The program for a job."""
    ranks, parts = job.ranks, job.parts()

    def allreduce_mesh(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
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
            for peer in peers:
                pld.system.wait(signal, [core, peer], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("reduce"):
            for at, size, row in job.tiles(parts[core]):
                acc = pl.load(x, [0, at], [1, row], [1, size])
                for peer in peers:
                    acc = pl.add(acc, pld.tile.remote_load(data, peer, [0, at], [1, row], [1, size]))
                pl.store(acc, [0, at], y)

    return assemble("allreduce", job, allreduce_mesh, (1, job.count), ranks)


def reference(job: Job, inputs: Slices, order: Order = peers_ascending) -> list[Slice]:
    """Own slice first, then the peers in the order of each core."""
    results = []
    for rank in range(job.ranks):
        total = inputs[rank].copy()
        for core, (start, size) in enumerate(job.parts()):
            for peer in order(rank, job.ranks, core):
                total[:, start : start + size] += inputs[peer][:, start : start + size]
        results.append(total)
    return results


def barrier_and_reads_ps(reads: int, nbytes: int, rate: int, latency: int) -> int:
    """L + reads · (2L + n/B): a barrier, then remote loads one after the other on free paths."""
    return latency + reads * (2 * latency + transfer_ps(nbytes, rate))


def ideal_ps(job: Job, rate: int, latency: int, order: Order = peers_ascending) -> int | None:
    """L + (P-1)(2L + N/B); several cores that start with different peers are faster."""
    if order is peers_rotated and job.cores > 1:
        return None
    nbytes = uniform(job, [[part] for part in job.parts()])
    return None if nbytes is None else barrier_and_reads_ps(job.ranks - 1, nbytes, rate, latency)


def mesh_orders(
    collective: str,
    what: str,
    build: Callable[[Job, Order], pl.Program],
    reference: Callable[[Job, Slices, Order], list[Slice]],
) -> tuple[Collective, Collective]:
    """``mesh``, whose peers are read in ascending order, and ``mesh_rotated``: one barrier, then P-1 reads of N bytes.

    Args:
        what: that a rank reads, for people.
    """

    def form(name: str, title: str, order: Order) -> Collective:
        return Collective(
            collective=collective,
            name=name,
            title=title,
            build=lambda job: build(job, order),
            reference=lambda job, inputs: reference(job, inputs, order),
            transfers=all_pairs,
            formula="(P-1)·N",
            rounds=lambda job: 1,
            barriers=lambda job: 1,
            latencies=lambda job: 3,
            ideal_ps=lambda job, rate, latency: ideal_ps(job, rate, latency, order),
        )

    return (
        form("mesh", f"every rank reads {what}, in ascending order", peers_ascending),
        form("mesh_rotated", "mesh with peers read from the right neighbour on", peers_rotated),
    )


MESH, MESH_ROTATED = mesh_orders("allreduce", "every peer's slice", build, reference)
