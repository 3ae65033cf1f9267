"""The interconnect as a directed graph: devices, switches, and links with a bandwidth and a latency.

Devices are ints, switches are named. Links come into being when a path first uses them, so a full mesh of
384 devices costs nothing until it is crossed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from a2a3sim.errors import ConfigError

if TYPE_CHECKING:
    from a2a3sim.models.platform import Platform

__all__ = ["Link", "Shape", "Topology", "build_topology"]

Node = int | str


@dataclass(frozen=True, slots=True)
class Link:
    """One directed channel that flows share.

    ``kind`` is ``link`` for a wire of the graph (SIO included), ``egress`` or ``ingress`` for what one
    device can send or take in all. ``bandwidth`` None is unlimited. ``payload`` says that the bandwidth is
    already payload (a measured SIO), so the read and write efficiency of the fabric does not apply to it.
    """

    name: str
    src: Node
    dst: Node
    bandwidth: int | None
    latency_ps: int
    kind: str = "link"
    payload: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """Who is joined to whom, by ``topology.kind``.

    ``switches`` holds one name for each plane that a flow can keep to; devices are 0 .. devices-1.
    """

    kind: str
    devices: int
    switches: tuple[str, ...]

    def joined(self, a: Node, b: Node) -> bool:
        """Whether a link leads from ``a`` to ``b``."""
        if not self.has(a) or not self.has(b) or a == b:
            return False
        if isinstance(a, str) or isinstance(b, str):
            return isinstance(a, int) or isinstance(b, int)
        if self.kind == "full_mesh":
            return True
        if self.kind == "ring":
            return (a - b) % self.devices in (1, self.devices - 1)
        return self.paired(a, b)

    def paired(self, a: Node, b: Node) -> bool:
        """Whether ``a`` and ``b`` are the two dies of one package, joined by an SIO."""
        return self.kind == "paired_switch" and isinstance(a, int) and isinstance(b, int) and a ^ b == 1

    def has(self, node: Node) -> bool:
        """Whether the graph has this device or switch."""
        return node in self.switches if isinstance(node, str) else 0 <= node < self.devices

    def after(self, node: Node, switches: tuple[str, ...]) -> list[Node]:
        """Where links from ``node`` lead, devices in ascending order first, then the given switches."""
        others: Iterable[Node] = range(self.devices)
        if isinstance(node, int) and self.kind == "ring":
            others = sorted({(node - 1) % self.devices, (node + 1) % self.devices})
        elif isinstance(node, int) and self.kind != "full_mesh":
            others = (node ^ 1,)
        nodes: list[Node] = [*others, *switches]
        return [other for other in nodes if self.joined(node, other)]

    def fewest_hops(self, src: int, dst: int, switches: tuple[str, ...]) -> list[Node]:
        """The nodes of a shortest path; among equals the one found first with neighbours in order."""
        if self.joined(src, dst):
            return [src, dst]
        came: dict[Node, Node | None] = {src: None}
        queue: list[Node] = [src]
        for node in queue:
            if self.joined(node, dst):  # before looking at all neighbours: a switch has one for every device
                path: list[Node] = [dst]
                back: Node | None = node
                while back is not None:
                    path.append(back)
                    back = came[back]
                return path[::-1]
            for other in self.after(node, switches):
                if other not in came:
                    came[other] = node
                    queue.append(other)
        raise ConfigError(f"device {dst} must be reachable, got no path from device {src}")


class Topology:
    """The links of one machine and the paths over them.

    A path is: the egress of its source, the links of a route with the fewest hops, the ingress of its
    destination; egress and ingress only where the platform limits them, and never on an SIO, which does not
    go through the port. With several planes a flow keeps to plane (source + destination) mod planes; with
    ``spread = "all"`` it is divided evenly over the planes, which is the same as one link of
    planes x bandwidth, and that is how it is modelled.
    """

    __slots__ = ("_links", "_paths", "_ported", "devices", "platform", "shape")

    def __init__(self, platform: Platform, devices: int) -> None:
        self.platform = platform
        self.devices = devices
        self.shape = shape_of(platform, devices)
        port = platform.port
        self._ported = port.egress is not None or port.ingress is not None or bool(port.of)
        self._links: dict[str, Link] = {}
        self._paths: dict[tuple[int, int], tuple[Link, ...]] = {}

    @property
    def links(self) -> tuple[Link, ...]:
        """The links that paths have used so far, in the order of their first use."""
        return tuple(self._links.values())

    def every_link(self) -> Iterator[Link]:
        """All links of the machine, used or not: by source, devices first."""
        nodes = [*range(self.devices), *self.shape.switches]
        for node in nodes:
            if isinstance(node, int):
                yield from self._port("egress", node)
            for other in self.shape.after(node, self.shape.switches):
                yield self._link(node, other)
            if isinstance(node, int):
                yield from self._port("ingress", node)

    def path(self, src: int, dst: int) -> tuple[Link, ...]:
        """The links from one device to another in order; none from a device to itself."""
        path = self._paths.get((src, dst))
        if path is None:
            path = self._paths[src, dst] = self._route(src, dst)
        return path

    def latency(self, src: int, dst: int) -> int:
        """One-way latency in ps."""
        return sum(link.latency_ps for link in self.path(src, dst))

    def bandwidth(self, src: int, dst: int) -> int | None:
        """The smallest bandwidth on the path in bytes per second; None if nothing limits it."""
        return min(
            (link.bandwidth for link in self.path(src, dst) if link.bandwidth is not None), default=None
        )

    def _route(self, src: int, dst: int) -> tuple[Link, ...]:
        if not (0 <= src < self.devices and 0 <= dst < self.devices):
            wrong = src if not 0 <= src < self.devices else dst
            raise ConfigError(f"device must be in 0..{self.devices - 1}, got {wrong!r}")
        if src == dst:
            return ()
        if self.shape.kind == "full_mesh" and not self._ported:
            return (
                self._keep(self._link(src, dst)),
            )  # a path of its own for each pair: thousands, each used once
        if self.shape.paired(src, dst):
            return (self._keep(self._link(src, dst)),)
        switches = self.shape.switches
        if len(switches) > 1:
            switches = (switches[(src + dst) % len(switches)],)
        nodes = self.shape.fewest_hops(src, dst, switches)
        links = [*self._port("egress", src)]
        links += [self._link(a, b) for a, b in pairwise(nodes)]
        links += self._port("ingress", dst)
        return tuple(self._keep(link) for link in links)

    def _keep(self, link: Link) -> Link:
        return self._links.setdefault(link.name, link)

    def _link(self, a: Node, b: Node) -> Link:
        platform, special = self.platform, self.platform.link.between.get(f"{a}-{b}")
        if self.shape.paired(a, b):
            name, bandwidth, latency, payload = (
                f"sio{a}->{b}",
                platform.sio.bandwidth,
                platform.sio.latency,
                True,
            )
        else:
            name = f"{_label(a)}->{_label(b)}"
            bandwidth, latency, payload = platform.link.bandwidth, platform.link.latency, False
            if (
                bandwidth is not None
                and platform.spread == "all"
                and (isinstance(a, str) or isinstance(b, str))
            ):
                bandwidth *= platform.planes
        if special is not None:
            bandwidth = special.bandwidth if "bandwidth" in special.model_fields_set else bandwidth
            latency = latency if special.latency is None else special.latency
        return Link(name, a, b, bandwidth, latency, "link", payload)

    def _port(self, kind: str, device: int) -> tuple[Link, ...]:
        port, special = self.platform.port, self.platform.port.of.get(str(device))
        rate = getattr(port, kind)
        if special is not None and kind in special.model_fields_set:
            rate = getattr(special, kind)
        return () if rate is None else (Link(f"dev{device} {kind}", device, device, rate, 0, kind),)


def _node(text: str) -> Node:
    return int(text) if text.isdecimal() else text


def _label(node: Node) -> str:
    return node if isinstance(node, str) else f"dev{node}"


def shape_of(platform: Platform, devices: int) -> Shape:
    """The graph of a platform with that many devices."""
    switches: tuple[str, ...] = ()
    if platform.topology.kind in ("switch", "paired_switch"):
        name = platform.topology.switch
        alone = platform.planes == 1 or platform.spread == "all"
        switches = (name,) if alone else tuple(f"{name}{plane}" for plane in range(platform.planes))
    return Shape(platform.topology.kind, devices, switches)


def build_topology(platform: Platform, devices: int) -> Topology:
    """The interconnect of a platform with devices 0 .. ``devices``-1.

    Raises:
        ConfigError: more devices than the platform has, or a link or port override for a link or device
            that does not exist among so many.
    """
    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 1:
        raise ConfigError(f"number of devices must be an int of at least 1, got {devices!r}")
    limit = platform.topology.devices
    if limit is not None and devices > limit:
        from a2a3sim.models.platform import fitting_platforms

        raise ConfigError(
            f"devices must be at most {limit} on platform {platform.name}, got {devices}; "
            f"{fitting_platforms(devices)} (--platform)"
        )
    if limit is None:  # a platform with a fixed number has checked its own overrides
        check_overrides(platform, devices)
    return Topology(platform, devices)


def check_overrides(platform: Platform, devices: int) -> None:
    """Refuse a per-link or per-port parameter that would never be used."""
    shape = shape_of(platform, devices)
    span = f"devices are 0..{devices - 1}"
    for name in platform.link.between:
        ends = [_node(end) for end in name.split("-")]
        if not shape.joined(ends[0], ends[1]):
            among = f" and switches {', '.join(shape.switches)}" if shape.switches else ""
            raise ConfigError(
                f"link.{name} must name a link of platform {platform.name} "
                f"({shape.kind}, {span}{among}), got no link from {ends[0]} to {ends[1]}"
            )
    for name in platform.port.of:
        if int(name) >= devices:
            raise ConfigError(
                f"port.{name} must name a device of platform {platform.name} ({span}), got {name!r}"
            )
