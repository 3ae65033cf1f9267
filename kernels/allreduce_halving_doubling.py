"""All-reduce by recursive halving, then recursive doubling. Pull: partners read each other.

In each halving step a rank gives half of what it works on to the partner at distance P/2, P/4, … 1 and takes
the other half's contribution; the doubling steps bring the finished chunks back the same way. 2(P-1)/P·N
bytes in 2·log2 P rounds.
"""

from __future__ import annotations

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.collective import Collective, Job, Slice, Slices, Transfer, power_of_two, transfer_ps
from a2a3sim.kernels.frame import Tiles, Window, assemble, published
from a2a3sim.kernels.partition import Part, span

__all__ = ["HALVING_DOUBLING"]


def distances(ranks: int) -> list[int]:
    """P/2, P/4, … 1."""
    return [ranks >> k for k in range(1, ranks.bit_length())]


def block(chunks: list[Part], rank: int, distance: int) -> Part:
    """The chunks on which a rank still works after the halving step at a distance."""
    first = rank // distance * distance
    return span(chunks[first : first + distance])


def build(job: Job) -> pl.Program:
    """The program for a job."""
    stripes, halvings = job.stripes(), distances(job.ranks)
    steps, doubling = halvings + halvings[::-1], len(halvings)

    def allreduce_halving_doubling(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        chunks = stripes[core]

        def read_by(rank: int, step: int) -> Part:
            """Halving: the block it keeps; doubling: the block of its partner."""
            return block(chunks, rank if step < doubling else rank ^ steps[step], steps[step])

        def offer(step: int) -> None:
            partner = me ^ steps[step]
            if read_by(partner, step).size:
                pld.system.notify(signal, partner, [core, step], 1, op=pld.NotifyOp.AtomicAdd)

        def arriving(step: int) -> Tiles:
            partner = me ^ steps[step]
            for at, size, row in job.tiles(read_by(me, step)):
                own = pl.load(data if step else x, [0, at], [1, row], [1, size]) if step < doubling else None
                tile = pld.tile.remote_load(data, partner, [0, at], [1, row], [1, size])
                yield [0, at], tile if own is None else pl.add(own, tile)

        def take(step: int) -> None:
            if read_by(me, step).size:
                pld.system.wait(signal, [core, step], 1, cmp=pld.WaitCmp.Ge)
            tiles = arriving(step)
            if step + 1 < len(steps):
                # A block that was given away is overwritten only by the result that its partner brings, after
                # the partner has read it; what a rank keeps, nobody reads.
                tiles = published(tiles, data, lambda: offer(step + 1))
            for where, tile in tiles:
                if step >= doubling - 1:
                    pl.store(tile, where, y)

        with pl.phase("stage"):
            start, size = read_by(me ^ steps[0], 0)
            if size:
                pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
            offer(0)
        with pl.phase("reduce-scatter"):
            for step in range(doubling):
                take(step)
        with pl.phase("all-gather"):
            for step in range(doubling, len(steps)):
                take(step)

    return assemble("allreduce", job, allreduce_halving_doubling, (1, job.count), len(steps))


def reference(job: Job, inputs: Slices) -> list[Slice]:
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
        Transfer(rank, rank ^ distance, block(chunks, r, distance).size * job.itemsize)
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
