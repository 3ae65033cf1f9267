"""Findings: what is wrong with a run, what could go wrong on another schedule, and why a result is wrong."""

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim.checks.faults import deadlock_finding
    from a2a3sim.checks.happens_before import check
    from a2a3sim.checks.mismatch import Explanation, explain, explain_mismatch, slices_of, trace_back
    from a2a3sim.checks.run import check_run
    from a2a3sim.checks.saved import check_again, follows_others
    from a2a3sim.checks.suppressions import Suppressions, in_file, in_source
    from a2a3sim.checks.verdict import verdict_on
    from a2a3sim.checks.wording import plural, ranks_text

__all__ = [
    "Explanation", "Suppressions", "check", "check_again", "check_run", "deadlock_finding", "explain", "explain_mismatch",
    "follows_others", "in_file", "in_source", "plural", "ranks_text", "slices_of", "trace_back", "verdict_on",
]  # fmt: skip

__getattr__, __dir__ = lazy(__name__)
