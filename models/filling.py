"""Progressive filling: the max-min rates of some flows while all others keep theirs.

The flows of one route have one rate, so routes are what is filled. All variable routes rise together; one
that reaches its free rate stays there, and when a capacity is full all variable routes on it stay at that
level. Capacities that are not open take part as limits only, and keep their group; whether the outcome
agrees with what was held fixed is asked afterwards.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace

from a2a3sim.models.capacity import PS, Capacity

__all__ = ["fill"]

SAME = 1e-12  # relative difference up to which two rates are one


def fill(opened: list[Capacity]) -> tuple[dict, dict, dict]:
    """Fill the routes and classes whose bottleneck is, was or may become one of the ``opened`` capacities.

    Returns the routes with their (bottleneck or None, rate), the classes that keep their free rate, and the
    capacities to open as well because the outcome contradicts them; ``found`` of an opened capacity is then
    its (level, pace), None if it holds nothing back.
    """
    variable = {}
    for capacity in opened:
        _gather_open(capacity, variable)
    others = []
    for route in variable:
        for use in route.hot:
            capacity = use[0]
            if not capacity.open and not capacity.touched:
                capacity.touched = True
                others.append(capacity)
    for capacity in others:
        capacity.touched = False
        _gather_limit(capacity, variable)
    pinned = _rise(opened + others, variable)
    more = {}
    for capacity in opened:
        if capacity.found is not None and capacity.fastest > capacity.found[0] * (1 + SAME):
            most = capacity.found[0] * (1 + SAME)
            for route in capacity.coupled:  # held fixed, but faster than the bottleneck allows
                if route not in variable and route.group.level > most:
                    more[route.group] = None
    for capacity in others:
        if capacity.found is not None:
            more[capacity] = None  # flows joined its group, or left it too little
        elif capacity.grouped:  # it was full; its group may rise if others now take less
            change = 0.0
            for route in capacity.variable:
                before = route.rate if route.group is None else route.group.level
                change += (variable[route][1] - before) * (capacity.coupled[route][2] * route.placed)
            if abs(change) > SAME * capacity.scaled:
                more[capacity] = None
    return variable, pinned, more


def _gather_open(capacity: Capacity, variable: dict) -> None:
    """What the routes held fixed leave of an open capacity (times ONE), and the weight of the others on it."""
    avail, weight, fastest, mine = capacity.scaled, capacity.weight, 0.0, []
    for route, use in capacity.coupled.items():
        share = use[2] * route.placed
        group = route.group
        if group is None or group.open or not group.hot:
            weight += share
            mine.append(route)
            variable[route] = None
        else:
            level = group.level
            avail -= level * share
            if level > fastest:
                fastest = level
    capacity.avail, capacity.filling, capacity.fastest, capacity.variable = avail, weight, fastest, mine


def _gather_limit(capacity: Capacity, variable: dict) -> None:
    """The same for a capacity that is only a limit: its classes and the routes of its group stay as they are."""
    avail, weight, mine = capacity.scaled, 0, []
    for each in capacity.classes:
        if each.weight:
            avail -= (each.rate if each.pinned else capacity.level) * each.weight
    for route, use in capacity.coupled.items():
        share = use[2] * route.placed
        if route in variable:
            weight += share
            mine.append(route)
        else:
            avail -= (route.rate if route.group is None else route.group.level) * share
    capacity.avail, capacity.filling, capacity.variable = avail, weight, mine


def _rise(touched: list[Capacity], variable: dict) -> dict:
    """Raise all variable routes and the classes of open capacities until each is held back; see `fill`."""
    levels = []  # (level, position, capacity): lower bounds, for a level only rises while others freeze
    for position, capacity in enumerate(touched):
        capacity.found = None
        weight = capacity.filling
        if weight:
            avail = capacity.avail
            levels.append((avail / weight if avail > 0 else 0.0, position, capacity))
    heapify(levels)
    limits = _limits(touched, variable)  # slowest last
    lowest = limits[-1][0] if limits else 0.0
    pinned = {}
    while levels:
        bound, position, capacity = levels[0]
        weight = capacity.filling
        if not weight:
            heappop(levels)
            continue
        avail = capacity.avail
        level = avail / weight if avail > 0 else 0.0
        if level > bound:
            heapreplace(levels, (level, position, capacity))
        elif lowest <= level and limits:
            _, _, one, home = limits.pop()
            if home is not None:
                if home.found is None:
                    pinned[one] = None
                    home.avail -= lowest * one.weight
                    home.filling -= one.weight
            elif variable[one] is None:
                variable[one] = (None, lowest)
                for use in one.hot:
                    share = use[2] * one.placed
                    use[0].avail -= lowest * share
                    use[0].filling -= share
            if limits:
                lowest = limits[-1][0]
        else:
            heappop(levels)
            capacity.found = (level, PS * weight / avail if level else 0.0)
            capacity.filling = 0
            outcome = (capacity, level)
            for route in capacity.variable:
                if variable[route] is None:
                    variable[route] = outcome
                    count = route.placed
                    for use in route.hot:
                        other = use[0]
                        if other is not capacity:
                            share = use[2] * count
                            other.avail -= level * share
                            other.filling -= share
    return pinned


def _limits(touched: list[Capacity], variable: dict) -> list:
    """(free rate, number, route or class, home of a class), slowest last; the number is unique."""
    limits = [(route.rate, number, route, None) for number, route in enumerate(variable)]
    for capacity in touched:
        if capacity.open and capacity.weight:
            for each in capacity.classes:
                if each.weight:
                    limits.append((each.rate, len(limits), each, capacity))
    limits.sort(reverse=True)
    return limits
