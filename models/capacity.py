"""Capacities and routes: what transfers share, and the paths they take through it.

A capacity is *hot* when the flows on it could together ask for more than it has; only hot ones couple
flows. How much they could ask for is bounded from above in integers, so the test never drifts:

* a flow alone never exceeds the tightest element of its path, and
* flows that reach a capacity through one narrower capacity (all reads of one HBM leave by one egress)
  never exceed that *funnel* together. The funnel has to come earlier in the order (rate, name), which is
  one order for all routes: two capacities can never excuse each other.
"""

from __future__ import annotations

from math import gcd

from a2a3sim.errors import ConfigError

__all__ = ["NEVER", "ONE", "PS", "Capacity", "Route"]

PS = 10**12  # picoseconds in a second
ONE = 1 << 52  # weights are integers in units of 1/ONE: sums are exact in any order
NEVER = 1 << 62  # later than any event


class Capacity:
    """Something of limited rate that flows share: an HBM, an egress, a link or an ingress.

    ``rate`` is in bytes/s. Statistics: ``bytes`` of payload carried by finished flows, ``busy_ps`` with at
    least one flow, ``peak_flows`` at once. Everything below them is the state of the sharing.
    """

    __slots__ = (
        "active",
        "arrivals",
        "avail",
        "busy_ps",
        "busy_since",
        "bytes",
        "classes",
        "coupled",
        "demand",
        "dirty",
        "excess",
        "fastest",
        "feeds",
        "filling",
        "found",
        "grouped",
        "heap",
        "hot",
        "kind",
        "level",
        "limit",
        "name",
        "open",
        "pace",
        "peak_flows",
        "rate",
        "routes",
        "scaled",
        "served",
        "since",
        "touched",
        "variable",
        "wake",
        "weight",
    )

    def __init__(self, name: str, rate: int, kind: str) -> None:
        if not isinstance(rate, int) or isinstance(rate, bool) or rate <= 0:
            raise ConfigError(f"rate of capacity {name} must be a positive whole number of bytes/s, got {rate!r}")
        self.name = name
        self.rate = rate
        self.kind = kind
        self.bytes = 0
        self.busy_ps = 0
        self.peak_flows = 0
        self.scaled = float(rate * ONE)  # the rate on the scale of weights
        # Who is here and what they could ask for.
        self.active = 0  # flows
        self.routes = {}  # route with flows here -> its use of this capacity, in order of start
        self.busy_since = 0
        self.demand = 0  # bytes/s if every flow ran as fast as its path alone allows
        self.excess = 0  # the part of `demand` that funnels hold back; kept only while watched
        self.limit = rate  # demand above it needs a closer look; -1 while watched
        self.feeds = {}  # funnel -> [demand through it, most it lets through]
        self.hot = False
        self.dirty = False  # in the list of the next settling
        # The group of flows whose bottleneck this is.
        self.level = 0.0  # bytes/s of goodput each
        self.pace = 1.0  # ps a byte, 1/level
        self.served = 0.0  # bytes a member has got since the group formed, as of `since`
        self.since = 0
        self.grouped = 0  # members
        self.heap = []  # (served at which it ends, number, flow)
        self.wake = NEVER
        # The routes for which this is the only hot capacity, by free rate; and the others.
        self.classes = []  # RateClass, slowest first
        self.weight = 0  # of all classes
        self.arrivals = []  # flows that came to a class since the last solution
        self.coupled = {}  # route -> its use of this capacity
        # Work of one solution, see filling.py.
        self.open = self.touched = False
        self.avail = self.fastest = 0.0
        self.filling = 0
        self.variable = ()
        self.found = None

    def __repr__(self) -> str:
        return f"<capacity {self.name} {self.rate} B/s, {self.active} flows>"

    def crowd(self, use) -> bool:
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

    def _feed(self, use, flows: int) -> None:
        _, load, _, funnel, most = use
        if funnel is None:
            return
        load *= flows
        feed = self.feeds.get(funnel)
        if feed is None:
            feed = self.feeds[funnel] = [0, most]
        before = feed[0] - feed[1]
        feed[0] += load
        if most > feed[1]:
            feed[1] = most
        after = feed[0] - feed[1]
        self.excess += (after if after > 0 else 0) - (before if before > 0 else 0)

    def uncrowd(self, use) -> None:
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


