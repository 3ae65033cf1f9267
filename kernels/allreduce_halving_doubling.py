"""All-reduce by recursive halving, then recursive doubling. Pull: partners read each other.

In each halving step a rank gives half of what it works on to the partner at distance P/2, P/4, … 1 and takes
the other half's contribution; the doubling steps bring the finished chunks back the same way. 2(P-1)/P·N
bytes in 2·log2 P rounds.
"""

from __future__ import annotations

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.collective import Collective, Job, Transfer, power_of_two, transfer_ps
from a2a3sim.kernels.frame import assemble
from a2a3sim.kernels.partition import Part, behind, span

__all__ = ["HALVING_DOUBLING"]


def distances(ranks: int) -> list[int]:
    """P/2, P/4, … 1."""
    return [ranks >> k for k in range(1, ranks.bit_length())]


def block(chunks: list[Part], rank: int, distance: int) -> Part:
    """The chunks on which a rank still works after the halving step at a distance."""
    first = rank // distance * distance
    return span(chunks[first : first + distance])


def build(job: Job):
    """The program for a job."""
    stripes, steps = job.stripes(), distances(job.ranks)

    def allreduce_halving_doubling(x, y, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        chunks = stripes[core]

        def offer(part: Part, partner: int, cell: int):
            if part.size:
                pld.system.notify(signal, partner, [core, cell], 1, op=pld.NotifyOp.AtomicAdd)

        def need(part: Part, cell: int):
            if part.size:
                pld.system.wait(signal, [core, cell], 1, cmp=pld.WaitCmp.Ge)

        def sums(kept: Part, partner: int, own, final: bool):
            for at, size, row in job.tiles(kept):
                theirs = pld.tile.remote_load(data, partner, [0, at], [1, row], [1, size])
                acc = pl.add(pl.load(own, [0, at], [1, row], [1, size]), theirs)
                if final:
                    pl.store(acc, [0, at], y)
                yield at, acc

        def finished(part: Part, partner: int, final: bool):
            for at, size, row in job.tiles(part):
                tile = pld.tile.remote_load(data, partner, [0, at], [1, row], [1, size])
                pl.store(tile, [0, at], y)
                if not final:
                    yield at, tile

        # All in one window: what a rank gave away it overwrites with the result only after the partner, who
        # must have read it, has brought that result; what it keeps nobody else reads.
        with pl.phase("stage"):
            start, size = block(chunks, me ^ steps[0], steps[0])
            if size:
                pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
        with pl.phase("reduce-scatter"):
            for k, distance in enumerate(steps):
                partner = me ^ distance
                offer(block(chunks, partner, distance), partner, k)
                kept = block(chunks, me, distance)
                need(kept, k)
                for at, acc in behind(sums(kept, partner, data if k else x, distance == 1)):
                    pl.store(acc, [0, at], data)
        with pl.phase("all-gather"):
            for k, distance in enumerate(reversed(steps), len(steps)):
                partner = me ^ distance
                offer(block(chunks, me, distance), partner, k)
                theirs = block(chunks, partner, distance)
                need(theirs, k)
                for at, tile in behind(finished(theirs, partner, distance == steps[0])):
                    pl.store(tile, [0, at], data)

    return assemble("allreduce", job, allreduce_halving_doubling, (1, job.count), 2 * len(steps))


def reference(job: Job, inputs):
    """A tree over the bits of the rank, the highest first; addition commutes, so all ranks agree."""
    values = list(inputs)
    for distance in distances(job.ranks):
        values = [values[rank] + values[rank ^ distance] for rank in range(job.ranks)]
    total = np.empty_like(values[0])
    for chunks in job.stripes():
        for rank, (start, size) in enumerate(chunks):
            total[:, start : start + size] = values[rank][:, start : start + size]
    return [total] * job.ranks


def transfers(job: Job) -> list[Transfer]:
    """Halving: the partner's share of the block that is kept; doubling: the partner's block."""
    return [
        Transfer(rank, rank ^ distance, block(chunks, r, distance).size * job.dtype.itemsize)
        for chunks in job.stripes()
        for distance in distances(job.ranks)
        for rank in range(job.ranks)
        for r in (rank, rank ^ distance)
    ]


def barriers(job: Job) -> int:
    """A wait before each read; small N leaves some ranks without."""
    chunks = job.stripes()[0]
    return max(
        sum(block(chunks, r, d).size > 0 for d in distances(job.ranks) for r in (rank, rank ^ d))
        for rank in range(job.ranks)
    )


def ideal_ps(job: Job, rate: int, latency: int) -> int | None:
    """2·Σ (3L + N/(2·B)), … (3L + N/(P·B))."""
    largest = {block(chunks, 0, job.ranks // 2).size for chunks in job.stripes() if chunks[0].size}
    sizes = {c.size for chunks in job.stripes() if chunks[0].size for c in chunks}
    if len(sizes) != 1 or (job.tile is not None and max(largest) > job.tile):
        return None
    return 2 * sum(3 * latency + transfer_ps(job.nbytes * d // job.ranks, rate) for d in distances(job.ranks))


HALVING_DOUBLING = Collective(
    collective="allreduce",
    name="halving_doubling",
    title="recursive halving, then recursive doubling of chunks",
    build=build,
    reference=reference,
    transfers=transfers,
    formula="2(P-1)/P·N",
    rounds=lambda job: 2 * len(distances(job.ranks)),
    barriers=barriers,
    latencies=lambda job: 6 * len(distances(job.ranks)),
    ideal_ps=ideal_ps,
    restriction=power_of_two,
)
