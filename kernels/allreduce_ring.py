"""All-reduce, ring: chunks travel round, first added up, then handed on. Pull from the predecessor.

In 2(P-1) steps every rank takes one chunk of N/P bytes from its predecessor: least bytes and only neighbours,
for 2(P-1) signals in a row. The bidirectional ring sends half of the data the other way round: every other
core does, or, if their number is odd, each core both, which gains nothing with one move in flight per core.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.collective import Collective, Job, Slice, Slices, Transfer, transfer_ps, uniform
from a2a3sim.kernels.frame import Tiles, Window, assemble, published
from a2a3sim.kernels.partition import Part, in_turn

__all__ = ["RING", "RING_BIDIRECTIONAL"]


class Stream(NamedTuple):
    """What travels one way round: after step t rank r holds chunk (r + t·back) mod P."""

    back: int  # the predecessor is rank + back, mod P
    chunks: list[Part]


def streams(job: Job, both: bool) -> list[list[Stream]]:
    """The streams of each core: one, or, in both directions with an odd number of cores, two."""
    ways = [job.ranks - 1, 1] if both else [job.ranks - 1]
    each = 2 if both and job.cores % 2 else 1
    cut = Job(job.ranks, job.count, job.dtype, job.cores * each).stripes()
    found = [Stream(ways[k % len(ways)], chunks) for k, chunks in enumerate(cut)]
    return [found[k : k + each] for k in range(0, len(found), each)]


def build(job: Job, both: bool = False) -> pl.Program:
    """The program for a job."""
    ranks, last, of_core = job.ranks, 2 * job.ranks - 2, streams(job, both)

    def allreduce_ring(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()

        def moving(step: int) -> Iterator[tuple[int, int, int, Part]]:
            """(first cell, predecessor, successor, chunk) of each stream that has something to move."""
            for k, (back, chunks) in enumerate(of_core[core]):
                part = chunks[(me + step * back) % ranks]
                if part.size:
                    yield k * last, (me + back) % ranks, (me + ranks - back) % ranks, part

        def arriving(step: int) -> Tiles:
            found = ([(p, piece) for piece in job.tiles(part)] for _, p, _, part in moving(step))
            for predecessor, (at, size, row) in in_turn(found):
                own = pl.load(x, [0, at], [1, row], [1, size]) if step < ranks else None
                tile = pld.tile.remote_load(data, predecessor, [0, at], [1, row], [1, size])
                yield [0, at], tile if own is None else pl.add(tile, own)

        def notify(step: int) -> None:
            for cell, _, successor, _ in moving(step):
                pld.system.notify(signal, successor, [core, cell + step], 1, op=pld.NotifyOp.AtomicAdd)

        def take(step: int) -> None:
            for cell, _, _, _ in moving(step):
                pld.system.wait(signal, [core, cell + step - 1], 1, cmp=pld.WaitCmp.Ge)
            tiles = arriving(step)
            if step < last:
                # A result replaces a chunk after a journey through all ranks, so nobody still reads that.
                tiles = published(tiles, data, lambda: notify(step))
            for where, tile in tiles:
                if step >= ranks - 1:
                    pl.store(tile, where, y)

        with pl.phase("stage"):
            for _, _, _, (start, size) in moving(0):
                pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
            notify(0)
        with pl.phase("reduce-scatter"):
            for step in range(1, ranks):
                take(step)
        with pl.phase("all-gather"):
            for step in range(ranks, last + 1):
                take(step)

    return assemble("allreduce", job, allreduce_ring, (1, job.count), 2 * last)


def reference(job: Job, inputs: Slices, both: bool = False) -> list[Slice]:
    """Chunk c starts at rank c and takes in one rank after the other."""
    total = inputs[0].copy()
    for back, chunks in chain.from_iterable(streams(job, both)):
        for c, (start, size) in enumerate(chunks):
            acc = inputs[c][:, start : start + size]
            for step in range(1, job.ranks):
                acc = acc + inputs[(c - step * back) % job.ranks][:, start : start + size]
            total[:, start : start + size] = acc
    return [total] * job.ranks


def transfers(job: Job, both: bool = False) -> list[Transfer]:
    """One chunk of the predecessor's in each step."""
    ranks = job.ranks
    return [
        Transfer(rank, (rank + back) % ranks, chunks[(rank + step * back) % ranks].size * job.itemsize)
        for rank in range(ranks)
        for back, chunks in chain.from_iterable(streams(job, both))
        for step in range(1, 2 * ranks - 1)
    ]


def barriers(job: Job, both: bool = False) -> int:
    """One wait in each step that has something to move."""
    ranks, steps = range(job.ranks), range(1, 2 * job.ranks - 1)
    return max(
        sum(any(chunks[(rank + step * back) % job.ranks].size for back, chunks in mine) for step in steps)
        for rank in ranks
        for mine in streams(job, both)
    )


def ideal_ps(job: Job, rate: int, latency: int, both: bool = False) -> int | None:
    """2(P-1)(3L + N/(P·B)), half the bytes a step if both ways; a core with both streams takes turns."""
    of_core, steps = streams(job, both), 2 * job.ranks - 2
    ways = [
        uniform(job, [[c for s in mine if s.back == back for c in s.chunks] for mine in of_core])
        for back in sorted({s.back for s in of_core[0] + of_core[-1]})
    ]
    nbytes = ways[0]
    if nbytes is None or len(set(ways)) != 1 or (both and job.ranks == 2):
        return None
    turns = len(of_core[0])
    return steps * ((1 + 2 * turns) * latency + turns * transfer_ps(nbytes, rate))


def _collective(name: str, title: str, both: bool) -> Collective:
    return Collective(
        collective="allreduce",
        name=name,
        title=title,
        build=lambda job: build(job, both),
        reference=lambda job, inputs: reference(job, inputs, both),
        transfers=lambda job: transfers(job, both),
        formula="2(P-1)/P·N",
        rounds=lambda job: 2 * job.ranks - 2,
        barriers=lambda job: barriers(job, both),
        latencies=lambda job: 3 * (2 * job.ranks - 2),
        ideal_ps=lambda job, rate, latency: ideal_ps(job, rate, latency, both),
    )


RING = _collective("ring", "chunks travel round, each rank reads its left neighbour", False)
RING_BIDIRECTIONAL = _collective("ring_bidirectional", "ring with half of the data going either way", True)
