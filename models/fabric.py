"""Paths of transfers: which capacities a load, store or notify of one device to another uses, and its latencies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from a2a3sim.models.capacity import Weighted
from a2a3sim.models.jitter import Jitter
from a2a3sim.models.network import Capacity, Route

if TYPE_CHECKING:
    from a2a3sim.models.platform import Platform
    from a2a3sim.models.topology import Topology

__all__ = ["Fabric", "Path"]

_Value = TypeVar("_Value")


class Path:
    """What a transfer between a core and the memory of one device needs.

    Attributes:
        uses: (capacity, raw bytes it carries per byte of payload) of everything shared with other flows.
        route: the same for the network; None if nothing limits the transfer (it takes no time).
        head: latency before the first byte flows (a load's request), ps.
        tail: latency after the last byte left its source until it arrives (load) or is visible (store), ps.
        ack: a store's acknowledgement after that, ps.
        load: the data flow towards the core.
    """

    __slots__ = ("ack", "head", "load", "route", "tail", "uses")

    def __init__(
        self, uses: Iterable[Weighted], bound: int | None, head: int, tail: int, ack: int, load: bool
    ) -> None:
        self.uses = tuple(uses)
        route = Route(uses, bound, tail)
        self.route = None if route.unlimited else route
        self.head = head
        self.tail = tail
        self.ack = ack
        self.load = load


class _ByDevice(dict[int, _Value]):
    """Values by device, made when first asked for."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[int], _Value]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, device: int) -> _Value:
        value = self[device] = self._make(device)
        return value


class Fabric:
    """The interconnect of one machine, with a cache of its paths.

    Args:
        topology: links and routes between the platform's devices.
        platform: for HBM, efficiencies and the pipes' own rate.
        jitter: of the links' latencies, None for those of the platform.
    """

    def __init__(self, topology: Topology, platform: Platform, jitter: Jitter | None = None) -> None:
        self.topology = topology
        self.jitter = jitter
        self._platform = platform
        self._capacities: dict[str, Capacity] = {}
        self._loads: dict[int, _ByDevice[Path]] = {}
        self._stores: dict[int, _ByDevice[Path]] = {}
        self._latencies: dict[int, _ByDevice[int]] = {}
        # Raw bytes per byte of payload; as ints where they are, since thousands of paths are made.
        self._read_weight = _inverse(platform.efficiency.read)
        self._write_weight = _inverse(platform.efficiency.write)

    @property
    def capacities(self) -> list[Capacity]:
        """Every capacity that some path uses, in order of first use."""
        return list(self._capacities.values())

    @property
    def paths(self) -> int:
        """How many paths it keeps."""
        return sum(map(len, (*self._loads.values(), *self._stores.values())))

    @property
    def idle(self) -> bool:
        """Whether no flow is on its way."""
        return not any(capacity.active for capacity in self._capacities.values())

    def _capacity(self, name: str, rate: int | None, kind: str) -> list[Capacity]:
        if rate is None:
            return []
        capacity = self._capacities.get(name)
        if capacity is None:
            capacity = self._capacities[name] = Capacity(name, rate, kind)
        return [capacity]

    def _hbm(self, device: int) -> list[Weighted]:
        found = self._capacity(f"hbm{device}", self._platform.hbm.bandwidth, "hbm")
        return [(capacity, 1) for capacity in found]

    def _links(self, src: int, dst: int, weight: int | Fraction) -> list[Weighted]:
        uses: list[Weighted] = []
        for link in self.topology.path(src, dst):
            # A rate that is stated as payload already needs no efficiency.
            share = 1 if link.payload else weight
            uses += [(c, share) for c in self._capacity(link.name, link.bandwidth, link.kind)]
        return uses

    def latency(self, src: int, dst: int) -> int:
        """One-way latency in ps; a device reaches itself at once."""
        return self.latencies_from(src)[dst]

    def latencies_from(self, src: int) -> dict[int, int]:
        """The same to all devices."""
        found = self._latencies.get(src)
        if found is None:
            path = self.topology.path
            latency_of = attrgetter("latency_ps") if self.jitter is None else self.jitter.latency
            found = self._latencies[src] = _ByDevice(
                lambda dst: 0 if src == dst else sum(map(latency_of, path(src, dst)))
            )
        return found

    def load(self, core_device: int, memory_device: int) -> Path:
        """A core of one device reads the HBM of another (or of its own)."""
        return self.loads_from(core_device)[memory_device]

    def loads_from(self, core_device: int) -> dict[int, Path]:
        """The same for all devices, by the memory's: made when first asked for."""
        paths = self._loads.get(core_device)
        if paths is None:
            paths = self._loads[core_device] = _ByDevice(lambda there: self._make(True, core_device, there))
        return paths

    def store(self, core_device: int, memory_device: int) -> Path:
        """A core of one device writes the HBM of another (or of its own)."""
        paths = self._stores.get(core_device)
        if paths is None:
            paths = self._stores[core_device] = _ByDevice(lambda there: self._make(False, core_device, there))
        return paths[memory_device]

    def reset(self) -> None:
        """As new, with its paths kept: for another run on the same machine."""
        for capacity in self._capacities.values():
            capacity.reset()
        for paths in (*self._loads.values(), *self._stores.values()):
            for path in paths.values():
                if path.route is not None:
                    path.route.reset()

    def _make(self, load: bool, here: int, there: int) -> Path:
        platform = self._platform
        bound = platform.pipe.rate
        if here == there:
            uses, wait = self._hbm(here), platform.hbm.latency
            return Path(uses, bound, wait, 0, 0, True) if load else Path(uses, bound, 0, wait, 0, False)
        out, back = self.latency(here, there), self.latency(there, here)
        if load:
            uses = self._hbm(there) + self._links(there, here, self._read_weight)
            return Path(uses, bound, out, back, 0, True)
        uses = self._links(here, there, self._write_weight) + self._hbm(there)
        return Path(uses, bound, 0, out, back, False)


def _inverse(share: Fraction) -> int | Fraction:
    inverse = 1 / Fraction(share)
    return inverse.numerator if inverse.denominator == 1 else inverse
