"""All-reduce, two-phase: reduce-scatter, then all-gather, each by reading the peers' chunks.

Rank r owns chunk r: it reads chunk r of every peer and adds them up, and after a second barrier everybody
reads every owner's result. 2(P-1)/P·N bytes per rank instead of (P-1)·N, for one more barrier.
"""

from __future__ import annotations

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allreduce_mesh import Order, barrier_and_reads_ps, peers_ascending, peers_rotated
from a2a3sim.kernels.collective import Collective, Job, Slice, Slices, Transfer, all_pairs, uniform
from a2a3sim.kernels.frame import Tiles, Window, assemble, published
from a2a3sim.kernels.partition import in_turn, span

__all__ = ["TWO_PHASE", "TWO_PHASE_ROTATED", "exchanges", "reference"]


def build(job: Job, order: Order = peers_ascending) -> pl.Program:
    """The program for a job."""
    ranks, stripes = job.ranks, job.stripes()

    def allreduce_two_phase(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        chunks = stripes[core]
        start, size = span(chunks)
        if size == 0:
            return
        peers = order(me, ranks, core)
        # With a small N some ranks own nothing: they sum up nothing, and nobody reads them.
        readers, owners = peers if chunks[me].size else [], [p for p in peers if chunks[p].size]

        def sums() -> Tiles:
            for at, size, row in job.tiles(chunks[me]):
                acc = pl.load(x, [0, at], [1, row], [1, size])
                for peer in peers:
                    acc = pl.add(acc, pld.tile.remote_load(data, peer, [0, at], [1, row], [1, size]))
                yield [0, at], acc

        def announce() -> None:
            for peer in readers:
                pld.system.notify(signal, peer, [core, ranks + me], 1, op=pld.NotifyOp.AtomicAdd)

        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
            for owner in owners:
                pld.system.notify(signal, owner, [core, me], 1, op=pld.NotifyOp.AtomicAdd)
            for peer in readers:
                pld.system.wait(signal, [core, peer], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("reduce-scatter"):
            # The sum takes the place of the own chunk, which no peer reads before the second barrier.
            for where, acc in published(sums(), data, announce):
                pl.store(acc, where, y)
            for owner in owners:
                pld.system.wait(signal, [core, ranks + owner], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("all-gather"):
            for owner, (at, size, row) in in_turn([(p, t) for t in job.tiles(chunks[p])] for p in owners):
                pl.store(pld.tile.remote_load(data, owner, [0, at], [1, row], [1, size]), [0, at], y)

    return assemble("allreduce", job, allreduce_two_phase, (1, job.count), 2 * ranks)


def reference(job: Job, inputs: Slices, order: Order = peers_ascending) -> list[Slice]:
    """Every rank holds the owners' sums: own chunk first, then the peers in the kernel's order."""
    total = np.empty_like(inputs[0])
    for core, chunks in enumerate(job.stripes()):
        for owner, (start, size) in enumerate(chunks):
            for k, rank in enumerate([owner, *order(owner, job.ranks, core)]):
                part = inputs[rank][:, start : start + size]
                total[:, start : start + size] = part if k == 0 else total[:, start : start + size] + part
    return [total] * job.ranks


def exchanges(job: Job, write: bool = False) -> list[Transfer]:
    """Between every two ranks one's chunk in the reduce-scatter, the other's in the all-gather."""
    owned = [sum(c.size for c in chunks) * job.itemsize for chunks in zip(*job.stripes(), strict=True)]
    return [t._replace(nbytes=owned[t.rank] + owned[t.peer], write=write) for t in all_pairs(job)]


def ideal_ps(job: Job, rate: int, latency: int, order: Order = peers_ascending) -> int | None:
    """2(L + (P-1)(2L + N/(P·B))), for chunks of equal size."""
    if order is peers_rotated and job.cores > 1:
        return None
    chunk = uniform(job, job.stripes())
    return None if chunk is None else 2 * barrier_and_reads_ps(job.ranks - 1, chunk, rate, latency)


def _barriers(job: Job) -> int:
    """An owner waits for all, then for the other owners, if there are any."""
    return min(2, sum(chunk.size > 0 for chunk in job.stripes()[0]))


def _collective(name: str, title: str, order: Order) -> Collective:
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
        ideal_ps=lambda job, rate, latency: ideal_ps(job, rate, latency, order),
    )


TWO_PHASE = _collective("two_phase", "reduce-scatter, all-gather, peers in ascending order", peers_ascending)
TWO_PHASE_ROTATED = _collective("two_phase_rotated", "two-phase, peers from the next on", peers_rotated)
