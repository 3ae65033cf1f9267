"""The hardware: core, memory, signal memory, interconnect, and the platform files."""

if __name__ != "a2a3sim.models":
    raise ImportError("import a2a3sim.models, not models: a second copy of its modules would be created")

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim.models.network import Capacity, Network, Route
    from a2a3sim.models.platform import Platform, list_platforms, load_platform
    from a2a3sim.models.topology import build_topology

__all__ = ["Capacity", "Network", "Platform", "Route", "build_topology", "list_platforms", "load_platform"]

__getattr__, __dir__ = lazy(__name__)
