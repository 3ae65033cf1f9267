"""All-reduce, two-phase: reduce-scatter, then all-gather, each by reading the peers' chunks.

Rank r owns chunk r: it reads chunk r of every peer and adds them up, and after a second barrier everybody
reads every owner's result. 2(P-1)/P·N bytes per rank instead of (P-1)·N, for one more barrier.
"""

from __future__ import annotations

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allreduce_mesh import barrier_and_reads_ps, peers_ascending, peers_rotated
from a2a3sim.kernels.collective import Collective, Job, Transfer, uniform
from a2a3sim.kernels.frame import assemble
from a2a3sim.kernels.partition import behind, span

__all__ = ["TWO_PHASE", "TWO_PHASE_ROTATED", "exchanges", "reference"]


def build(job: Job, order=peers_ascending):
    """The program for a job."""
    ranks, stripes = job.ranks, job.stripes()

    def allreduce_two_phase(x, y, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        chunks = stripes[core]
        start, size = span(chunks)
        if size == 0:
            return
        peers = order(me, ranks, core)
        readers = peers if chunks[me].size else []  # a rank without a chunk reads nothing and is read by nobody
        owners = [p for p in peers if chunks[p].size]

        def sums():
            for at, size, row in job.tiles(chunks[me]):
                acc = pl.load(x, [0, at], [1, row], [1, size])
                for peer in peers:
                    acc = pl.add(acc, pld.tile.remote_load(data, peer, [0, at], [1, row], [1, size]))
                pl.store(acc, [0, at], y)
                yield at, acc

        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
            for owner in owners:
                pld.system.notify(signal, owner, [core, me], 1, op=pld.NotifyOp.AtomicAdd)
            for peer in readers:
                pld.system.wait(signal, [core, peer], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("reduce-scatter"):
            # The sum takes the place of the own chunk, which no peer reads before the second barrier.
            for at, acc in behind(sums()):
                pl.store(acc, [0, at], data)
            for peer in readers:
                pld.system.notify(signal, peer, [core, ranks + me], 1, op=pld.NotifyOp.AtomicAdd)
            for owner in owners:
                pld.system.wait(signal, [core, ranks + owner], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("all-gather"):
            for owner in owners:
                for at, size, row in job.tiles(chunks[owner]):
                    pl.store(pld.tile.remote_load(data, owner, [0, at], [1, row], [1, size]), [0, at], y)

    return assemble("allreduce", job, allreduce_two_phase, (1, job.count), 2 * ranks)


def reference(job: Job, inputs, order=peers_ascending):
    """Every rank holds the owners' sums: own chunk first, then the peers in the kernel's order."""
    total = np.empty_like(inputs[0])
    for core, chunks in enumerate(job.stripes()):
        for owner, (start, size) in enumerate(chunks):
            for k, rank in enumerate([owner, *order(owner, job.ranks, core)]):
                part = inputs[rank][:, start : start + size]
                total[:, start : start + size] = part if k == 0 else total[:, start : start + size] + part
    return [total] * job.ranks


def exchanges(job: Job, write: bool = False) -> list[Transfer]:
    """Each pair moves one's chunk in the reduce-scatter and the other's in the all-gather, seen from either side."""
    owned = [sum(chunk.size for chunk in column) * job.dtype.itemsize for column in zip(*job.stripes(), strict=True)]
    return [
        Transfer(rank, peer, owned[rank] + owned[peer], write)
        for rank in range(job.ranks)
        for peer in range(job.ranks)
        if peer != rank
    ]


def ideal_ps(job: Job, rate: int, latency: int) -> int | None:
    """2(L + (P-1)(2L + N/(P·B))), for chunks of equal size."""
    chunk = uniform(job, job.stripes())
    return None if chunk is None else 2 * barrier_and_reads_ps(job.ranks - 1, chunk, rate, latency)


def _barriers(job: Job) -> int:
    """An owner waits for all, then for the other owners; there are none if N fits into one chunk."""
    return min(2, sum(chunk.size > 0 for chunk in job.stripes()[0]))


def _collective(name: str, title: str, order) -> Collective:
    return Collective(
        collective="allreduce",
        name=name,
        title=title,
        build=lambda job: build(job, order),
        reference=lambda job, inputs: reference(job, inputs, order),
        transfers=exchanges,
        formula="2(P-1)/P·N",
        rounds=lambda job: 2,
        barriers=_barriers,
        latencies=lambda job: 6,
        ideal_ps=ideal_ps,
    )


TWO_PHASE = _collective("two_phase", "reduce-scatter then all-gather, peers in ascending order", peers_ascending)
TWO_PHASE_ROTATED = _collective("two_phase_rotated", "two-phase with peers from the right neighbour on", peers_rotated)
