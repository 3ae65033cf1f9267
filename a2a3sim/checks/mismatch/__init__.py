"""Why a result differs from its golden."""

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim.checks.mismatch.provenance import trace_back
    from a2a3sim.checks.mismatch.reasons import Explanation, explain
    from a2a3sim.checks.mismatch.report import explain_mismatch
    from a2a3sim.checks.mismatch.slices import slices_of

__all__ = ["Explanation", "explain", "explain_mismatch", "slices_of", "trace_back"]

__getattr__, __dir__ = lazy(__name__)
