"""Links that are slower than the platform says, each by a factor of its own: a way to other schedules."""

from __future__ import annotations

from fractions import Fraction
from zlib import crc32

import numpy as np

from a2a3sim.models.topology import Link

__all__ = ["Jitter"]


class Jitter:
    """Latencies of links, stretched.

    Args:
        seed: with the link's name it fixes the link's factor, the same on every machine.
        most: factors are uniform in [1, most).
    """

    def __init__(self, seed: int, most: Fraction) -> None:
        self.seed = seed
        self.most = most

    def latency(self, link: Link) -> int:
        """The latency of a link in ps, rounded down."""
        key = np.array([self.seed, crc32(link.name.encode())], np.uint64)
        raw = int(np.random.Philox(key=key).random_raw())
        more = (self.most - 1) * link.latency_ps
        return link.latency_ps + (raw * more.numerator // more.denominator >> 64)
