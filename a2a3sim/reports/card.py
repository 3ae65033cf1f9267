"""The cost card: what each algorithm moved and had to move, how long it took, and what bound it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from a2a3sim.reports.heading import header
from a2a3sim.reports.style import GROUP_COLOURS
from a2a3sim.result import RunResult
from a2a3sim.trace.critical_path import summary
from a2a3sim.units import format_size, format_time

__all__ = ["ClosedForm", "cost_card", "critical_path_bars", "typical"]

_COLUMNS = 3  # algorithms side by side on a terminal of 80 columns
_EXACT = "  its value"  # the row below the closed form
_BAR = 60  # characters of a full bar
_SAID = 4  # groups named below a bar
_FILLS = "█▓▒░"  # neighbours differ without colour, too


class ClosedForm(NamedTuple):
    """Bytes one rank must move: the formula as people write it, and its value."""

    formula: str
    nbytes: int


def typical(runs: Sequence[RunResult]) -> RunResult:
    """The run with the median time (the faster of the two in the middle)."""
    ordered = sorted(runs, key=lambda run: (run.kernel_ps, run.seed))
    return ordered[(len(ordered) - 1) // 2]


def cost_card(
    results: Sequence[RunResult | Sequence[RunResult]],
    closed_forms: Mapping[str, ClosedForm | tuple[str, int]] | None = None,
    title: str = "",
) -> Group:
    """A rich renderable over the algorithms compared; the first is what the others are measured against.

    Args:
        results: one run per algorithm, or one sequence of runs (over seeds) per algorithm.
        closed_forms: by algorithm, the remote bytes of one rank as formula and value.
        title: what was computed, for the first line.
    """
    groups = [[entry] if isinstance(entry, RunResult) else list(entry) for entry in results]
    if not groups or not all(groups):
        raise ValueError(f"results must hold at least one run per algorithm, got {results!r}")
    forms = {name: ClosedForm(*form) for name, form in (closed_forms or {}).items()}
    first = groups[0][0]
    parts: list = [Text(title, style="bold")] if title else []
    parts.append(Text(header(first, len(groups[0])), style="dim"))
    for k in range(0, len(groups), _COLUMNS):
        parts.append(_table(groups[k : k + _COLUMNS], groups[0], forms))
    parts.append(Text("what the critical path was spent on", style="bold"))
    parts.append(critical_path_bars([(_name(group[0]), typical(group)) for group in groups]))
    return Group(*parts)


def _name(result: RunResult) -> str:
    return result.algorithm or result.program


def _table(groups, baseline, forms) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", style="dim", no_wrap=True)
    for group in groups:
        table.add_column(_name(group[0]), justify="right", no_wrap=True)
    columns = [_column(group, baseline, forms.get(group[0].algorithm or "")) for group in groups]
    for row in columns[0]:
        cells = [column[row] for column in columns]
        if any(cell.plain != "" for cell in cells):
            table.add_row(row, *cells)
    return table


def _column(group: list[RunResult], baseline: list[RunResult], form: ClosedForm | None) -> dict[str, Text]:
    run, base = typical(group), typical(baseline)
    measured = [use.remote_bytes for use in run.per_rank]
    low, high = min(measured, default=0), max(measured, default=0)
    payload = run.bytes_per_rank
    share = run.percent_of_bound
    cells = {
        "payload N": "" if payload is None else format_size(payload),
        "remote bytes per rank": format_size(high)
        if format_size(low) == format_size(high)
        else f"{format_size(low)} to {format_size(high)}",
        "closed form": "" if form is None else form.formula,
        _EXACT: "" if form is None else _verdict(low, high, form.nbytes),
        "bytes saved": "" if group is baseline else _saved(high, base.max_remote_bytes),
        "rounds": str(run.rounds),
        "barriers": str(run.barriers),
        "time": format_time(run.kernel_ps),
        "over seeds": _spread(group),
        "bound": "" if run.bound_ps is None else format_time(run.bound_ps),
        "% of bound": "" if share is None else f"{share:.1f} %",
        "speed-up": "" if group is baseline else f"{_ratio(baseline, group):.2f}×",
        "waiting": f"{_waiting(run):.0f} %",
        "numerics": _numerics(group),
        "findings": _findings(group),
    }
    styles = {"time": "bold", "remote bytes per rank": "bold"}
    bad = {"numerics": "wrong", _EXACT: "≠", "findings": "error"}
    return {
        row: Text(text, style="bold red" if row in bad and bad[row] in text else styles.get(row, ""))
        for row, text in cells.items()
    }


def _verdict(low: int, high: int, expected: int) -> str:
    """The closed form's value is that of the rank that must move most; others may have smaller chunks."""
    if high != expected:
        return f"≠ {expected} B"
    return f"{expected} B, exact" if low == high else f"{expected} B, exact (least {low} B)"


def _saved(mine: int, theirs: int) -> str:
    if not theirs:
        return ""
    saved = 100 * (1 - mine / theirs)
    return f"{saved:.0f} %" if saved >= 0 else f"{-saved:.0f} % more"


def _ratio(baseline: list[RunResult], group: list[RunResult]) -> float:
    mine = median(run.kernel_ps for run in group)
    return median(run.kernel_ps for run in baseline) / mine if mine else float("inf")


def _spread(group: list[RunResult]) -> str:
    if len(group) == 1:
        return ""
    times = [run.kernel_ps for run in group]
    return f"{format_time(min(times))} to {format_time(max(times))}"


def _waiting(run: RunResult) -> float:
    possible = run.kernel_ps * max(run.cores, 1) * max(len(run.per_rank), 1)
    return 100 * sum(use.wait_ps for use in run.per_rank) / possible if possible else 0.0


def _numerics(group: list[RunResult]) -> str:
    known = [run.numerics for run in group if run.numerics is not None]
    if not known:
        return ""
    wrong = max(numerics.wrong for numerics in known)
    return "right" if all(numerics.ok for numerics in known) else f"{wrong} wrong"


def _findings(group: list[RunResult]) -> str:
    """The most findings of each severity that any of the runs had."""
    most = {"error": 0, "warning": 0, "note": 0}
    for run in group:
        for severity, before in most.items():
            count = sum(finding.severity == severity for finding in run.findings)
            most[severity] = max(before, count)
    said = [f"{n} {severity}{'s' if n > 1 else ''}" for severity, n in most.items() if n]
    return ", ".join(said) or "none"


def critical_path_bars(runs: Sequence[tuple[str, RunResult]]) -> Table:
    """One bar per run, divided by what its critical path was spent on, with the percentages below it."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(min_width=_BAR)
    for name, run in runs:
        shares = summary(run.critical_path)
        bar, drawn, total = Text(), 0, 0.0
        for k, (group, share) in enumerate(shares.items()):
            total += share
            until = round(total * _BAR / 100)
            bar.append(_FILLS[k % len(_FILLS)] * (until - drawn), style=GROUP_COLOURS[group])
            drawn = until
        said = [f"{group} {share:.0f} %" for group, share in list(shares.items())[:_SAID]]
        text = Text("  ".join(said))
        if said:
            text.stylize("bold", 0, len(said[0]))
        table.add_row(name, bar)
        table.add_row("", text)
    return table
