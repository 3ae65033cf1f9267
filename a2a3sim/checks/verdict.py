"""The verdict on a run in which the checks have found nothing wrong, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable

from a2a3sim.checks.happens_before import forms_used
from a2a3sim.checks.wording import listed
from a2a3sim.result import Finding
from a2a3sim.trace.record import Trace

__all__ = ["verdict_on"]

_EXACT = {
    "Add",
    "Ge",
}  # nothing but these: what a wait guarantees is known exactly, and deadlocks are of no schedule


def verdict_on(trace: Trace, findings: Iterable[Finding]) -> str | None:
    """``safe on every schedule`` with its premises; None if there is an error or a warning.

    Args:
        findings: all of the run.
    """
    if any(f.severity != "note" for f in findings):
        return None
    sums = any(op.atomic for op in trace.operations())
    forms = forms_used(trace)
    used = f"signals are used as {listed(forms)}" if forms else "no signals are used"
    other = [form for form in forms if form not in _EXACT]
    rule = f"; for {listed(other)} the rule is tested, for Add with Ge it is proven" if other else ""
    rounding = ", but for the rounding of floats that are added in memory," if sums else ""
    return (
        f"safe on every schedule: whatever comes first, every operation reads and writes the same values{rounding} and "
        f"every wait ends. Premises: no branch depends on racy data; {used}{rule}."
    )