class Route:
    """A path of capacities, worked out once and shared by every flow that takes it.

    ``uses`` are (capacity, weight): a flow of goodput x takes weight·x of that capacity (1/efficiency).
    ``bound`` is the flow's own limit in bytes/s (its pipe), None if it has none. ``latency_ps`` is carried
    for the caller. Alone, a flow moves at num/den bytes/s, limited by ``free_label``, and n bytes take
    ceil(n·10¹²·den / num) ps; a route that limits nothing is ``unlimited``.
    """

    __slots__ = (
        "bound",
        "den",
        "flows",
        "free_label",
        "fresh",
        "group",
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

    def __init__(self, uses, bound: int | None, latency_ps: int) -> None:
        # Integers only: a Fraction here would cost more than simulating the flow.
        path = []  # (capacity, numerator and denominator of its weight)
        num, den, label = bound, 1, "pipe"
        if bound is not None and bound <= 0:
            raise ConfigError(f"bound of a route must be above 0 bytes/s, got {bound!r}")
        for capacity, weight in _merged(uses):
            if weight <= 0:
                raise ConfigError(f"weight of {capacity.name} in a route must be above 0, got {weight!r}")
            above, below = weight.numerator, weight.denominator
            path.append((capacity, above, below))
            alone = capacity.rate * below
            if num is None or alone * den < num * above:
                num, den, label = alone, above, capacity.name
        self.bound = bound
        self.latency_ps = latency_ps
        self.free_label = label
        # The flows in flight here: they all have the same rate.
        self.flows = {}  # flow -> None, in order of start
        self.hot = ()  # uses of hot capacities
        self.placed = 0  # flows that take part in the sharing there
        self.group = None  # of a coupled route: the capacity that is the bottleneck of its flows
        self.fresh = False  # of a coupled route: some of its flows may have another group
        self.unlimited = num is None
        if num is None:
            self.num, self.den, self.times, self.per, self.rate, self.pace, self.uses = 0, 1, 0, 1, 0.0, 0.0, ()
            return
        shared = gcd(num, den)
        num //= shared
        den //= shared
        self.num, self.den = num, den
        shared = gcd(PS * den, num)
        self.times, self.per = PS * den // shared, num // shared
        self.rate = num / den
        self.pace = self.times / self.per
        self.uses = tuple(
            [
                (capacity, -(-num * above // (den * below)), (above * ONE * 2 + below) // (2 * below), *_funnel(path, at))
                for at, (capacity, above, below) in enumerate(path)
            ]
        )

    def free_ps(self, nbytes: int) -> int:
        """Time of ``nbytes`` on the idle path, without latency."""
        return -(-nbytes * self.times // self.per)


def _merged(uses):
    """A capacity met twice is used twice."""
    uses = list(uses)
    found = {}
    for capacity, weight in uses:
        found[capacity] = found.get(capacity, 0) + weight
    return found.items() if len(found) < len(uses) else uses


def _funnel(path, at: int) -> tuple[Capacity | None, int]:
    """The nearest capacity of a path that is ahead of the one at ``at`` in order, and what it lets through.

    That is in raw bytes/s of the capacity at ``at``, rounded up.
    """
    capacity, above, below = path[at]
    rate, name = capacity.rate, capacity.name
    last = len(path)
    for distance in range(1, last):
        for near in (at - distance, at + distance):
            if 0 <= near < last:
                other, over, under = path[near]
                if other.rate < rate or (other.rate == rate and other.name < name):
                    return other, -(-other.rate * above * under // (below * over))
    return None, 0
