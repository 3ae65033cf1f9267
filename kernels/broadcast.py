"""Broadcast: the root's N bytes to all ranks.

Flat pulls: the root says that its data is there, and everybody reads it at once. Binomial pushes: whoever has
the data stores it to the next rank that lacks it, the one with the largest subtree first, so no rank sends
twice at a time and the root's port is not shared by all.
"""

from __future__ import annotations

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.kernels.collective import (
    Collective,
    Job,
    Slice,
    Slices,
    Transfer,
    all_pairs,
    transfer_ps,
    uniform,
)
from a2a3sim.kernels.frame import Window, assemble

__all__ = ["BINOMIAL", "FLAT"]


def build_flat(job: Job) -> pl.Program:
    """The program for a job."""
    ranks, parts, root = job.ranks, job.parts(), job.root

    def broadcast_flat(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        start, size = parts[core]
        if size == 0:
            return
        with pl.phase("stage"):
            if me == root:
                pld.tensor.put(data, me, x, [0, start], [0, start], [1, size], **job.staging)
                for peer in range(ranks):
                    if peer != root:
                        pld.system.notify(signal, peer, [core, 0], 1, op=pld.NotifyOp.AtomicAdd)
            else:
                pld.system.wait(signal, [core, 0], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("broadcast"):
            for at, size, row in job.tiles(parts[core]):
                if me == root:
                    tile = pl.load(x, [0, at], [1, row], [1, size])
                else:
                    tile = pld.tile.remote_load(data, root, [0, at], [1, row], [1, size])
                pl.store(tile, [0, at], y)

    return assemble("broadcast", job, broadcast_flat, (1, job.count), 1)


def children(place: int, ranks: int) -> list[int]:
    """Whom a place of the tree sends to, in this order: place + 2^j, for all 2^j below its lowest set bit."""
    bits = ranks.bit_length() if place == 0 else (place & -place).bit_length() - 1
    return [place + (1 << j) for j in reversed(range(bits)) if place + (1 << j) < ranks]


def arrivals(ranks: int, hop: int, turn: int) -> list[int]:
    """When each place has the data: its sender's turns one after the other, and ``hop`` behind its own."""
    have = [0] * ranks
    for place in range(ranks):  # parents come before their children
        for k, child in enumerate(children(place, ranks), 1):
            have[child] = have[place] + k * turn + hop
    return have


def build_binomial(job: Job) -> pl.Program:
    """The program for a job."""
    ranks, parts, root = job.ranks, job.parts(), job.root

    def broadcast_binomial(x: pl.Tensor, y: pl.Tensor, data: Window, signal: Window) -> None:
        me = pld.rank(pld.get_comm_ctx(data))
        core = pl.get_block_idx()
        start, size = parts[core]
        if size == 0:
            return
        place = (me + ranks - root) % ranks
        source = x if place == 0 else data
        if place:
            with pl.phase("receive"):
                pld.system.wait(signal, [core, 0], 1, cmp=pld.WaitCmp.Ge)
        with pl.phase("send"):
            for child in children(place, ranks):
                peer = (child + root) % ranks
                pld.tensor.put(data, peer, source, [0, start], [0, start], [1, size], **job.staging)
                pld.system.notify(signal, peer, [core, 0], 1, op=pld.NotifyOp.AtomicAdd)
        with pl.phase("copy out"):
            for at, size, row in job.tiles(parts[core]):
                pl.store(pl.load(source, [0, at], [1, row], [1, size]), [0, at], y)

    return assemble("broadcast", job, broadcast_binomial, (1, job.count), 1)


def reference(job: Job, inputs: Slices) -> list[Slice]:
    """The root's data."""
    return [inputs[job.root]] * job.ranks


def ideal_flat_ps(job: Job, rate: int, latency: int) -> int | None:
    """3L + N/B: all read at once, each over a link of its own."""
    nbytes = uniform(job, [[part] for part in job.parts()])
    return None if nbytes is None else 3 * latency + transfer_ps(nbytes, rate)


def ideal_binomial_ps(job: Job, rate: int, latency: int) -> int | None:
    """log2 P · (3L + N/B) for a power of two: a turn is 2L + N/B, its signal takes another L."""
    nbytes = uniform(job, [[part] for part in job.parts()])
    if nbytes is None:
        return None
    return max(arrivals(job.ranks, latency, 2 * latency + transfer_ps(nbytes, rate)))


def binomial_transfers(job: Job) -> list[Transfer]:
    """One from each parent to each child."""
    return [
        Transfer((place + job.root) % job.ranks, (child + job.root) % job.ranks, job.nbytes, True)
        for place in range(job.ranks)
        for child in children(place, job.ranks)
    ]


FLAT = Collective(
    collective="broadcast",
    name="flat",
    title="every rank reads the root's data",
    build=build_flat,
    reference=reference,
    transfers=lambda job: [t for t in all_pairs(job) if t.peer == job.root],
    formula="N",
    rounds=lambda job: 1,
    barriers=lambda job: 1,
    latencies=lambda job: 3,
    ideal_ps=ideal_flat_ps,
)
BINOMIAL = Collective(
    collective="broadcast",
    name="binomial",
    title="whoever has the data stores it to the next rank, in a binomial tree",
    build=build_binomial,
    reference=reference,
    transfers=binomial_transfers,
    formula="⌈log2 P⌉·N (root)",
    rounds=lambda job: job.ranks.bit_length() - 1,
    barriers=lambda job: 1,
    latencies=lambda job: 2 * (job.ranks.bit_length() - 1),
    ideal_ps=ideal_binomial_ps,
)
