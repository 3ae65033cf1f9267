"""What a capacity that is hot, or was, keeps about its flows.

The flows whose bottleneck it is are its *group*: one level, hence one *virtual service*, the bytes that a
member has got since the group formed. A member is over when that reaches the value worked out when it
joined, its tag; a new level is one assignment for the whole group.

The pace (ps a byte) is kept beside the level: where it is whole, as for shares of 25 GB/s, ends come out
exactly.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from heapq import heappop
from math import ceil
from typing import Any

from a2a3sim.models.capacity import ONE, Capacity, Route

__all__ = ["NEVER", "OVER", "TOLERANCE_PS", "UNKNOWN", "Bottleneck", "Flow", "RateClass", "bytes_left"]

NEVER = 1 << 62  # later than any event
UNKNOWN = -1
TOLERANCE_PS = 1e-6  # an end this little after a whole ps is at it


class RateClass:
    """The flows of one free rate that meet others on one capacity only: one term in its solution."""

    __slots__ = ("pinned", "rate", "weight")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.weight = 0
        self.pinned = False  # they run at their free rate, not above the level


class Bottleneck:
    """The state of sharing at one capacity."""

    __slots__ = (
        "arrivals",
        "avail",
        "capacity",
        "classes",
        "coupled",
        "fastest",
        "filling",
        "found",
        "grouped",
        "heap",
        "level",
        "open",
        "pace",
        "scaled",
        "served",
        "since",
        "touched",
        "variable",
        "wake",
        "weight",
    )

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.scaled = float(capacity.rate * ONE)  # the rate on the scale of weights
        # The group.
        self.level = 0.0  # bytes/s of goodput each
        self.pace = 1.0  # ps a byte
        self.served = 0.0  # bytes a member has got since the group formed, as of `since`
        self.since = 0
        self.grouped = 0  # members
        self.heap: list[
            tuple[float, int, Flow]
        ] = []  # (tag, number, flow); a flow that has left since is passed over
        self.wake = NEVER  # the armed event
        # The routes for which this is the only hot capacity, by free rate; and the others.
        self.classes: list[RateClass] = []  # slowest first
        self.weight = 0  # of all classes
        self.arrivals: list[Flow] = []  # flows that came to a class since the last solution
        self.coupled: dict[Route, int] = {}  # weight of one flow
        # Work of one solution, see filling.py.
        self.open = self.touched = False
        self.avail = self.fastest = 0.0
        self.filling = 0
        self.variable: Sequence[Route] = ()
        self.found: tuple[float, float] | None = None

    def class_of(self, rate: float) -> RateClass:
        """The class of one free rate."""
        for each in self.classes:
            if each.rate == rate:
                return each
        found = RateClass(rate)
        insort(self.classes, found, key=lambda each: each.rate)
        return found

    def add(self, rate: float, weight: int) -> None:
        """Change the weight of a class."""
        self.class_of(rate).weight += weight
        self.weight += weight

    def advance(self, now: int) -> None:
        """Bring the virtual service up to now; to be done before the pace changes."""
        if self.since != now:
            self.served += (now - self.since) / self.pace
            self.since = now

    def due(self) -> int:
        """When the next member is over, at this pace."""
        heap = self.heap
        while heap:
            tag, _, flow = heap[0]
            if flow.bottleneck is self and flow.tag == tag:
                wait = ceil((tag - self.served) * self.pace - TOLERANCE_PS)
                return self.since + (wait if wait > 0 else 0)
            heappop(heap)
        return NEVER

    def pop(self, now: int) -> Flow | None:
        """Take the next member that is over out of the group; None if there is none."""
        heap = self.heap
        while heap:
            tag, _, flow = heap[0]
            if flow.bottleneck is self and flow.tag == tag:
                if (tag - self.served) * self.pace - TOLERANCE_PS > now - self.since:
                    return None
                heappop(heap)
                self.grouped -= 1
                flow.bottleneck = None
                return flow
            heappop(heap)
        return None


class Flow:
    """One transfer in flight.

    ``start`` and ``finish`` in ps; ``cuts`` lists (time, name of the bottleneck from then on), the name being
    that of a capacity or ``pipe``; ``owner`` belongs to the caller.
    """

    __slots__ = (
        "bottleneck",
        "cuts",
        "done",
        "finish",
        "left",
        "nbytes",
        "number",
        "owner",
        "route",
        "since",
        "start",
        "tag",
    )

    def __init__(
        self, nbytes: int, route: Route, start: int, done: Callable[[Flow], None], owner: Any, number: int
    ) -> None:
        self.nbytes = nbytes
        self.route = route
        self.start = start
        self.finish = UNKNOWN  # the end as it stands while the flow runs at its free rate
        self.cuts: list[tuple[int, str]] = []
        self.owner = owner
        self.done = done
        self.number = number
        self.bottleneck: Bottleneck | None = (
            None  # whose level is its rate; None: it runs at the free rate of its route
        )
        self.left: float = nbytes  # bytes to go at `since`, while there is no bottleneck
        self.since = start
        self.tag = 0.0  # what the group of its bottleneck has served when it ends

    @property
    def rate(self) -> float:
        """Goodput in bytes/s as last settled; 0 before that and when the flow is over."""
        if self.bottleneck is None:
            return 0.0 if self.finish == UNKNOWN else self.route.rate
        return self.bottleneck.level

    def __repr__(self) -> str:
        path = "+".join(use[0].name for use in self.route.uses)
        return f"<flow {self.number} {self.nbytes} B over {path or 'nothing'} {self.start}..{self.finish}>"


OVER = Bottleneck(Capacity("over", 1, "over"))  # of a flow that has ended; its level stays 0


def bytes_left(flow: Flow, now: int) -> float:
    """The bytes that a flow still has to move."""
    group = flow.bottleneck
    if group is None:
        left = flow.left - (now - flow.since) / flow.route.pace
    else:
        left = flow.tag - group.served - (now - group.since) / group.pace
    return left if left > 0 else 0.0
