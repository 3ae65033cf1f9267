"""From the rows of a sweep to what a picture shows: seeds folded, and one picture for each of what else varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from a2a3sim import ConfigError
from a2a3sim.experiments.sweep_rows import OVERRIDES, PARAMETERS
from a2a3sim.experiments.sweep_summary import groups_of, varied
from a2a3sim.units import format_size, format_time, nearest, parse_size

__all__ = ["Entry", "entries_of", "facets", "heading", "select"]


@dataclass(frozen=True)
class Entry:
    """One point over its seeds: median, least and most time in ps, and the row with about the median."""

    row: dict[str, Any]
    mid: float
    low: int
    high: int


def entries_of(rows: Sequence[dict[str, Any]]) -> list[Entry]:
    """Rows with seeds folded."""
    names = [name for name in rows[0] if name in PARAMETERS or name.startswith(OVERRIDES)]
    entries = []
    for group in groups_of(rows, [name for name in names if name != "seed"]).values():
        times = sorted(row["kernel_ps"] for row in group)
        middle = times[(len(times) - 1) // 2]
        row = next(row for row in group if row["kernel_ps"] == middle)
        entries.append(Entry(row, median(times), times[0], times[-1]))
    return entries


def select(rows: Sequence[dict[str, Any]], where: dict[str, str]) -> list[dict[str, Any]]:
    """The rows whose columns have these values (several with commas), in their own units.

    Raises:
        ConfigError: an unknown column or value, with the nearest valid one.
    """
    for name, text in where.items():
        column = next((c for c in (name, OVERRIDES + name) if c in rows[0]), None)
        if column is None:
            raise ConfigError(f"--where: there is no column {name!r}{nearest(name, rows[0])}")
        known = {_written(column, row[column]): row[column] for row in rows}
        wanted = []
        for value in (part.strip() for part in text.split(",")):
            if column == "bytes_per_rank":
                found = parse_size(value)
                if found not in known.values():
                    raise ConfigError(f"--where {name}: must be one of {', '.join(known)}, got {value!r}")
                wanted.append(found)
            elif value in known:
                wanted.append(known[value])
            else:
                some = ", ".join(list(known)[:12])
                raise ConfigError(
                    f"--where {name}: must be one of {some}, got {value!r}{nearest(value, known)}"
                )
        rows = [row for row in rows if row[column] in wanted]
    if not rows:
        raise ConfigError("--where leaves no rows")
    return list(rows)


def _written(name: str, value: Any) -> str:
    if name == "bytes_per_rank" and value is not None:
        return format_size(value, exact=True).replace(" ", "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def facets(
    rows: Sequence[dict[str, Any]], axes: Sequence[str]
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The rows apart for every combination of what varies beside the axes of a picture, the algorithm and the seed."""
    names = [name for name in varied(rows) if name not in (*axes, "algorithm", "seed")]
    return [(dict(zip(names, key, strict=True)), group) for key, group in groups_of(rows, names).items()]


def heading(rows: Sequence[dict[str, Any]]) -> str:
    """The machine and the premises, as far as they are the same for all rows."""
    first, moving = rows[0], varied(rows)
    parts = [f"a2a3sim {first['version']}"] if first.get("version") else []
    if "platform" not in moving:
        same = len({row["platform_hash"] for row in rows}) == 1
        parts.append(f"platform {first['platform']}" + (f" ({first['platform_hash']})" if same else ""))
    for name, text in (
        ("ranks", "{} ranks"), ("cores", "{} cores"), ("dtype", "{}"), ("fences", "fences {}"), ("seed", "seed {}"),
    ):  # fmt: skip
        if name not in moving:
            parts.append("1 core" if (name, first[name]) == ("cores", 1) else text.format(first[name]))
    if "seed" in moving:
        parts.append(f"{len({row['seed'] for row in rows})} seeds")
    if "skew_ps" not in moving:
        parts.append(f"skew {format_time(first['skew_ps'])}")
    if first.get("timing_only"):
        parts.append("timing only")
    parts += [
        f"{n.removeprefix(OVERRIDES)}={first[n]}"
        for n in first
        if n.startswith(OVERRIDES) and n not in moving
    ]
    return " · ".join(parts)
