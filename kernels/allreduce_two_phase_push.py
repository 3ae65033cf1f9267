"""All-reduce, two-phase by pushing: contributions are added in the owner's memory, results are stored to all.

Float sums depend on their order, so the ranks add to a chunk one after the other: its owner first, then the
ranks after it, each told by the one before. All chunks are served at once, as in a ring, but what a rank adds
goes straight to the owner and no vector unit adds. The order is fixed, hence so are the bits.
"""

from __future__ import annotations

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels import allreduce_two_phase
from a2a3sim.kernels.allreduce_mesh import peers_rotated
from a2a3sim.kernels.collective import Collective, Job, Slice, Slices, transfer_ps, uniform
from a2a3sim.kernels.frame import Window, assemble
from a2a3sim.kernels.partition import Part

__all__ = ["TWO_PHASE_PUSH"]


def build(job: Job) -> pl.Program:
    """The program for a job."""
    ranks, stripes = job.ranks, job.stripes()

    def allreduce_two_phase_push(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        chunks = stripes[core]
        # In each step every rank adds to another owner; further cores begin further on.
        order = [1 + (core + step) % (ranks - 1) for step in range(ranks - 1)]

        def tell(peer: int, cell: int) -> None:
            pld.system.notify(signal, peer, [core, cell], 1, op=pld.NotifyOp.AtomicAdd)

        def hear(cell: int) -> None:
            pld.system.wait(signal, [core, cell], 1, cmp=pld.WaitCmp.Ge)

        def push(peer: int, source: pl.Tensor, part: Part, atomic: pld.AtomicType) -> None:
            there = [0, part.start]
            pld.tensor.put(data, peer, source, there, there, [1, part.size], atomic=atomic, **job.staging)

        # Cell p: the chunk of rank p waits for this rank's part, or is complete if p is this rank.
        # Cell P + p: the result of rank p has arrived.
        with pl.phase("stage"):
            if chunks[me].size:
                push(me, x, chunks[me], pld.AtomicType.None_)
                tell((me + order[0]) % ranks, me)
        with pl.phase("reduce-scatter"):
            for distance, following in zip(order, [*order[1:], 0], strict=True):
                owner = (me + ranks - distance) % ranks
                if chunks[owner].size:
                    hear(owner)
                    push(owner, x, chunks[owner], pld.AtomicType.Add)
                    tell((owner + following) % ranks, owner)
        with pl.phase("all-gather"):
            if chunks[me].size:
                hear(me)
                for distance in order:
                    peer = (me + distance) % ranks
                    push(peer, data, chunks[me], pld.AtomicType.None_)
                    tell(peer, ranks + me)
        with pl.phase("copy out"):
            for distance in (0, *order):
                owner = (me + ranks - distance) % ranks
                if distance and chunks[owner].size:
                    hear(ranks + owner)
                for at, size, row in job.tiles(chunks[owner]):
                    pl.store(pl.load(data, [0, at], [1, row], [1, size]), [0, at], y)

    return assemble("allreduce", job, allreduce_two_phase_push, (1, job.count), 2 * ranks)


def reference(job: Job, inputs: Slices) -> list[Slice]:
    """The owner's part first, then those of the ranks after it."""
    return allreduce_two_phase.reference(job, inputs, peers_rotated)


def barriers(job: Job) -> int:
    """A wait before each push, one for the own chunk, one before each copy; none for empty chunks."""
    chunks = job.stripes()[0]
    filled = [chunk.size > 0 for chunk in chunks]
    return max(sum(filled) + sum(filled) - filled[rank] for rank in range(job.ranks))


def ideal_ps(job: Job, rate: int, latency: int) -> int | None:
    """(P-1)(3L + n/B) + L, the pushes in a row, then (P-1)(2L + n/B) + L, the results, with n = N/P."""
    chunk = uniform(job, job.stripes())
    if chunk is None or job.cores > 1:
        return None
    push = 2 * latency + transfer_ps(chunk, rate)
    return (job.ranks - 1) * (latency + push) + latency + (job.ranks - 1) * push + latency


TWO_PHASE_PUSH = Collective(
    collective="allreduce",
    name="two_phase_push",
    title="atomic adds to each owner's chunk in a fixed order, results stored to all",
    build=build,
    reference=reference,
    transfers=lambda job: allreduce_two_phase.exchanges(job, write=True),
    formula="2(P-1)/P·N",
    rounds=lambda job: job.ranks,
    barriers=barriers,
    latencies=lambda job: 2 * job.ranks + 1,
    ideal_ps=ideal_ps,
)
