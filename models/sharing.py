"""Bounded max-min fair sharing, exact and local.

Every flow has the largest goodput such that none could have more without taking it from one that has less.
So a flow runs either at the free rate of its route or at the level of its *bottleneck*, a saturated capacity
on which no flow is faster (see bottleneck.py for its group).

Settling happens once an instant, after its last start and end:

* capacities turn hot or cold and their routes are sorted anew: one with a single hot capacity belongs to a
  class of that capacity, by its free rate; one with several is *coupled*;
* a hot capacity without coupled routes is solved by itself, at a cost that does not depend on its flows;
* the others by progressive filling among the routes of the capacities that changed, all else fixed. Where
  the outcome contradicts a route that was held fixed, its bottleneck is added and the filling repeated.

float64 with + − × ÷ in a fixed order. Served bytes are never rounded; ends are, up to the next ps.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from math import ceil

from a2a3sim.models.bottleneck import NEVER, TOLERANCE_PS, UNKNOWN, Bottleneck, Flow, bytes_left
from a2a3sim.models.capacity import PS, Capacity, Route
from a2a3sim.models.clock import Clock
from a2a3sim.models.filling import fill

__all__ = ["Sharing"]


class Sharing:
    """Settles the rates of flows that meet on hot capacities; ``finish(flow)`` ends one."""

    __slots__ = ("_armed", "_at", "_dirty", "_finish", "clock", "pending", "resolves", "settles", "visits")

    def __init__(self, clock: Clock, finish: Callable[[Flow], None]) -> None:
        self.clock = clock
        self.pending: list[Flow] = []  # flows started in this instant on a path that looks hot
        self.visits = self.settles = self.resolves = 0
        self._dirty: list[Capacity] = []
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

    def leave(self, route: Route) -> None:
        """One flow less on a route with hot capacities; they are solved again."""
        hot = route.hot
        placed = route.placed = route.placed - 1
        single = len(hot) == 1
        for each, weight in hot:
            if single:
                each.add(route.rate, -weight)
            elif not placed:
                del each.coupled[route]
            if not each.capacity.dirty:
                self.touch(each.capacity)
        if not placed:
            route.hot = ()

    # Settling

    def _settle(self, _: None) -> None:
        self.settles += 1
        now = self.clock.now
        dirty = self._dirty
        turned: dict[Route, None] = {}  # routes to sort anew, in a fixed order
        for capacity in dirty:
            hot = capacity.demand - capacity.excess > capacity.rate
            if hot is not capacity.hot:
                capacity.hot = hot
                if not hot:
                    if not capacity.active:
                        capacity.limit = capacity.rate
                elif capacity.bottleneck is None:
                    capacity.bottleneck = Bottleneck(capacity)
                for route in capacity.routes:
                    turned[route] = None
        for route in turned:
            self._sort(route, now)  # may add to `dirty`
        if self.pending:
            self._place_pending(now)
        together = []
        for capacity in dirty:
            capacity.dirty = False
            if capacity.hot:
                bottleneck: Bottleneck = capacity.bottleneck
                if bottleneck.coupled:
                    together.append(bottleneck)
                else:
                    self._solve_alone(bottleneck, now)
        self._dirty = []
        self._armed = False
        if together:
            self._solve_together(together, now)

    def _sort(self, route: Route, now: int) -> None:
        """Put a route where its hot capacities say; those it leaves or joins are solved again."""
        old, placed, count = route.hot, route.placed, len(route.flows)
        hot = [(use[0].bottleneck, use[2]) for use in route.uses if use[0].hot] or ()
        if hot != old:
            for each, weight in old:
                if len(old) == 1:
                    each.add(route.rate, -placed * weight)
                else:
                    del each.coupled[route]
                if not each.capacity.dirty:
                    self.touch(each.capacity)
            placed = 0
            self.visits += count
            route.hot = hot
            route.bottleneck = None
            if not hot:
                for flow in route.flows:
                    self._run_free(flow, now)
            elif len(hot) == 1:
                hot[0][0].arrivals.extend(route.flows)
        for each, weight in hot:
            if len(hot) == 1:
                each.add(route.rate, (count - placed) * weight)
            else:
                each.coupled[route] = weight
            if not each.capacity.dirty:
                self.touch(each.capacity)
        route.placed = count if hot else 0
        route.fresh = True

    def _place_pending(self, now: int) -> None:
        pending = self.pending
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

    def _solve_alone(self, bottleneck: Bottleneck, now: int) -> None:
        """Water-filling over the classes of a hot capacity whose flows meet no others elsewhere."""
        self.resolves += 1
        avail, weight = bottleneck.scaled, bottleneck.weight
        flipped = False
        level: float | None = None
        for each in bottleneck.classes:  # slowest first: what the pinned ones leave is for all that follow
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
        bottleneck.advance(now)
        if weight:
            bottleneck.level = level  # type: ignore[assignment]  # the first that is not pinned has set it
            bottleneck.pace = PS * weight / avail
        if flipped or bottleneck.arrivals:
            self._place(bottleneck, flipped, now)
        self._arm(bottleneck)

    def _solve_together(self, opened: list[Bottleneck], now: int) -> None:
        """Fill the capacities that changed, with those that the outcome contradicts, until there are none."""
        for each in opened:
            each.open = True
        while True:
            self.resolves += 1
            variable, pinned, more = fill(opened)
            for each in opened:
                self.visits += len(each.coupled)
            if not more:
                break
            for each in more:
                each.open = True
            opened += more
        for each in opened:
            each.advance(now)  # with the old pace, all before any changes
        for each in opened:
            each.open = False
            if each.found is not None:
                each.level, each.pace = each.found
        for route, (bottleneck, _) in variable.items():
            if bottleneck is not route.bottleneck or route.fresh:
                route.bottleneck, route.fresh = bottleneck, False
                for flow in route.flows:
                    if bottleneck is None:
                        self._run_free(flow, now)
                    elif bottleneck is not flow.bottleneck:
                        self._join(flow, bottleneck, now)
        for each in opened:
            flipped = False
            for one in each.classes:
                if one.weight and (one in pinned) is not one.pinned:
                    one.pinned = not one.pinned
                    flipped = True
            if flipped or each.arrivals:
                self._place(each, flipped, now)
            self._arm(each)

    def _place(self, bottleneck: Bottleneck, flipped: bool, now: int) -> None:
        """Give the flows that came to a class, or whose class has changed, the rate of their class."""
        flows = bottleneck.arrivals
        bottleneck.arrivals = []
        if flipped:
            routes = [route for route in bottleneck.capacity.routes if len(route.hot) == 1]
            flows = [flow for route in routes for flow in route.flows]
            self.visits += len(flows)
        for flow in flows:
            if bottleneck.class_of(flow.route.rate).pinned:
                self._run_free(flow, now)
            elif flow.bottleneck is not bottleneck:
                self._join(flow, bottleneck, now)

    # Flows and groups

    def _run_free(self, flow: Flow, now: int) -> None:
        """Let a flow run at the free rate of its route from now on."""
        group = flow.bottleneck
        if group is None and flow.finish != UNKNOWN:
            return  # as it does
        left = bytes_left(flow, now)
        if group is not None:
            group.grouped -= 1
            flow.bottleneck = None
        flow.left, flow.since = left, now
        route = flow.route
        if left == flow.nbytes:
            finish = now + route.free_ps(flow.nbytes)
        else:
            finish = now + max(0, ceil(left * route.pace - TOLERANCE_PS))
        flow.finish = finish
        self._at(finish, self._finish, flow)
        _cut(flow, now, route.free_label)

    def _join(self, flow: Flow, group: Bottleneck, now: int) -> None:
        """Make a flow a member of a group that has been advanced to now."""
        left = bytes_left(flow, now)
        if flow.bottleneck is not None:
            flow.bottleneck.grouped -= 1
        if not group.grouped:
            group.served = 0.0
            group.heap.clear()
        group.grouped += 1
        flow.bottleneck = group
        flow.finish = UNKNOWN
        tag = flow.tag = group.served + left
        heappush(group.heap, (tag, flow.number, flow))
        _cut(flow, now, group.capacity.name)

    def _arm(self, group: Bottleneck) -> None:
        """Have the next end of a group served; an event that comes too early arms again."""
        due = group.due()
        if due < group.wake:
            group.wake = due
            self._at(due, self._serve, group)

    def _serve(self, group: Bottleneck) -> None:
        """End the members that have been served in full."""
        now = self.clock.now
        if group.wake != now:
            return  # overtaken by an earlier one
        group.wake = NEVER
        flow = group.pop(now)
        if flow is None:
            self._arm(group)
        while flow is not None:  # the settling of this instant will arm again
            flow.finish = now
            self._finish(flow)
            flow = group.pop(now)


def _cut(flow: Flow, now: int, label: str) -> None:
    """Note the bottleneck from now on."""
    cuts = flow.cuts
    if cuts and cuts[-1][0] == now:
        cuts.pop()
    if not cuts or cuts[-1][1] != label:
        cuts.append((now, label))
