"""The interconnect: flows over capacities, each at its bounded max-min fair share.

A flow whose path has no hot capacity knows its end when it starts and costs one event. All others are
settled together, once an instant, after the last start and end in it (see sharing.py).

No port ever carries more than its rate, and nothing here arbitrates: fair sharing has no order of service,
so the times do not depend on the order in which simultaneous flows are started.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from a2a3sim.models.bottleneck import OVER, Flow
from a2a3sim.models.capacity import Capacity, Route
from a2a3sim.models.clock import Clock
from a2a3sim.models.sharing import Sharing

__all__ = ["Capacity", "Flow", "Network", "Route"]


class Network:
    """Starts flows on a clock and calls back at their ends.

    ``visits`` (flows looked at one by one while settling), ``settles`` and ``resolves`` count the work.
    ``seed`` is accepted like that of every model and changes nothing: there is nothing to arbitrate.
    """

    __slots__ = ("_at", "_sharing", "clock", "flows", "seed", "used")

    def __init__(self, clock: Clock, seed: int = 0) -> None:
        self.clock = clock
        self.seed = seed
        self.flows = 0  # started so far
        self._at = clock.at
        self.used: list[Capacity] = []  # every capacity that ever carried a flow, in order of first use
        self._sharing = Sharing(clock, self._finish)

    @property
    def visits(self) -> int:
        return self._sharing.visits

    @property
    def settles(self) -> int:
        return self._sharing.settles

    @property
    def resolves(self) -> int:
        return self._sharing.resolves

    def start(self, nbytes: int, route: Route, done: Callable[[Flow], None], owner: Any = None) -> Flow:
        """Start ``nbytes`` on a route now; ``done(flow)`` is called in the event at its finish."""
        now = self.clock.now
        number = self.flows = self.flows + 1
        flow = Flow(nbytes, route, now, done, owner, number)
        if nbytes <= 0 or route.unlimited:
            return self._start_nothing(flow)
        flows = route.flows
        first = not flows
        flows.append(flow)
        crowded = False
        for use in route.uses:
            capacity = use[0]
            if first:
                capacity.routes[route] = use
            active = capacity.active = capacity.active + 1
            if active == 1:
                capacity.busy_since = now
            if active > capacity.peak_flows:
                capacity.peak_flows = active
                if active == 1:
                    self.used.append(capacity)
            demand = capacity.demand = capacity.demand + use[1]
            if demand > capacity.limit and capacity.crowd(use):
                crowded = True
                if not capacity.dirty:
                    self._sharing.touch(capacity)
        if crowded:
            self._sharing.pending.append(flow)
        else:
            flow.cuts.append((now, route.free_label))
            finish = flow.finish = now - (-nbytes * route.times // route.per)
            self._at(finish, self._finish, flow)
        return flow

    def _start_nothing(self, flow: Flow) -> Flow:
        if flow.nbytes < 0:
            raise ValueError(f"bytes of a flow must be at least 0, got {flow.nbytes!r}")
        flow.finish = flow.start
        flow.cuts.append((flow.start, flow.route.free_label))
        self._at(flow.start, flow.done, flow)
        return flow

    def _finish(self, flow: Flow) -> None:
        """End a flow that runs at its free rate, unless this event was overtaken by a change of its rate."""
        now = self.clock.now
        if flow.finish != now or flow.bottleneck is not None:
            return
        flow.bottleneck = OVER
        nbytes = flow.nbytes
        route = flow.route
        flows = route.flows
        flows.remove(flow)
        for use in route.uses:
            capacity = use[0]
            if not flows:
                del capacity.routes[route]
            active = capacity.active = capacity.active - 1
            if not active:
                capacity.busy_ps += now - capacity.busy_since
            capacity.bytes += nbytes
            capacity.demand -= use[1]
            if capacity.limit < 0:
                capacity.uncrowd(use)
        if route.hot:
            self._sharing.leave(route)
        flow.done(flow)

    def close(self) -> None:
        """Finish the statistics at the end of a run, flows still in flight included."""
        now = self.clock.now
        for capacity in self.used:
            if capacity.active:
                capacity.busy_ps += now - capacity.busy_since
                capacity.busy_since = now
