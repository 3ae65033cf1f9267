"""Findings of one run, in the order in which people should read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from a2a3sim.checks.faults import failure_findings, noted_findings, performance_notes, unwritten_outputs
from a2a3sim.checks.happens_before import HistoryState, OrderFinding, check
from a2a3sim.checks.sites import site_of
from a2a3sim.errors import A2A3Error, DeadlockError
from a2a3sim.result import Finding
from a2a3sim.run.call_arguments import CallArguments
from a2a3sim.run.launch import Launch
from a2a3sim.run.settings import Settings
from a2a3sim.trace.record import Trace

__all__ = ["as_result", "by_severity", "check_run", "order_findings"]

_ORDER = {"error": 0, "warning": 1, "note": 2}


def check_run(
    launch: Launch,
    settings: Settings,
    error: A2A3Error | None,
    arguments: CallArguments | None = None,
    golden: Any = None,
) -> list[Finding]:
    """Everything the checks say about a finished or failed run.

    Args:
        error: what ended the run early, if anything did; a deadlock has a finding of its own already.
        golden: what its outputs are compared with, or None.
    """
    found: list[Finding] = []
    if error is not None and not isinstance(error, DeadlockError):
        found += failure_findings([entry[2] for entry in launch.errors] or [error])
    if not settings.checks:
        return found
    residence = launch.residence
    if launch.trace.kept and residence.history is None:
        residence.history = HistoryState()
    found += order_findings(launch.trace, residence.history)
    raced = [f.where["memory"] for f in found if f.kind == "race"]
    found += noted_findings(launch.notes.values(), raced)
    if error is None:
        if arguments is not None:
            found += unwritten_outputs(launch, arguments, golden is not None)
        found += performance_notes(launch.trace)
    return by_severity(found)


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes, each as they come."""
    return sorted(findings, key=lambda f: _ORDER[f.severity])


def order_findings(trace: Trace, history: HistoryState | None) -> list[Finding]:
    """What follows from guaranteed happens-before alone.

    Args:
        history: signal cells as earlier calls on kept windows left them; updated.
    """
    found = check(
        trace,
        history,
        trace.kept,
        set_writes_line=trace.set_writes_line,
        joined=not trace.kept,
        granule=trace.granule,
    )
    return [as_result(f) for f in found]


def as_result(found: OrderFinding) -> Finding:
    """A finding of the happens-before checks as results hold it."""
    return Finding(
        kind=found.kind,
        subtype=found.subtype,
        severity=found.severity,
        ranks=list(found.ranks),
        sites=[site_of(op, op.start if op.start >= 0 else None) for op in found.operations],
        where=found.where,
        message=found.message,
        fix=found.fix,
    )
