"""The interconnect as a directed graph: devices, switches, and links with a bandwidth and a latency.

Devices are ints, switches are named. Links come into being when a path first uses them, so a full mesh of
384 devices costs nothing until it is crossed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from a2a3sim.errors import ConfigError
from a2a3sim.models.platform import Platform, fitting_platforms
from a2a3sim.models.shape import Node, check_overrides, shape_of

__all__ = ["Link", "Topology", "build_topology"]


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


def _label(node: Node) -> str:
    return node if isinstance(node, str) else f"dev{node}"


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
        raise ConfigError(
            f"devices must be at most {limit} on platform {platform.name}, got {devices}; "
            f"{fitting_platforms(devices)} (--platform)"
        )
    if limit is None:  # a platform with a fixed number has checked its own overrides
        check_overrides(platform, devices)
    return Topology(platform, devices)
