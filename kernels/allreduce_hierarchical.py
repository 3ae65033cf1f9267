"""All-reduce on two levels: inside groups (dies of a package, devices of a node) and between them. Pull.

Reduce-scatter inside each group, two-phase all-reduce of each chunk among the ranks that hold it, all-gather
inside each group. As many bytes as two-phase, 2(P-1)/P·N, but only 2(P-G)/(P·G)·N of them leave a group of G.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.allreduce_mesh import barrier_and_reads_ps
from a2a3sim.kernels.collective import Collective, Job, Slice, Slices, Transfer, uniform
from a2a3sim.kernels.frame import Tiles, Window, assemble, published
from a2a3sim.kernels.partition import Part, in_turn, rotated, span

__all__ = ["HIERARCHICAL"]


def insiders(rank: int, job: Job, core: int) -> list[int]:
    """The other ranks of the group, the next one first; further cores start further on."""
    first = rank // job.group * job.group
    return rotated([first + (rank + k) % job.group for k in range(1, job.group)], core)


def outsiders(rank: int, job: Job, core: int) -> list[int]:
    """The ranks that hold the same chunk in the other groups, the next group first."""
    return rotated([(rank + k) % job.ranks for k in range(job.group, job.ranks, job.group)], core)


def shares(job: Job) -> list[tuple[Part, list[Part], list[Part]]]:
    """Per core: its stripe, the chunk of each place in a group, the sub-chunk of each rank within that."""
    groups = job.ranks // job.group
    found = []
    for stripe in job.stripes():
        # Chunk i is sub-chunks i·groups … of the stripe; rank (group g, place i) owns sub-chunk g of chunk i.
        chunks = [span(stripe[i * groups : (i + 1) * groups]) for i in range(job.group)]
        owned = [stripe[rank % job.group * groups + rank // job.group] for rank in range(job.ranks)]
        found.append((span(stripe), chunks, owned))
    return found


def build(job: Job) -> pl.Program:
    """The program for a job."""
    ranks, group, of_core = job.ranks, job.group, shares(job)

    def allreduce_hierarchical(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        (start, size), chunks, owned = of_core[core]
        place = me % group
        inside, outside = insiders(me, job, core), outsiders(me, job, core)
        if size == 0:
            return

        def notify(row: int, peers: list[int]) -> None:
            for peer in peers:
                pld.system.notify(signal, peer, [core, row * ranks + me], 1, op=pld.NotifyOp.AtomicAdd)

        def wait(row: int, peers: list[int]) -> None:
            for peer in peers:
                pld.system.wait(signal, [core, row * ranks + peer], 1, cmp=pld.WaitCmp.Ge)

        def sums(part: Part, own: pl.Tensor, peers: list[int]) -> Tiles:
            for at, size, row in job.tiles(part):
                acc = pl.load(own, [0, at], [1, row], [1, size])
                for peer in peers:
                    acc = pl.add(acc, pld.tile.remote_load(data, peer, [0, at], [1, row], [1, size]))
                yield [0, at], acc

        def finished(peers: list[int], part_of: Callable[[int], Part]) -> Tiles:
            for peer, (at, size, row) in in_turn([(p, t) for t in job.tiles(part_of(p))] for p in peers):
                yield [0, at], pld.tile.remote_load(data, peer, [0, at], [1, row], [1, size])

        def output(tiles: Tiles) -> None:
            for where, tile in tiles:
                pl.store(tile, where, y)

        chunk, mine = chunks[place], owned[me]
        # Who has a share, and so takes part: with a small N not everybody.
        inside_owners = [p for p in inside if chunks[p % group].size]
        outside_owners = [p for p in outside if owned[p].size]
        inside_readers, outside_readers = inside if chunk.size else [], outside if mine.size else []

        # One window for all: a sum stands where nobody reads before the notify behind it.
        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
            notify(0, inside_owners)
            wait(0, inside_readers)
        with pl.phase("reduce-scatter inside"):
            for _ in published(sums(chunk, x, inside), data, lambda: notify(1, outside_owners)):
                pass
            wait(1, outside_readers)
        with pl.phase("reduce-scatter between"):
            output(published(sums(mine, data, outside), data, lambda: notify(2, outside_readers)))
            wait(2, outside_owners)
        with pl.phase("all-gather between"):
            output(published(finished(outside, lambda p: owned[p]), data, lambda: notify(3, inside_readers)))
            wait(3, inside_owners)
        with pl.phase("all-gather inside"):
            output(finished(inside, lambda p: chunks[p % group]))

    return assemble("allreduce", job, allreduce_hierarchical, (1, job.count), 4 * ranks)


def reference(job: Job, inputs: Slices) -> list[Slice]:
    """Each group adds up its chunks, own first, then the owners of a sub-chunk add up the groups' sums."""
    total = np.empty_like(inputs[0])
    for core, (_, _, owned) in enumerate(shares(job)):
        for owner, (start, size) in enumerate(owned):
            sums = []
            for rank in [owner, *outsiders(owner, job, core)]:
                acc = inputs[rank][:, start : start + size]
                for peer in insiders(rank, job, core):
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
            pairs = [(p, chunks[rank % job.group], chunks[p % job.group]) for p in insiders(rank, job, 0)]
            pairs += [(p, owned[rank], owned[p]) for p in outsiders(rank, job, 0)]
            moved += [Transfer(rank, peer, (a.size + b.size) * job.itemsize) for peer, a, b in pairs]
    return moved


def barriers(job: Job) -> int:
    """Four, less where a rank or its peers have no share of a small N, or where a level is trivial."""
    _, chunks, owned = shares(job)[0]
    most = 0
    for rank in range(job.ranks):
        inside, outside = insiders(rank, job, 0), outsiders(rank, job, 0)
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
    if own is None or chunk is None or job.cores > 1:
        return None
    total = 0
    for reads, nbytes in ((job.group - 1, chunk), (job.ranks // job.group - 1, own)):
        total += 2 * barrier_and_reads_ps(reads, nbytes, rate, latency) if reads else 0
    return total


def restriction(job: Job) -> str | None:
    """Groups are of equal size."""
    if 1 <= job.group <= job.ranks and job.ranks % job.group == 0:
        return None
    return f"ranks must be a multiple of the group size, got {job.ranks} ranks in groups of {job.group}"


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
