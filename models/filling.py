"""Progressive filling: the max-min rates of some flows while all others keep theirs.

The flows of one route have one rate, so routes are what is filled. All variable routes rise together; one
that reaches its free rate stays there, and when a capacity is full all variable routes on it stay at that
level. Capacities that are not open take part as limits only, and keep their group; whether the outcome
agrees with what was held fixed is asked afterwards.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import Any, TypeAlias

from a2a3sim.models.bottleneck import Bottleneck, RateClass
from a2a3sim.models.capacity import PS, Route

__all__ = ["fill"]

SAME = 1e-12  # relative difference up to which two rates are one

Outcome: TypeAlias = tuple[Bottleneck | None, float]  # what holds a route back, and its rate
Variable: TypeAlias = dict[Route, Outcome]  # None in place of an outcome while it rises
Pinned: TypeAlias = dict[RateClass, None]


def fill(opened: list[Bottleneck]) -> tuple[Variable, Pinned, dict[Bottleneck, None]]:
    """Fill the routes and classes that are, were or may be held back by one of the ``opened``.

    Returns the routes with their (bottleneck or None, rate), the classes that keep their free rate, and the
    bottlenecks to open as well because the outcome contradicts them. ``found`` of an opened one is then its
    (level, pace), None if it holds nothing back.
    """
    variable: Variable = {}
    for each in opened:
        _gather_open(each, variable)
    others: list[Bottleneck] = []
    for route in variable:
        for each, _ in route.hot:
            if not each.open and not each.touched:
                each.touched = True
                others.append(each)
    for each in others:
        each.touched = False
        _gather_limit(each, variable)
    pinned = _rise(opened + others, variable)
    more: dict[Bottleneck, None] = {}
    for each in opened:
        if each.found is not None and each.fastest > each.found[0] * (1 + SAME):
            most = each.found[0] * (1 + SAME)
            for route in each.coupled:  # held fixed, but faster than this bottleneck allows
                if route not in variable and (group := route.bottleneck) is not None and group.level > most:
                    more[group] = None
    for each in others:
        if each.found is not None:
            more[each] = None  # routes joined its group, or left it too little
        elif each.grouped:  # it was full; its group may rise if others now take less
            change = 0.0
            for route in each.variable:
                before = route.rate if route.bottleneck is None else route.bottleneck.level
                change += (variable[route][1] - before) * (each.coupled[route] * route.placed)
            if abs(change) > SAME * each.scaled:
                more[each] = None
    return variable, pinned, more


def _gather_open(each: Bottleneck, variable: Variable) -> None:
    """What the routes held fixed leave of an open capacity, and the weight of the others on it."""
    avail, weight, fastest, mine = each.scaled, each.weight, 0.0, []
    for route, share in each.coupled.items():
        share *= route.placed
        group = route.bottleneck
        if group is None or group.open or not group.capacity.hot:
            weight += share
            mine.append(route)
            variable[route] = None  # type: ignore[assignment]  # until it is held back
        else:
            level = group.level
            avail -= level * share
            if level > fastest:  # noqa: PLR1730 - a call here would cost more than the line around it
                fastest = level
    each.avail, each.filling, each.fastest, each.variable = avail, weight, fastest, mine


def _gather_limit(each: Bottleneck, variable: Variable) -> None:
    """The same for a capacity that is only a limit: its classes and its group stay as they are."""
    avail, weight, mine = each.scaled, 0, []
    for one in each.classes:
        if one.weight:
            avail -= (one.rate if one.pinned else each.level) * one.weight
    for route, share in each.coupled.items():
        share *= route.placed
        if route in variable:
            weight += share
            mine.append(route)
        else:
            avail -= (route.rate if route.bottleneck is None else route.bottleneck.level) * share
    each.avail, each.filling, each.variable = avail, weight, mine


def _rise(touched: list[Bottleneck], variable: Variable) -> Pinned:
    """Raise all variable routes and the classes of open capacities until each is held back; see `fill`."""
    levels = []  # (level, position, bottleneck): lower bounds, for a level only rises while others freeze
    for position, each in enumerate(touched):
        each.found = None
        weight = each.filling
        if weight:
            avail = each.avail
            levels.append((avail / weight if avail > 0 else 0.0, position, each))
    heapify(levels)
    limits = _limits(touched, variable)  # slowest last
    lowest = limits[-1][0] if limits else 0.0
    pinned: Pinned = {}
    while levels:
        bound, position, each = levels[0]
        weight = each.filling
        if not weight:
            heappop(levels)
            continue
        avail = each.avail
        level = avail / weight if avail > 0 else 0.0
        if level > bound:
            heapreplace(levels, (level, position, each))
        elif lowest <= level and limits:
            _, _, one, home = limits.pop()
            if home is not None:
                if home.found is None:
                    pinned[one] = None
                    home.avail -= lowest * one.weight
                    home.filling -= one.weight
            elif variable[one] is None:
                variable[one] = (None, lowest)
                _freeze(one, lowest, None)
            if limits:
                lowest = limits[-1][0]
        else:
            heappop(levels)
            each.found = (level, PS * weight / avail if level else 0.0)
            each.filling = 0
            outcome = (each, level)
            for route in each.variable:
                if variable[route] is None:
                    variable[route] = outcome
                    _freeze(route, level, each)
    return pinned


def _freeze(route: Route, rate: float, at: Bottleneck | None) -> None:
    count = route.placed
    for each, share in route.hot:
        if each is not at:
            share *= count
            each.avail -= rate * share
            each.filling -= share


def _limits(touched: list[Bottleneck], variable: Variable) -> list[tuple[float, int, Any, Bottleneck | None]]:
    """(free rate, number, route or class, home of a class), slowest last; the number is unique."""
    limits: list[tuple[float, int, Any, Bottleneck | None]]
    limits = [(route.rate, number, route, None) for number, route in enumerate(variable)]
    for each in touched:
        if each.open and each.weight:
            for one in each.classes:
                if one.weight:
                    limits.append((one.rate, len(limits), one, each))
    limits.sort(reverse=True)
    return limits
