"""What went wrong, or wastefully, in this run: deadlocks, failures, unwritten bytes, performance."""

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim.checks.faults.deadlock import deadlock_finding
    from a2a3sim.checks.faults.failure import failure_findings
    from a2a3sim.checks.faults.noted import noted_findings
    from a2a3sim.checks.faults.performance import performance_notes
    from a2a3sim.checks.faults.unwritten import unwritten_outputs

__all__ = [
    "deadlock_finding", "failure_findings", "noted_findings", "performance_notes", "unwritten_outputs",
]  # fmt: skip

__getattr__, __dir__ = lazy(__name__)
