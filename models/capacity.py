"""Capacities and routes: what transfers share, and the paths they take through it.

A capacity is *hot* when the flows on it could together ask for more than it has; only hot ones couple
flows. How much they could ask for is bounded from above in integers, so the test never drifts:

* a flow alone never exceeds the tightest element of its path, and
* flows that reach a capacity through one narrower capacity (all reads of one HBM leave by one egress)
  never exceed that *funnel* together. A funnel comes earlier in the order (rate, name), which is one order
  for all routes: two capacities can never excuse each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from math import gcd
from typing import Any, NamedTuple, TypeAlias

from a2a3sim.errors import ConfigError

__all__ = ["ONE", "PS", "Capacity", "CapacityUse", "Route"]

PS = 10**12  # picoseconds in a second
ONE = 1 << 52  # weights are integers in units of 1/ONE: sums are exact in any order

Weighted: TypeAlias = "tuple[Capacity, int | Fraction]"  # and what a byte of goodput takes of it
Use: TypeAlias = "tuple[Capacity, int, int, Capacity | None, int]"  # see `_use`
Path: TypeAlias = "list[tuple[Capacity, int, int]]"  # see `_merged`


class Capacity:
    """Something of limited rate that flows share: an HBM, an egress, a link or an ingress.

    ``rate`` is in bytes/s. Statistics: ``bytes`` of payload carried by finished flows, ``busy_ps`` with at
    least one flow, ``peak_flows`` at once.
    """

    __slots__ = (
        "active",
        "bottleneck",
        "busy_ps",
        "busy_since",
        "bytes",
        "demand",
        "dirty",
        "excess",
        "feeds",
        "hot",
        "kind",
        "limit",
        "name",
        "peak_flows",
        "rate",
        "routes",
    )

    feeds: dict[Capacity, list[int]]  # funnel -> [demand through it, most it lets through]

    def __init__(self, name: str, rate: int, kind: str) -> None:
        if not isinstance(rate, int) or isinstance(rate, bool) or rate <= 0:
            raise ConfigError(f"rate of capacity {name} must be whole bytes/s above 0, got {rate!r}")
        self.name = name
        self.rate = rate
        self.kind = kind
        self.reset()

    def reset(self) -> None:
        """As new: for another run on the same machine."""
        self.bytes = 0
        self.busy_ps = 0
        self.peak_flows = 0
        self.busy_since = 0
        self.active = 0  # flows
        self.routes: dict[
            Route, Use
        ] = {}  # route with flows here -> its use of this capacity, in order of start
        self.demand = 0  # bytes/s if every flow ran as fast as its path alone allows
        self.limit = self.rate  # demand above it needs a closer look; -1 while watched
        self.excess = (
            0  # the part of `demand` that funnels hold back; kept only while watched, as are `feeds`
        )
        self.hot = False
        self.dirty = False  # in the list of the next settling
        self.bottleneck: Any = None  # its Bottleneck, once it has been hot

    def __repr__(self) -> str:
        return f"<capacity {self.name} {self.rate} B/s, {self.active} flows>"

    def use(self) -> CapacityUse:
        """The statistics so far."""
        return CapacityUse(self.name, self.rate, self.kind, self.bytes, self.busy_ps, self.peak_flows)

    def crowd(self, use: Use) -> bool:
        """Look closer after a start: is this capacity hot, or still treated as hot?"""
        if self.limit >= 0:
            self.limit = -1
            self.excess = 0
            self.feeds = {}
            for route, each in self.routes.items():
                self._feed(each, len(route.flows))
        else:
            self._feed(use, 1)
        return self.hot or self.demand - self.excess > self.rate

    def _feed(self, use: Use, flows: int) -> None:
        _, load, _, funnel, most = use
        if funnel is None:
            return
        feed = self.feeds.get(funnel)
        if feed is None:
            feed = self.feeds[funnel] = [0, most]
        before = feed[0] - feed[1]
        feed[0] += load * flows
        feed[1] = max(feed[1], most)  # they differ where the weights have another ratio
        after = feed[0] - feed[1]
        self.excess += (after if after > 0 else 0) - (before if before > 0 else 0)

    def uncrowd(self, use: Use) -> None:
        """Undo `crowd` after an end; stop watching once nobody is left."""
        funnel = use[3]
        if funnel is not None:
            feed = self.feeds[funnel]
            load = use[1]
            over = feed[0] - feed[1]
            feed[0] -= load
            if over > 0:
                self.excess -= over if over < load else load
        if not self.active and not self.hot:
            self.limit = self.rate


class CapacityUse(NamedTuple):
    """What a capacity carried in one run."""

    name: str
    rate: int
    kind: str
    bytes: int
    busy_ps: int
    peak_flows: int


class Route:
    """A path of capacities, worked out once and shared by every flow that takes it.

    ``uses`` are (capacity, weight): a flow of goodput x takes weight·x of that capacity (1/efficiency).
    ``bound`` is the flow's own limit in bytes/s (its pipe), None if it has none. ``latency_ps`` is carried
    for the caller. Alone, a flow moves at num/den bytes/s, limited by ``free_label``, and n bytes take
    ceil(n·10¹²·den / num) ps; a route that limits nothing is ``unlimited``.

    The flows of a route that are in flight together have the same rate, so the route stands for them
    wherever flows are shared out.
    """

    __slots__ = (
        "bottleneck",
        "bound",
        "den",
        "flows",
        "free_label",
        "fresh",
        "hot",
        "latency_ps",
        "num",
        "pace",
        "per",
        "placed",
        "rate",
        "times",
        "unlimited",
        "uses",
    )

    def __init__(self, uses: Iterable[Weighted], bound: int | None, latency_ps: int) -> None:
        if bound is not None and bound <= 0:
            raise ConfigError(f"bound of a route must be above 0 bytes/s, got {bound!r}")
        self.bound = bound
        self.latency_ps = latency_ps
        self.reset()
        # Integers only: fractions here would cost more than simulating the flow.
        num, den, label = bound, 1, "pipe"
        path = _merged(uses)
        for capacity, above, below in path:
            alone = capacity.rate * below
            if num is None or alone * den < num * above:
                num, den, label = alone, above, capacity.name
        self.free_label = label
        self.unlimited = num is None
        if num is None:
            num, times, self.rate, self.pace = 0, 0, 0.0, 0.0
        else:
            shared = gcd(num, den)
            num //= shared
            den //= shared
            times = PS * den
            self.rate = num / den
            self.pace = times / num
        shared = gcd(times, num) or 1
        self.num, self.den = num, den
        self.times, self.per = times // shared, num // shared or 1
        self.uses = tuple([_use(path, at, num, den) for at in range(len(path))])

    def reset(self) -> None:
        """As new: for another run on the same machine."""
        self.flows: list[Any] = []  # the Flows in flight, in order of start
        self.hot: Sequence[tuple[Any, int]] = ()  # (Bottleneck, weight) of its hot capacities
        self.placed = 0  # flows that take part in the sharing there
        self.bottleneck: Any = None  # of its flows, if it is coupled
        self.fresh = False  # coupled, and some of its flows may be elsewhere

    def __repr__(self) -> str:
        path = "+".join(use[0].name for use in self.uses)
        return f"<route {path or 'through nothing'}, {len(self.flows)} flows>"

    def free_ps(self, nbytes: int) -> int:
        """Time of ``nbytes`` on the idle path, without latency."""
        return -(-nbytes * self.times // self.per)


def _merged(uses: Iterable[Weighted]) -> Path:
    """(capacity, numerator and denominator of its weight); one that is met twice is used twice."""
    weights: dict[Capacity, int | Fraction] = {}
    for capacity, weight in uses:
        if weight <= 0:
            raise ConfigError(f"weight of {capacity.name} in a route must be above 0, got {weight!r}")
        weights[capacity] = weights[capacity] + weight if capacity in weights else weight
    return [(capacity, weight.numerator, weight.denominator) for capacity, weight in weights.items()]


def _use(path: Path, at: int, num: int, den: int) -> Use:
    """(capacity, load of a flow in bytes/s rounded up, weight in ONEs, funnel, what that lets through)."""
    capacity, above, below = path[at]
    load = -(-num * above // (den * below))
    weight = (2 * ONE * above + below) // (2 * below)
    return capacity, load, weight, *_funnel(path, at)


def _funnel(path: Path, at: int) -> tuple[Capacity | None, int]:
    """The nearest capacity of a path that is ahead of the one at ``at`` in order, and what it lets through.

    That is in raw bytes/s of the capacity at ``at``, rounded up.
    """
    capacity, above, below = path[at]
    rate, name = capacity.rate, capacity.name
    for near in _nearest_first(at, len(path)):
        other, over, under = path[near]
        if other.rate < rate or (other.rate == rate and other.name < name):
            return other, -(-other.rate * above * under // (below * over))
    return None, 0


@cache
def _nearest_first(at: int, length: int) -> tuple[int, ...]:
    return tuple(sorted((near for near in range(length) if near != at), key=lambda near: abs(near - at)))
