"""Paths of transfers: which capacities a load, store or notify of one device to another uses, and its latencies."""

from __future__ import annotations

from fractions import Fraction

from a2a3sim.models.network import Capacity, Route

__all__ = ["Fabric", "Path"]


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

    def __init__(self, uses, bound: int | None, head: int, tail: int, ack: int, load: bool) -> None:
        self.uses = tuple(uses)
        route = Route(uses, bound, tail)
        self.route = None if route.unlimited else route
        self.head = head
        self.tail = tail
        self.ack = ack
        self.load = load


class Fabric:
    """The interconnect of one machine, with a cache of its paths.

    Args:
        topology: links and routes between the platform's devices.
        platform: for HBM, efficiencies and the pipes' own rate.
    """

    def __init__(self, topology, platform) -> None:
        self.topology = topology
        self._platform = platform
        self._capacities: dict[str, Capacity] = {}
        self._loads: dict[tuple[int, int], Path] = {}
        self._stores: dict[tuple[int, int], Path] = {}
        self._latencies: dict[tuple[int, int], int] = {}
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
        return len(self._loads) + len(self._stores)

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

    def _hbm(self, device: int) -> list[tuple[Capacity, int]]:
        found = self._capacity(f"hbm{device}", self._platform.hbm.bandwidth, "hbm")
        return [(capacity, 1) for capacity in found]

    def _links(self, src: int, dst: int, weight) -> list[tuple[Capacity, int | Fraction]]:
        uses = []
        for link in self.topology.path(src, dst):
            # A rate that is stated as payload already needs no efficiency.
            weight = 1 if link.payload else weight
            uses += [(c, weight) for c in self._capacity(link.name, link.bandwidth, link.kind)]
        return uses

    def latency(self, src: int, dst: int) -> int:
        """One-way latency in ps; a device reaches itself at once."""
        key = (src, dst)
        found = self._latencies.get(key)
        if found is None:
            found = 0 if src == dst else sum(link.latency_ps for link in self.topology.path(src, dst))
            self._latencies[key] = found
        return found

    def load(self, core_device: int, memory_device: int) -> Path:
        """A core of one device reads the HBM of another (or of its own)."""
        key = (core_device, memory_device)
        path = self._loads.get(key)
        if path is None:
            path = self._loads[key] = self._make(True, core_device, memory_device)
        return path

    def store(self, core_device: int, memory_device: int) -> Path:
        """A core of one device writes the HBM of another (or of its own)."""
        key = (core_device, memory_device)
        path = self._stores.get(key)
        if path is None:
            path = self._stores[key] = self._make(False, core_device, memory_device)
        return path

    def reset(self) -> None:
        """As new, with its paths kept: for another run on the same machine."""
        for capacity in self._capacities.values():
            capacity.reset()
        for path in (*self._loads.values(), *self._stores.values()):
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


def _inverse(share) -> int | Fraction:
    inverse = 1 / Fraction(share)
    return inverse.numerator if inverse.denominator == 1 else inverse
