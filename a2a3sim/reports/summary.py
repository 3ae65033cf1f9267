"""One run in a line or two: what a script's user sees after each call of a compiled program."""

from __future__ import annotations

from collections.abc import Iterator

from a2a3sim.reports.findings import finding_lines, verdict_lines
from a2a3sim.reports.table import links_line
from a2a3sim.result import RunResult
from a2a3sim.trace.critical_path import summary
from a2a3sim.units import format_size, format_time

__all__ = ["summary_lines"]


def summary_lines(run: RunResult) -> Iterator[str]:
    """Program, machine, time and why, traffic, verdicts; then the findings."""
    cores = f" × {run.cores} cores" if run.cores > 1 else ""
    yield (
        f"{run.program}: {run.ranks} ranks{cores} on {run.platform} ({run.platform_hash}), seed {run.seed}, "
        f"skew {format_time(run.skew_ps)}, fences {run.fences}"
    )
    spent = [f"{name} {share:.0f} %" for name, share in list(summary(run).items())[:4] if share >= 1]
    why = f" ({', '.join(spent)})" if spent else ""
    parts = [
        f"kernel {format_time(run.kernel_ps)}{why}",
        f"remote {format_size(run.max_remote_bytes)} per rank",
    ]
    if run.percent_of_bound is not None:
        parts.append(f"{run.percent_of_bound:.0f} % of bound")
    if run.links:
        parts.append(links_line(run))
    if run.numerics is not None:
        what = run.numerics.explanation
        if any(f.kind == "mismatch" for f in run.findings):
            what = what.partition("; ")[0]  # the finding says why
        parts.append("numerics right" if run.numerics.ok else f"numerics WRONG: {what}")
    open_ones = [f for f in run.findings if f.suppressed is None]
    counts = {s: sum(f.severity == s for f in open_ones) for s in ("error", "warning", "note")}
    counts["accepted"] = len(run.findings) - len(open_ones)
    found = ", ".join(f"{n} {s}{'s' if n > 1 and s != 'accepted' else ''}" for s, n in counts.items() if n)
    parts.append(f"findings: {found or 'none'}")
    yield "  " + "; ".join(parts)
    for line in (*verdict_lines(run.verdict), *finding_lines(run.findings)):
        yield "  " + line
