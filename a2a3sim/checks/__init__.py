"""Findings: what is wrong with a run, what could go wrong on another schedule, and why a result is wrong."""

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim.checks.mismatch.provenance import trace_back
    from a2a3sim.checks.mismatch.reasons import explain
    from a2a3sim.checks.mismatch.slices import slices_of
    from a2a3sim.checks.suppressions import Suppressions

__all__ = ["Suppressions", "explain", "slices_of", "trace_back"]

__getattr__, __dir__ = lazy(__name__)
