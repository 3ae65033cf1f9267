"""Bounded max-min fair sharing, exact and local.

Every flow has the largest goodput such that none could have more without taking it from one that has less.
So a flow runs either at the free rate of its route or at the level of its *bottleneck*, a saturated capacity
on which no flow is faster. The flows of one bottleneck are its group: one level, hence one *virtual
service*, the bytes that a member has got since the group formed; a flow is over when that reaches the value
worked out when it joined. A new level is one assignment for the whole group, and one armed event serves it.

Settling happens once an instant, after its last start and end:

* capacities turn hot or cold and their flows are sorted anew: a flow with one hot capacity belongs to a
  class of that capacity, by its free rate; one with several is *coupled*;
* a hot capacity without coupled flows is solved by itself, at a cost that does not depend on its flows;
* the others by progressive filling among the flows of the capacities that changed, all else fixed. Where
  the outcome contradicts a flow that was held fixed, its bottleneck is added and the filling repeated.

float64 with + − × ÷ in a fixed order. Served bytes are never rounded, ends are, up to the next ps. The pace
(ps a byte) is kept beside the level: where it is whole, as with 25 GB/s, every time comes out exactly.
"""

from __future__ import annotations

from bisect import insort
from heapq import heappop, heappush
from math import ceil

from a2a3sim.models.capacity import NEVER, PS, Capacity
from a2a3sim.models.filling import fill

__all__ = ["OVER", "UNKNOWN", "Sharing"]

UNKNOWN = -1
OVER = "over"  # the group of a flow that has ended
TOLERANCE_PS = 1e-6  # an end this little after a whole ps is at it


class RateClass:
    """The flows of one free rate that meet others on one capacity only: one term in its solution."""

    __slots__ = ("pinned", "rate", "weight")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.weight = 0
        self.pinned = False  # they run at their free rate, not above the level


