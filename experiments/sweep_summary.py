"""What a sweep found, for the terminal: time over seeds, distance to the bound, and what bound it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, Literal

from rich.table import Table

from a2a3sim.experiments.sweep_rows import OVERRIDES, PARAMETERS
from a2a3sim.trace import GROUPS
from a2a3sim.units import format_size, format_time

__all__ = ["groups_of", "summary_table", "varied"]

_MOST = 30  # groups shown
_SAID = 2  # causes named


def varied(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The parameters that take several values, in the order of the columns."""
    names = [name for name in rows[0] if name in PARAMETERS or name.startswith(OVERRIDES)]
    return [name for name in names if len({row[name] for row in rows}) > 1]


def groups_of(rows: Iterable[dict[str, Any]], names: Sequence[str]) -> dict[tuple, list[dict[str, Any]]]:
    """Rows by the values of some columns, in order of appearance."""
    found: dict[tuple, list] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def summary_table(rows: Sequence[dict[str, Any]]) -> tuple[Table, int]:
    """A rich table with one line per point (seeds together), and how many groups it leaves out."""
    names = [name for name in varied(rows) if name != "seed"] or ["algorithm"]
    seeds = len({row["seed"] for row in rows})
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        side: Literal["left", "right"] = "left" if isinstance(rows[0][name], str) else "right"
        wide = max(len(_shown(name, row[name])) for row in rows)
        table.add_column(_title(name), no_wrap=True, justify=side, min_width=wide)
    table.add_column("time" if seeds == 1 else f"median of {seeds} seeds", justify="right", no_wrap=True)
    if seeds > 1:
        table.add_column("range", justify="right", no_wrap=True)
    table.add_column("of bound", justify="right", no_wrap=True)
    table.add_column("links", justify="right", no_wrap=True)
    table.add_column("what bound it", no_wrap=True)
    groups = groups_of(rows, names)
    for key, group in list(groups.items())[:_MOST]:
        times = sorted(row["kernel_ps"] for row in group)
        typical = min(group, key=lambda row: abs(row["kernel_ps"] - times[(len(times) - 1) // 2]))
        share, use = typical["percent_of_bound"], typical["links.utilisation.max"]
        cells = [_shown(name, value) for name, value in zip(names, key, strict=True)]
        cells.append(format_time(round(median(times))))
        if seeds > 1:
            cells.append(_range(times))
        cells += [
            "" if share is None else f"{share:.1f} %",
            "" if use is None else f"{100 * use:.0f} %",
            _causes(typical),
        ]
        table.add_row(*cells)
    return table, max(0, len(groups) - _MOST)


def _range(times: Sequence[int]) -> str:
    low, high = format_time(times[0]), format_time(times[-1])
    return f"{low.split()[0]} to {high}" if low.split()[1] == high.split()[1] else f"{low} to {high}"


def _causes(row: dict[str, Any]) -> str:
    shares = {group: row[f"critical_path.{group.replace(' ', '_')}_percent"] for group in GROUPS}
    named = sorted((g for g in shares if shares[g]), key=lambda g: -shares[g])[:_SAID]
    return ", ".join(f"{group} {shares[group]:.0f} %" for group in named)


def _title(name: str) -> str:
    return {"bytes_per_rank": "size"}.get(name, name.removeprefix(OVERRIDES))


def _shown(name: str, value: Any) -> str:
    if name == "bytes_per_rank":
        return format_size(value)
    return format_time(value) if name.endswith("_ps") else str(value)
