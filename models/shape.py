"""Who is joined to whom: the graph of a topology, without rates and latencies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from a2a3sim.errors import ConfigError
from a2a3sim.models import parameters as p

__all__ = ["Node", "Shape", "Wiring", "check_overrides", "shape_of"]

Node = int | str


class Wiring(Protocol):
    """What of a platform says how its devices are joined."""

    name: str
    topology: p.TopologySection
    link: p.LinkSection
    port: p.PortSection
    planes: p.Planes
    spread: p.Spread


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


def shape_of(platform: Wiring, devices: int) -> Shape:
    """The graph of a platform with that many devices."""
    switches: tuple[str, ...] = ()
    if platform.topology.kind in ("switch", "paired_switch"):
        name = platform.topology.switch
        alone = platform.planes == 1 or platform.spread == "all"
        switches = (name,) if alone else tuple(f"{name}{plane}" for plane in range(platform.planes))
    return Shape(platform.topology.kind, devices, switches)


def _node(text: str) -> Node:
    return int(text) if text.isdecimal() else text


def check_overrides(platform: Wiring, devices: int) -> None:
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
