"""The checks on a saved trace: what follows from what was recorded is found anew, the rest stands as the run told it."""

from __future__ import annotations

from a2a3sim.checks.faults import performance_notes
from a2a3sim.checks.happens_before import HistoryState
from a2a3sim.checks.run import by_severity, order_findings
from a2a3sim.checks.verdict import verdict_on
from a2a3sim.models.operation import UNKNOWN
from a2a3sim.result import Finding, RunResult
from a2a3sim.trace.record import Trace

__all__ = ["check_again", "follows_others", "of_the_run"]

_ENDS = ("deadlock", "out-of-bounds", "capacity", "type", "livelock", "program")


def of_the_run(finding: Finding) -> bool:
    """Whether a finding rests on values or errors of the run, which its trace does not hold."""
    if finding.kind == "alignment":
        return finding.subtype is None
    if finding.kind == "uninitialised":
        return finding.subtype != "zero-filled window"
    return finding.kind in ("mismatch", *_ENDS)


def follows_others(trace: Trace) -> bool:
    """Whether the run was a later call on windows that a worker keeps: what earlier ones left is not in its trace."""
    return trace.kept and any(lane.call for lane in trace.lanes)


def check_again(trace: Trace, result: RunResult) -> RunResult:
    """The result with the findings and the verdict that the checks give now, in the order in which runs tell them.

    Findings that the run had, too, keep their witness and the reason for which they were accepted. Of a run that
    `follows_others` they stay as they are.
    """
    if follows_others(trace):
        return result
    again = _findings(trace, result)
    had = [finding.model_copy(update={"suppressed": None, "witness": None}) for finding in result.findings]
    kept = [
        finding
        for finding, bare in zip(result.findings, had, strict=True)
        if of_the_run(finding) or bare in again
    ]
    new = [finding for finding in again if finding not in had]
    findings = by_severity([*kept, *new]) if new else kept
    return result.model_copy(update={"findings": findings, "verdict": verdict_on(trace, findings)})


def _findings(trace: Trace, result: RunResult) -> list[Finding]:
    found = order_findings(trace, HistoryState() if trace.kept else None)
    over = all(lane.end != UNKNOWN for lane in trace.lanes)
    if over and not any(f.severity == "error" and (f.kind in _ENDS) for f in result.findings):
        found += performance_notes(trace)
    return by_severity(found)
