"""A built-in collective that the host body called, until the devices on which it runs are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from a2a3sim.errors import InternalError
from a2a3sim.language.host_handles import WindowBuffer, WindowView
from a2a3sim.models.operation import Site
from a2a3sim.trace.record import resolve_site

__all__ = ["Collective", "domains_of"]

Devices: TypeAlias = dict[WindowBuffer, dict[int, None]]  # in order of their dispatches


@dataclass(slots=True)
class Collective:
    """Becomes a dispatch on every device of its windows' domain.

    Attributes:
        name: as the program calls it (``allreduce``).
        windows: all operands (views of windows).
        signal: the one of them that takes its devices from the others.
        plan: from the number of ranks, which only the last dispatch settles, to (function, args, blocks).
        site: the call in the host body.
    """

    name: str
    windows: tuple[WindowView, ...]
    signal: WindowView
    plan: Callable[[int], tuple[Any, tuple[Any, ...], int]]
    site: Site

    def domain(self, devices: Devices) -> tuple[int, ...]:
        """The devices of the dispatches that take its data; a barrier has no data but its signal.

        Raises:
            InternalError: an operand is never dispatched, or the operands live on different ranks.
        """
        data = [w for w in self.windows if w.buffer is not self.signal.buffer] or [self.signal]
        domain = sorted(devices[data[0].buffer])
        for view in data:
            found = sorted(devices[view.buffer])
            if not found:
                raise self._error(
                    f"window {view.layout.name} must itself be passed to a dispatch, which says on which "
                    "ranks it lives, but none takes it"
                )
            if found != domain:
                raise self._error(
                    f"all operands must live on the same ranks, but {data[0].layout.name} is dispatched to "
                    f"ranks {domain} and {view.layout.name} to {found}"
                )
        return tuple(domain)

    def check_signal(self, domain: tuple[int, ...], devices: Devices) -> None:
        """InternalError if the signal, which inherits the domain, also lives elsewhere."""
        found = sorted(devices[self.signal.buffer])
        if found != list(domain):
            raise self._error(
                f"signal {self.signal.layout.name} must live on the ranks of the data, {list(domain)}, but "
                f"the dispatches and collectives that take it run on ranks {found}"
            )

    def _error(self, message: str) -> InternalError:
        place = resolve_site(self.site)
        return InternalError(f"{place.file}:{place.line}: pld.tensor.{self.name}: {message}")


def domains_of(calls: list[Collective], devices: Devices) -> list[tuple[int, ...]]:
    """The domain of each collective; signals inherit them.

    Args:
        devices: the devices of each window buffer's dispatches; the signals' are added.
    """
    domains = [call.domain(devices) for call in calls]
    for call, domain in zip(calls, domains, strict=True):
        devices[call.signal.buffer].update(dict.fromkeys(domain))
    for call, domain in zip(calls, domains, strict=True):
        call.check_signal(domain, devices)
    return domains
