"""All-reduce by recursive doubling: partners at distance 1, 2, 4, … exchange and add whole vectors. Pull.

log2 P rounds of N bytes: the fewest rounds, for more bytes than a ring once P > 2.
"""

from __future__ import annotations

from collections.abc import Iterator

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.collective import (
    Collective,
    Job,
    Slice,
    Slices,
    Transfer,
    power_of_two,
    transfer_ps,
    uniform,
)
from a2a3sim.kernels.frame import Window, assemble
from a2a3sim.kernels.partition import behind

__all__ = ["RECURSIVE_DOUBLING"]


def distances(ranks: int) -> list[int]:
    """1, 2, 4, … P/2."""
    return [1 << k for k in range(ranks.bit_length() - 1)]


def build(job: Job) -> pl.Program:
    """The program for a job."""
    parts, steps = job.parts(), distances(job.ranks)

    def allreduce_recursive_doubling(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        start, size = parts[core]
        if size == 0:
            return

        def sums(k: int, partner: int) -> Iterator[tuple[int, pl.Tile]]:
            for at, size, row in job.tiles(parts[core]):
                own = pl.load(data, [k, at], [1, row], [1, size])
                yield at, pl.add(own, pld.tile.remote_load(data, partner, [k, at], [1, row], [1, size]))

        with pl.phase("stage"):
            pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
        with pl.phase("exchange"):
            # Each step has a row of its own: a partner may still read the last one.
            for k, distance in enumerate(steps):
                partner = me ^ distance
                pld.system.notify(signal, partner, [core, k], 1, op=pld.NotifyOp.AtomicAdd)
                pld.system.wait(signal, [core, k], 1, cmp=pld.WaitCmp.Ge)
                for at, acc in behind(sums(k, partner)):
                    if distance == steps[-1]:
                        pl.store(acc, [0, at], y)
                    else:
                        pl.store(acc, [k + 1, at], data)

    return assemble("allreduce", job, allreduce_recursive_doubling, (len(steps), job.row), len(steps))


def reference(job: Job, inputs: Slices) -> list[Slice]:
    """A tree over the bits of the rank, the lowest first."""
    values = list(inputs)
    for distance in distances(job.ranks):
        values = [values[rank] + values[rank ^ distance] for rank in range(job.ranks)]
    return values


def ideal_ps(job: Job, rate: int, latency: int) -> int | None:
    """log2 P · (3L + N/B)."""
    nbytes = uniform(job, [[part] for part in job.parts()])
    return None if nbytes is None else len(distances(job.ranks)) * (3 * latency + transfer_ps(nbytes, rate))


RECURSIVE_DOUBLING = Collective(
    collective="allreduce",
    name="recursive_doubling",
    title="partners at distance 1, 2, 4, … exchange whole vectors",
    build=build,
    reference=reference,
    transfers=lambda job: [
        Transfer(rank, rank ^ distance, job.nbytes)
        for distance in distances(job.ranks)
        for rank in range(job.ranks)
    ],
    formula="log2(P)·N",
    rounds=lambda job: len(distances(job.ranks)),
    barriers=lambda job: len(distances(job.ranks)),
    latencies=lambda job: 3 * len(distances(job.ranks)),
    ideal_ps=ideal_ps,
    restriction=power_of_two,
)
