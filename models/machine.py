"""A modelled machine for one run: devices, fabric, signal memory and what its cores cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from a2a3sim.errors import KernelError
from a2a3sim.models.clock import Clock
from a2a3sim.models.core import Core, CoreCosts
from a2a3sim.models.fabric import Fabric
from a2a3sim.models.hold import HeldCore
from a2a3sim.models.network import Network
from a2a3sim.models.operation import Lane, Operation
from a2a3sim.models.signals import Signals
from a2a3sim.units import cycles_ps

if TYPE_CHECKING:
    from a2a3sim.models.platform import Platform

__all__ = ["Machine"]


class ElementType(Protocol):
    """What the machine asks of an element type of the language."""

    name: str
    itemsize: int


class Machine:
    """The hardware of one run.

    Args:
        clock: the engine.
        platform: a loaded platform file.
        fabric: its paths, as new.
        seed: for the order of simultaneous arrivals.
        fences: ``statement``, ``notify`` or ``explicit``.
        slow: factor on the core and vector costs of single devices.
        holds: what to ask before each operation of a lane how long its core stands still, or None.
    """

    def __init__(
        self,
        clock: Clock,
        platform: Platform,
        fabric: Fabric,
        seed: int,
        fences: str,
        slow: Mapping[int, Fraction] | None = None,
        holds: Callable[[Lane], Callable[[Operation], int] | None] | None = None,
    ) -> None:
        self.clock = clock
        self.platform = platform
        self.fences = fences
        self.fabric = fabric
        self.network = Network(clock, seed)
        signal = platform.signal
        self.signals = Signals(clock, signal.atomic, signal.poll, signal.line, seed)
        self._slow = dict(slow or {})
        self._holds = holds
        self._costs: dict[int, CoreCosts] = {}
        self._vector: dict[int, dict[tuple[str, ElementType, tuple[int, ...]], int]] = {}
        self._checked: dict[ElementType, bool] = {}
        #: Whether nothing is on its way but scalar reads; whoever knows all cores replaces it.
        self.only_polls: Callable[[], bool] = lambda: False

    def cycles(self, device: int, cycles: int | Fraction) -> int:
        """Core cycles of a device in ps, rounded up once."""
        return cycles_ps(Fraction(cycles) * self._slow.get(device, 1), self.platform.core.clock)

    def costs(self, device: int) -> CoreCosts:
        """What a core of this device costs."""
        found = self._costs.get(device)
        if found is None:
            platform = self.platform
            found = self._costs[device] = CoreCosts(
                issue=self.cycles(device, platform.core.issue),
                notify_issue=self.cycles(device, platform.signal.issue),
                wait_issue=self.cycles(device, platform.core.wait),
                moves_in_flight=platform.pipe.moves_in_flight,
                queue=platform.pipe.queue,
                ub=platform.ub.usable,
            )
        return found

    def core(self, lane: Lane, start: int) -> Core:
        """A core that begins a kernel at ``start`` (ps)."""
        parts = self.clock, self.network, self.signals, lane, self.costs(lane.device), self.fences, start
        before = self._holds(lane) if self._holds is not None else None
        return Core(*parts) if before is None else HeldCore(before, *parts)

    def vector_costs(self, device: int) -> dict[tuple[str, ElementType, tuple[int, ...]], int]:
        """Durations known so far on a device, by (instruction, dtype, shape)."""
        return self._vector.setdefault(device, {})

    def vector_ps(self, device: int, instr: str, dtype: ElementType, shape: tuple[int, ...]) -> int:
        """Duration of a vector instruction on operands of this shape: start-up + slope x repeats."""
        nbytes = dtype.itemsize
        for size in shape:
            nbytes *= size
        cycles = self.platform.vector.cycles(instr, dtype.name, nbytes)
        cost = self._vector.setdefault(device, {})[instr, dtype, shape] = self.cycles(device, cycles)
        return cost

    def check_vector(self, what: str, dtype: ElementType) -> None:
        """KernelError if the vector unit has no arithmetic on this dtype."""
        ok = self._checked.get(dtype)
        if ok is None:
            ok = self._checked[dtype] = self.platform.vector.supports(dtype.name)
        if not ok:
            vector = self.platform.vector
            known = ", ".join((*vector.native, *vector.emulated))
            raise KernelError(
                f"type: {what} on {dtype.name}, but the vector unit of {self.platform.name} calculates in {known}"
            )

    def check_atomic(self, what: str, dtype: ElementType) -> None:
        """KernelError if stores cannot add this dtype."""
        known = self.platform.atomic.dtypes
        if dtype.name not in known:
            raise KernelError(
                f"type: {what} adds {dtype.name}, but {self.platform.name} adds only {', '.join(known)} in memory"
            )
