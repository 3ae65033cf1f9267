"""Loops of programs: ``pl.range`` and its kin, and the values that a loop carries from trip to trip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, SupportsIndex

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.context import current
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.kernel.device_int import device_ints

__all__ = ["parallel", "pl_range", "unroll", "yield_"]

# The loops with carried values that are running on this thread of control, innermost last.
_running: ContextVar[tuple[CarriedLoop, ...]] = ContextVar("carried loops", default=())


class CarriedLoop:
    """``for i, (a, b) in pl.range(n, init_values=(x, y)):``; the next trip gets what `yield_` was given last.

    Attributes:
        trips: how many trips have begun.
        final: the carried value, or tuple of values, after the loop.
    """

    def __init__(self, what: str, indices: Iterable[int], values: tuple[Any, ...]) -> None:
        self._what = what
        self._indices = indices
        self._values = values
        self.given: tuple[Any, ...] | None = None
        self.trips = 0

    @property
    def final(self) -> Any:
        """What the names of the loop's yield hold after the loop."""
        return self._values[0] if len(self._values) == 1 else self._values

    def __iter__(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        for index in self._indices:
            self.trips += 1
            self.given = None
            outer = _running.get()
            _running.set((*outer, self))
            try:
                yield index, self._values
            finally:
                _running.set(outer)
            if self.given is None:
                raise InvalidOperationError(
                    f"{self._what} carries {len(self._values)} values, but this trip ended without pl.yield_"
                )
            if len(self.given) != len(self._values):
                raise InvalidOperationError(
                    f"{self._what} carries {len(self._values)} values, but pl.yield_ was given "
                    f"{len(self.given)}"
                )
            self._values = self.given


def _loop(what: str) -> Callable[..., Any]:
    def loop(*bounds: SupportsIndex, init_values: Sequence[Any] | None = None) -> Any:
        if not 1 <= len(bounds) <= 3:
            raise InvalidOperationError(f"{what} takes 1 to 3 numbers, got {len(bounds)}")
        numbers = range(*(dim_value(b) for b in bounds))
        context = current()
        indices = numbers if context is None or context.level == "host" else device_ints(numbers)
        if init_values is None:
            return indices
        if not isinstance(init_values, (tuple, list)) or not init_values:
            raise InvalidOperationError(f"{what}: init_values must be a tuple of values, got {init_values!r}")
        return CarriedLoop(what, indices, tuple(init_values))

    loop.__name__ = loop.__qualname__ = what.rpartition(".")[2]
    return loop


pl_range = _loop("pl.range")
pl_range.__doc__ = """``pl.range(stop)``, ``(start, stop)``, ``(start, stop, step)``: a loop.

    Args:
        init_values: values that the loop carries; it then hands out ``(index, values)``, and each trip ends
            with ``pl.yield_`` of the next trip's values.
    """
parallel = _loop("pl.parallel")
parallel.__doc__ = (
    """As `pl_range`. Its trips are independent for the machine's scheduler; here they run in order."""
)
unroll = _loop("pl.unroll")
unroll.__doc__ = """As `pl_range`. Unrolled at compile time on the machine."""


def yield_(*values: Any) -> Any:
    """Hand values to the next trip of the innermost loop that carries any, or out of a branch."""
    running = _running.get()
    if running:
        running[-1].given = values
    return values[0] if len(values) == 1 else values
