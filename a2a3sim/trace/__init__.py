"""What happened in a run, and what is read from it."""

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim.models.memory import Access, Memory
    from a2a3sim.models.operation import UNKNOWN, Operation
    from a2a3sim.trace.critical_path import GROUPS, summary
    from a2a3sim.trace.record import Site, Trace, resolve_site

__all__ = ["GROUPS", "UNKNOWN", "Access", "Memory", "Operation", "Site", "Trace", "resolve_site", "summary"]

__getattr__, __dir__ = lazy(__name__)
