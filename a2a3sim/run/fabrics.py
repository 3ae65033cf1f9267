"""Fabrics kept between runs: making the paths of a large machine can cost as much as simulating on it.

A fabric is lent to one run at a time and taken back only when no flow was left on it, so runs cannot see each
other.
"""

from __future__ import annotations

from collections import OrderedDict

from a2a3sim.models.fabric import Fabric
from a2a3sim.models.jitter import Jitter

__all__ = ["give", "take"]

_KEPT = 4  # machines
_PATHS = 100_000  # of one machine; larger ones are made anew

_idle: OrderedDict[object, Fabric] = OrderedDict()  # by topology


def take(platform, topology, jitter: Jitter | None = None) -> Fabric:
    """A fabric as new; one with latencies of its own is not kept."""
    if jitter is not None:
        return Fabric(topology, platform, jitter)
    fabric = _idle.pop(topology, None)
    if fabric is None:
        return Fabric(topology, platform)
    fabric.reset()
    return fabric


def give(fabric: Fabric) -> None:
    """Keep a fabric for a later run on the same machine."""
    if fabric.jitter is None and fabric.idle and fabric.paths <= _PATHS:
        _idle[fabric.topology] = fabric
        while len(_idle) > _KEPT:
            _idle.popitem(last=False)
