"""All-reduce on two levels: inside groups (the dies of a package, the devices of a node) and between them. Pull.

Reduce-scatter inside each group, two-phase all-reduce of each chunk among the ranks that hold it, all-gather
inside each group. As many bytes as two-phase, 2(P-1)/P·N, but only 2(P-G)/(P·G)·N of them leave a group of G.
"""

from __future__ import annotations

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allreduce_mesh import barrier_and_reads_ps
from a2a3sim.kernels.collective import Collective, Job, Transfer, uniform
from a2a3sim.kernels.frame import assemble
from a2a3sim.kernels.partition import behind, span

__all__ = ["HIERARCHICAL"]


def insiders(rank: int, group: int) -> list[int]:
    """The other ranks of the group, the next one first."""
    first = rank // group * group
    return [first + (rank + k) % group for k in range(1, group)]


def outsiders(rank: int, group: int, ranks: int) -> list[int]:
    """The ranks that hold the same chunk in the other groups, the next group first."""
    return [(rank + k) % ranks for k in range(group, ranks, group)]


def shares(job: Job):
    """Per core (whole stripe, chunk of each place in a group, sub-chunk of each rank within its place's chunk)."""
    groups = job.ranks // job.group
    found = []
    for stripe in job.stripes():
        # Chunk i is sub-chunks i·groups … of the stripe; rank (group g, place i) owns sub-chunk g of chunk i.
        chunks = [span(stripe[i * groups : (i + 1) * groups]) for i in range(job.group)]
        owned = [stripe[rank % job.group * groups + rank // job.group] for rank in range(job.ranks)]
        found.append((span(stripe), chunks, owned))
    return found


def build(job: Job):
    """The program for a job."""
    ranks, group, of_core = job.ranks, job.group, shares(job)

    def allreduce_hierarchical(x, y, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        (start, size), chunks, owned = of_core[core]
        place = me % group
        inside, outside = insiders(me, group), outsiders(me, group, ranks)
        if size == 0:
            return

        def barrier(row: int, to: list[int], until: list[int]):
            for peer in to:
                pld.system.notify(signal, peer, [core, row * ranks + me], 1, op=pld.NotifyOp.AtomicAdd)
            for peer in until:
                pld.system.wait(signal, [core, row * ranks + peer], 1, cmp=pld.WaitCmp.Ge)

        def sums(part, own, peers, final: bool):
            for at, size, row in job.tiles(part):
                acc = pl.load(own, [0, at], [1, row], [1, size])
                for peer in peers:
                    acc = pl.add(acc, pld.tile.remote_load(data, peer, [0, at], [1, row], [1, size]))
                if final:
                    pl.store(acc, [0, at], y)
                yield at, acc

        def finished(peers, part_of, publish: bool):
            for peer in peers:
                for at, size, row in job.tiles(part_of(peer)):
                    tile = pld.tile.remote_load(data, peer, [0, at], [1, row], [1, size])
                    pl.store(tile, [0, at], y)
                    if publish:
                        yield at, tile

        def keep(tiles):
            for at, tile in behind(tiles):
                pl.store(tile, [0, at], data)

        # One window for all: a sum stands where nobody reads before the next barrier that announces it.
        chunk, mine = chunks[place], owned[me]
        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
            barrier(0, [p for p in inside if chunks[p % group].size], inside if chunk.size else [])
        with pl.phase("reduce-scatter inside"):
            keep(sums(chunk, x, inside, False))
            barrier(1, [p for p in outside if owned[p].size], outside if mine.size else [])
        with pl.phase("reduce-scatter between"):
            keep(sums(mine, data, outside, True))
            barrier(2, outside if mine.size else [], [p for p in outside if owned[p].size])
        with pl.phase("all-gather between"):
            keep(finished(outside, lambda peer: owned[peer], True))
            barrier(3, inside if chunk.size else [], [p for p in inside if chunks[p % group].size])
        with pl.phase("all-gather inside"):
            keep(finished(inside, lambda peer: chunks[peer % group], False))

    return assemble("allreduce", job, allreduce_hierarchical, (1, job.count), 4 * ranks)


def reference(job: Job, inputs):
    """Each group adds up its chunks, own first, then the owners of a sub-chunk add up the groups' sums."""
    total = np.empty_like(inputs[0])
    for _, _, owned in shares(job):
        for owner, (start, size) in enumerate(owned):
            sums = []
            for rank in [owner, *outsiders(owner, job.group, job.ranks)]:
                acc = inputs[rank][:, start : start + size]
                for peer in insiders(rank, job.group):
                    acc = acc + inputs[peer][:, start : start + size]
                sums.append(acc)
            acc = sums[0]
            for other in sums[1:]:
                acc = acc + other
            total[:, start : start + size] = acc
    return [total] * job.ranks


def transfers(job: Job) -> list[Transfer]:
    """Inside a group a chunk each way, between groups a sub-chunk each way."""
    moved = []
    for _, chunks, owned in shares(job):
        for rank in range(job.ranks):
            pairs = [(p, chunks[rank % job.group], chunks[p % job.group]) for p in insiders(rank, job.group)]
            pairs += [(p, owned[rank], owned[p]) for p in outsiders(rank, job.group, job.ranks)]
            moved += [Transfer(rank, peer, (a.size + b.size) * job.dtype.itemsize) for peer, a, b in pairs]
    return moved


def barriers(job: Job) -> int:
    """Four, less where a rank or its peers have no share of a small N, or where a level is trivial."""
    _, chunks, owned = shares(job)[0]
    most = 0
    for rank in range(job.ranks):
        inside, outside = insiders(rank, job.group), outsiders(rank, job.group, job.ranks)
        most = max(
            most,
            (bool(inside) and chunks[rank % job.group].size > 0)
            + (bool(outside) and owned[rank].size > 0)
            + any(owned[p].size for p in outside)
            + any(chunks[p % job.group].size for p in inside),
        )
    return most


def _levels(job: Job) -> int:
    return (job.group > 1) + (job.ranks > job.group)


def ideal_ps(job: Job, rate: int, latency: int) -> int | None:
    """2(L + (G-1)(2L + N/(G·B))) + 2(L + (P/G-1)(2L + N/(P·B))), a level of one rank left out."""
    own = uniform(job, [owned for _, _, owned in shares(job)])
    chunk = uniform(job, [chunks for _, chunks, _ in shares(job)])
    if own is None or chunk is None:
        return None
    total = 0
    for reads, nbytes in ((job.group - 1, chunk), (job.ranks // job.group - 1, own)):
        total += 2 * barrier_and_reads_ps(reads, nbytes, rate, latency) if reads else 0
    return total


def restriction(job: Job) -> str | None:
    """Groups are of equal size."""
    if 1 <= job.group <= job.ranks and job.ranks % job.group == 0:
        return None
    return f"the number of ranks must be a multiple of the group size, got {job.ranks} ranks in groups of {job.group}"


HIERARCHICAL = Collective(
    collective="allreduce",
    name="hierarchical",
    title="reduce-scatter and all-gather inside groups, two-phase between them",
    build=build,
    reference=reference,
    transfers=transfers,
    formula="2(P-1)/P·N",
    rounds=lambda job: 2 * _levels(job),
    barriers=barriers,
    latencies=lambda job: 6 * _levels(job),
    ideal_ps=ideal_ps,
    restriction=restriction,
)