class Sharing:
    """Settles the rates of flows that meet on hot capacities; ``finish(flow)`` ends one."""

    __slots__ = ("_armed", "_at", "_dirty", "_finish", "clock", "pending", "resolves", "settles", "visits")

    def __init__(self, clock, finish) -> None:
        self.clock = clock
        self.pending = []  # flows started in this instant on a path that looks hot
        self.visits = self.settles = self.resolves = 0
        self._dirty = []
        self._armed = False
        self._at = clock.at
        self._finish = finish

    def touch(self, capacity: Capacity) -> None:
        """Have a capacity looked at when this instant settles."""
        if capacity.dirty:
            return
        capacity.dirty = True
        self._dirty.append(capacity)
        if not self._armed:
            self._armed = True
            self._at(self.clock.now, self._settle, None, 2)

    def leave(self, route) -> None:
        """One flow less on a route with hot capacities; they are solved again."""
        hot = route.hot
        route.placed -= 1
        if len(hot) == 1:
            capacity, _, weight, _, _ = hot[0]
            _class_of(capacity, route.rate).weight -= weight
            capacity.weight -= weight
            if not capacity.dirty:
                self.touch(capacity)
        else:
            for use in hot:
                if not use[0].dirty:
                    self.touch(use[0])
                if not route.placed:
                    del use[0].coupled[route]
        if not route.placed:
            route.hot = ()

    # Settling

    def _settle(self, _) -> None:
        self.settles += 1
        now = self.clock.now
        dirty, pending = self._dirty, self.pending
        turned = {}  # routes to sort anew, in a fixed order
        for capacity in dirty:
            hot = capacity.demand - capacity.excess > capacity.rate
            if hot is not capacity.hot:
                capacity.hot = hot
                if hot:
                    capacity.since = now
                elif not capacity.active:
                    capacity.limit = capacity.rate
                for route in capacity.routes:
                    turned[route] = None
        for route in turned:
            self._sort(route, now)  # may add to `dirty`
        if pending:
            self.pending = []
            self.visits += len(pending)
            for flow in pending:
                route = flow.route
                if route.placed != len(route.flows):
                    self._sort(route, now)
                hot = route.hot
                if not hot:
                    self._run_free(flow, now)
                elif len(hot) == 1:
                    hot[0][0].arrivals.append(flow)
        together = []
        for capacity in dirty:
            capacity.dirty = False
            if capacity.hot:
                if capacity.coupled:
                    together.append(capacity)
                else:
                    self._solve_alone(capacity, now)
        self._dirty = []
        self._armed = False
        if together:
            self._solve_together(together, now)

    def _sort(self, route, now: int) -> None:
        """Put the flows of a route where its hot capacities say; those it leaves or joins are solved again."""
        old, placed = route.hot, route.placed
        hot = [use for use in route.uses if use[0].hot] or ()
        count = len(route.flows)
        if hot != old:
            if len(old) == 1:
                capacity, _, weight, _, _ = old[0]
                _class_of(capacity, route.rate).weight -= placed * weight
                capacity.weight -= placed * weight
                self.touch(capacity)
            else:
                for use in old:
                    del use[0].coupled[route]
                    self.touch(use[0])
            placed = 0
            self.visits += count
            if not hot:
                for flow in route.flows:
                    self._run_free(flow, now)
            elif len(hot) == 1:
                hot[0][0].arrivals.extend(route.flows)
            else:
                route.group = None
                for use in hot:
                    use[0].coupled[route] = use
            route.hot = hot
        route.placed = count if hot else 0
        if len(hot) == 1:
            capacity, _, weight, _, _ = hot[0]
            _class_of(capacity, route.rate).weight += (count - placed) * weight
            capacity.weight += (count - placed) * weight
            self.touch(capacity)
        else:
            route.fresh = True
            for use in hot:
                if not use[0].dirty:
                    self.touch(use[0])

    def _solve_alone(self, capacity: Capacity, now: int) -> None:
        """Water-filling over the classes of a hot capacity whose flows meet no others elsewhere."""
        self.resolves += 1
        avail, weight = capacity.scaled, capacity.weight
        flipped = False
        level = None
        for each in capacity.classes:  # slowest first: what the pinned ones leave is for all that follow
            if not each.weight:
                continue
            if level is None:
                level = avail / weight
            pinned = each.rate <= level
            if pinned:
                avail -= each.rate * each.weight
                weight -= each.weight
                level = None
            if pinned is not each.pinned:
                each.pinned = pinned
                flipped = True
        _advance(capacity, now)
        if weight:
            capacity.level, capacity.pace = level, PS * weight / avail
        if flipped or capacity.arrivals:
            self._place(capacity, flipped, now)
        self._arm(capacity)

    def _solve_together(self, opened: list[Capacity], now: int) -> None:
        """Fill the capacities that changed, with those that the outcome contradicts, until there are none."""
        for capacity in opened:
            capacity.open = True
        while True:
            self.resolves += 1
            variable, pinned, more = fill(opened)
            for capacity in opened:
                self.visits += len(capacity.coupled)
            if not more:
                break
            for capacity in more:
                capacity.open = True
            opened += more
        for capacity in opened:
            _advance(capacity, now)  # with the old pace, all before any changes
        for capacity in opened:
            capacity.open = False
            if capacity.found is not None:
                capacity.level, capacity.pace = capacity.found
        for route, (group, _) in variable.items():
            if group is not route.group or route.fresh:
                route.group, route.fresh = group, False
                for flow in route.flows:
                    if group is None:
                        self._run_free(flow, now)
                    elif group is not flow.group:
                        self._join(flow, group, now)
        for capacity in opened:
            flipped = False
            for each in capacity.classes:
                if each.weight and (each in pinned) is not each.pinned:
                    each.pinned = not each.pinned
                    flipped = True
            if flipped or capacity.arrivals:
                self._place(capacity, flipped, now)
            self._arm(capacity)

    def _place(self, capacity: Capacity, flipped: bool, now: int) -> None:
        """Give the flows that came to a class, or whose class has changed, the rate of their class."""
        flows = capacity.arrivals
        capacity.arrivals = []
        if flipped:
            flows = [flow for route in capacity.routes if len(route.hot) == 1 for flow in route.flows]
            self.visits += len(flows)
        for flow in flows:
            if _class_of(capacity, flow.route.rate).pinned:
                self._run_free(flow, now)
            elif flow.group is not capacity:
                self._join(flow, capacity, now)

    # Flows and groups

    def _run_free(self, flow, now: int) -> None:
        """Let a flow run at the free rate of its route from now on."""
        group = flow.group
        if group is None and flow.finish != UNKNOWN:
            return  # as it does
        left = _left(flow, now)
        if group is not None:
            group.grouped -= 1
            flow.group = None
        flow.left, flow.since = left, now
        route = flow.route
        if left == flow.nbytes:
            finish = now + route.free_ps(flow.nbytes)
        else:
            finish = now + max(0, ceil(left * route.pace - TOLERANCE_PS))
        flow.finish = finish
        self._at(finish, self._finish, flow)
        _cut(flow, now, route.free_label)

    def _join(self, flow, capacity: Capacity, now: int) -> None:
        """Make a flow a member of a group that has been advanced to now."""
        left = _left(flow, now)
        if flow.group is not None:
            flow.group.grouped -= 1
        if not capacity.grouped:
            capacity.served = 0.0
            capacity.heap.clear()
        capacity.grouped += 1
        flow.group = capacity
        flow.finish = UNKNOWN
        tag = flow.tag = capacity.served + left
        heappush(capacity.heap, (tag, flow.number, flow))
        _cut(flow, now, capacity.name)

    def _arm(self, capacity: Capacity) -> None:
        """Have the next end of a group served; an event that comes too early arms again."""
        heap = capacity.heap
        while heap:
            tag, _, flow = heap[0]
            if flow.group is capacity and flow.tag == tag:
                due = capacity.since + max(0, ceil((tag - capacity.served) * capacity.pace - TOLERANCE_PS))
                if due < capacity.wake:
                    capacity.wake = due
                    self._at(due, self._serve, capacity)
                return
            heappop(heap)  # it has left this group

    def _serve(self, capacity: Capacity) -> None:
        """End the members that have been served in full."""
        now = self.clock.now
        if capacity.wake != now:
            return  # overtaken by an earlier one
        capacity.wake = NEVER
        heap, pace, served = capacity.heap, capacity.pace, capacity.served
        elapsed = now - capacity.since
        early = True
        while heap:
            tag, _, flow = heap[0]
            if flow.group is capacity and flow.tag == tag:
                if (tag - served) * pace - TOLERANCE_PS > elapsed:
                    break
                early = False
                capacity.grouped -= 1
                flow.group = None
                flow.finish = now
                heappop(heap)
                self._finish(flow)
            else:
                heappop(heap)
        if early:  # else the settling of this instant arms
            self._arm(capacity)


def _class_of(capacity: Capacity, rate: float) -> RateClass:
    """The class of the flows of that free rate whose only hot capacity this is."""
    for each in capacity.classes:
        if each.rate == rate:
            return each
    found = RateClass(rate)
    insort(capacity.classes, found, key=lambda each: each.rate)
    return found


def _advance(capacity: Capacity, now: int) -> None:
    if capacity.since != now:
        capacity.served += (now - capacity.since) / capacity.pace
        capacity.since = now


def _left(flow, now: int) -> float:
    """The bytes that a flow still has to move."""
    group = flow.group
    if group is None:
        left = flow.left - (now - flow.since) / flow.route.pace
    else:
        left = flow.tag - group.served - (now - group.since) / group.pace
    return left if left > 0 else 0.0


def _cut(flow, now: int, label: str) -> None:
    """Note the bottleneck from now on."""
    cuts = flow.cuts
    if cuts and cuts[-1][0] == now:
        cuts.pop()
    if not cuts or cuts[-1][1] != label:
        cuts.append((now, label))
