"""Fabrics kept between runs: making the paths of a large machine can cost as much as simulating on it."""

from __future__ import annotations

from collections import OrderedDict

from a2a3sim.models.fabric import Fabric
from a2a3sim.models.jitter import Jitter

__all__ = ["Fabrics"]

_KEPT = 4  # machines
_PATHS = 100_000  # of one machine; larger ones are made anew


class Fabrics:
    """The idle fabrics of a session or a compiled program, the last used ones.

    A fabric is lent to one run at a time and taken back only when no flow was left on it, so runs cannot see
    each other.
    """

    def __init__(self) -> None:
        self._idle: OrderedDict[object, Fabric] = OrderedDict()  # by topology

    def take(self, platform, topology, jitter: Jitter | None = None) -> Fabric:
        """A fabric as new; one with latencies of its own is not kept."""
        if jitter is not None:
            return Fabric(topology, platform, jitter)
        fabric = self._idle.pop(topology, None)
        if fabric is None:
            return Fabric(topology, platform)
        fabric.reset()
        return fabric

    def give(self, fabric: Fabric) -> None:
        """Keep a fabric for a later run on the same machine."""
        if fabric.jitter is None and fabric.idle and fabric.paths <= _PATHS:
            self._idle[fabric.topology] = fabric
            while len(self._idle) > _KEPT:
                self._idle.popitem(last=False)
