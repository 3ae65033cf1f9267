"""Findings of one run, in the order in which people should read them."""

from __future__ import annotations

from typing import Any

from a2a3sim.checks.faults import failure_findings, noted_findings, performance_notes, unwritten_outputs
from a2a3sim.checks.happens_before import HistoryState, OrderFinding, check
from a2a3sim.checks.sites import site_of
from a2a3sim.errors import A2A3Error, DeadlockError
from a2a3sim.result import Finding
from a2a3sim.run.call_arguments import CallArguments
from a2a3sim.run.launch import Launch
from a2a3sim.run.settings import Settings

__all__ = ["as_result", "check_run"]

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
    # Between calls on windows that are kept as they are nothing joins the devices.
    kept = residence.persistent and not residence.reset
    if kept and residence.history is None:
        residence.history = HistoryState()
    align = settings.platform.align
    found += [
        as_result(f)
        for f in check(
            launch.trace,
            residence.history,
            kept,
            set_writes_line=align.line is not None,
            joined=not kept,
            granule=align.row,
        )
    ]
    raced = [f.where["memory"] for f in found if f.kind == "race"]
    found += noted_findings(launch.notes.values(), raced)
    if error is None:
        if arguments is not None:
            found += unwritten_outputs(launch, arguments, golden is not None)
        found += performance_notes(launch.trace)
    return sorted(found, key=lambda f: _ORDER[f.severity])


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
