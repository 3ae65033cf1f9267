"""The pictures of a finished sweep: which ones its axes allow, and one file for each of what else varies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from a2a3sim import ConfigError
from a2a3sim.experiments import plots_lines, plots_maps
from a2a3sim.experiments.conventions import title_of
from a2a3sim.experiments.plots_data import entries_of, facets, heading
from a2a3sim.experiments.sweep_rows import OVERRIDES
from a2a3sim.experiments.sweep_summary import varied
from a2a3sim.units import format_size, format_time

__all__ = ["KINDS", "draw_sweep"]

#: Pictures, and the columns that must vary for each.
KINDS = {
    "time": ("bytes_per_rank",),
    "crossover": ("ranks", "bytes_per_rank", "algorithm"),
    "scaling": ("ranks",),
    "bytes": (),
    "heatmap": (),
}

_AXES = {
    "time": ("ranks", "bytes_per_rank"),
    "crossover": ("ranks", "bytes_per_rank"),
    "scaling": ("ranks", "bytes_per_rank"),
    "bytes": ("ranks", "bytes_per_rank"),
}
_MOST_FILES = 8  # of one kind

_TITLES = {
    "time": "{} by size",
    "crossover": "{}: which algorithm is fastest",
    "scaling": "{} over ranks",
    "bytes": "{}: remote bytes against the closed forms",
    "heatmap": "{} over {} and {}",
}


def draw_sweep(
    rows: Sequence[dict[str, Any]],
    folder: Path,
    stem: str,
    kinds: Sequence[str] = (),
    suffix: str = ".png",
    say: Callable[[str], None] = lambda text: None,
) -> list[Path]:
    """Write the pictures of some rows, ``STEM_KIND.png`` each.

    Args:
        kinds: which; none means all that the axes of the sweep allow.

    Raises:
        ConfigError: a kind that the rows cannot show, or too many pictures of one kind.
    """
    moving = varied(rows)
    parameters = [name for name in moving if name.startswith(OVERRIDES)]
    paths: list[Path] = []
    for kind in kinds or KINDS:
        problem = _problem(kind, moving, parameters)
        if problem is None:
            axes = _AXES.get(kind) or tuple(parameters[:2])
            parts = facets(rows, axes)
            if len(parts) > _MOST_FILES:
                others = [name for name in parts[0][0]]
                problem = f"{len(parts)} combinations of {', '.join(others)}: choose some with --where"
            else:
                paths += [_draw(kind, part, at, folder, stem, suffix, parameters) for at, part in parts]
        if problem is not None:
            if kinds:
                raise ConfigError(f"cannot draw {kind}: {problem}")
            if len(_AXES.get(kind, parameters)) == 2 and "combinations" in problem:
                say(f"left out {kind}: {problem}")
    if not paths:
        raise ConfigError("nothing to draw: neither size, ranks nor two machine parameters vary")
    return paths


def _problem(kind: str, moving: Sequence[str], parameters: Sequence[str]) -> str | None:
    if kind == "heatmap":
        return None if len(parameters) >= 2 else "two machine parameters must vary (--set of the sweep)"
    if kind == "bytes":
        return None if {"ranks", "bytes_per_rank"} & set(moving) else "ranks or size must vary"
    missing = [name for name in KINDS[kind] if name not in moving]
    return f"{' and '.join(missing)} must vary" if missing else None


def _draw(
    kind, rows, at: dict[str, Any], folder: Path, stem: str, suffix: str, parameters: Sequence[str]
) -> Path:
    entries = entries_of(rows)
    collective = rows[0].get("collective") or "allreduce"
    name = title_of(collective)
    words = [p.removeprefix(OVERRIDES) for p in parameters[:2]]
    title = _TITLES[kind].format(name, *words)
    if kind == "heatmap":
        title += f", {format_size(rows[0]['bytes_per_rank'])} on {rows[0]['ranks']} ranks"
    told = {"collective", "ranks", "bytes_per_rank"} if kind == "heatmap" else {"collective"}
    said = [
        f"{key.removeprefix(OVERRIDES)} {_value(key, value)}" for key, value in at.items() if key not in told
    ]
    if said:
        title += f" ({', '.join(said)})"
    tag = "".join(f"_{_slug(_value(key, value))}" for key, value in at.items())
    path = folder / f"{stem}_{kind}{tag}{suffix}"
    head = heading(rows)
    if kind == "heatmap":
        return plots_maps.draw_heatmap(entries, path, title, head, *parameters[:2])
    draw = {
        "time": plots_lines.draw_time,
        "scaling": plots_lines.draw_scaling,
        "bytes": plots_lines.draw_bytes,
        "crossover": plots_maps.draw_crossover,
    }[kind]
    return draw(entries, path, title, head)


def _value(key: str, value: Any) -> str:
    if key == "bytes_per_rank":
        return format_size(value)
    if key.endswith("_ps"):
        return format_time(value)
    return {"ranks": f"{value} ranks", "cores": f"{value} cores"}.get(key, str(value))


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() or c in ".-_" else "" for c in text)
