"""All-reduce, ring: chunks travel round, first added up, then handed on. Pull: each rank reads its predecessor.

In 2(P-1) steps every rank takes one chunk of N/P bytes from its predecessor: least bytes and only neighbours,
for 2(P-1) signals in a row. The bidirectional ring sends half of the data the other way round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.collective import Collective, Job, Transfer, transfer_ps, uniform
from a2a3sim.kernels.frame import assemble
from a2a3sim.kernels.partition import Part, behind

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


def build(job: Job, both: bool = False):
    """The program for a job."""
    ranks, last, of_core = job.ranks, 2 * job.ranks - 2, streams(job, both)

    def allreduce_ring(x, y, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()

        def moving(step: int):
            """(first cell, predecessor, successor, chunk) of each stream that has something to move."""
            for k, (back, chunks) in enumerate(of_core[core]):
                part = chunks[(me + step * back) % ranks]
                if part.size:
                    yield k * last, (me + back) % ranks, (me + ranks - back) % ranks, part

        def arriving(step: int):
            pieces = [
                (n, predecessor, piece)
                for _, predecessor, _, part in moving(step)
                for n, piece in enumerate(job.tiles(part))
            ]
            for _, predecessor, (at, size, row) in sorted(pieces, key=lambda p: p[0]):
                tile = pld.tile.remote_load(data, predecessor, [0, at], [1, row], [1, size])
                if step < ranks:
                    tile = pl.add(tile, pl.load(x, [0, at], [1, row], [1, size]))
                if step >= ranks - 1:
                    pl.store(tile, [0, at], y)
                if step < last:
                    yield at, tile

        def pass_on(step: int):
            if step < last:
                for cell, _, successor, _ in moving(step):
                    pld.system.notify(signal, successor, [core, cell + step], 1, op=pld.NotifyOp.AtomicAdd)

        def take(step: int):
            for cell, _, _, _ in moving(step):
                pld.system.wait(signal, [core, cell + step - 1], 1, cmp=pld.WaitCmp.Ge)
            # A sum replaces a chunk only after its journey through all other ranks, so nobody still reads that.
            for at, tile in behind(arriving(step)):
                pl.store(tile, [0, at], data)
            pass_on(step)

        with pl.phase("stage"):
            for _, _, _, (start, size) in moving(0):
                pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
            pass_on(0)
        with pl.phase("reduce-scatter"):
            for step in range(1, ranks):
                take(step)
        with pl.phase("all-gather"):
            for step in range(ranks, last + 1):
                take(step)

    return assemble("allreduce", job, allreduce_ring, (1, job.count), 2 * last)


def reference(job: Job, inputs, both: bool = False):
    """Chunk c starts at rank c and takes in one rank after the other."""
    total = inputs[0].copy()
    for stream in sum(streams(job, both), []):
        for c, (start, size) in enumerate(stream.chunks):
            acc = inputs[c][:, start : start + size]
            for step in range(1, job.ranks):
                acc = acc + inputs[(c + step * (job.ranks - stream.back)) % job.ranks][:, start : start + size]
            total[:, start : start + size] = acc
    return [total] * job.ranks


def transfers(job: Job, both: bool = False) -> list[Transfer]:
    """One chunk of the predecessor's in each step."""
    return [
        Transfer(
            rank, (rank + back) % job.ranks, chunks[(rank + step * back) % job.ranks].size * job.dtype.itemsize
        )
        for rank in range(job.ranks)
        for back, chunks in sum(streams(job, both), [])
        for step in range(1, 2 * job.ranks - 1)
    ]


def barriers(job: Job, both: bool = False) -> int:
    """One wait in each step that has something to move."""
    return max(
        sum(any(s.chunks[(rank + step * s.back) % job.ranks].size for s in mine) for step in range(1, 2 * job.ranks - 1))
        for rank in range(job.ranks)
        for mine in streams(job, both)
    )


def ideal_ps(job: Job, rate: int, latency: int, both: bool = False) -> int | None:
    """2(P-1)(3L + N/(P·B)); both ways half as many bytes a step, but with one move at a time a core takes turns."""
    of_core, steps = streams(job, both), 2 * job.ranks - 2
    ways = [
        uniform(job, [[c for s in mine if s.back == back for c in s.chunks] for mine in of_core])
        for back in sorted({s.back for s in of_core[0] + of_core[-1]})
    ]
    if None in ways or len(set(ways)) != 1 or (both and job.ranks == 2):
        return None
    turns = len(of_core[0])
    return steps * ((1 + 2 * turns) * latency + turns * transfer_ps(ways[0], rate))


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
