"""The least time a set of remote transfers can take on a machine, whatever the schedule."""

from __future__ import annotations

from collections.abc import Iterable

from a2a3sim.models.fabric import Fabric

__all__ = ["bound_ps"]


def bound_ps(transfers: Iterable, latencies: int, platform, topology, placement) -> int:
    """Shortest latency chain + the largest, over capacities, of the bytes it must carry ÷ its rate.

    Args:
        transfers: objects with ``rank`` (whose core issues), ``peer``, ``nbytes`` and ``write``.
        latencies: one-way latencies on the algorithm's shortest chain.
        placement: platform device of each rank.
    """
    fabric = Fabric(topology, platform)
    busy: dict = {}
    shortest = None
    for transfer in transfers:
        if transfer.nbytes == 0:
            continue
        here, there = placement[transfer.rank], placement[transfer.peer]
        latency = fabric.latency(here, there)
        shortest = latency if shortest is None else min(shortest, latency)
        path = fabric.store(here, there) if transfer.write else fabric.load(here, there)
        for capacity, weight in path.uses:
            busy[capacity] = busy.get(capacity, 0) + transfer.nbytes * weight
    longest = max((-(-load * 10**12 // capacity.rate) for capacity, load in busy.items()), default=0)
    return (shortest or 0) * latencies + int(longest)
