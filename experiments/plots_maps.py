"""Pictures of a sweep with cells: the best algorithm over ranks and size, time over two machine parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from a2a3sim import ConfigError
from a2a3sim.experiments.plots_axes import algorithm_handles, frame, log_ticks
from a2a3sim.experiments.plots_data import Entry
from a2a3sim.experiments.sweep_rows import OVERRIDES
from a2a3sim.reports import algorithm_colour, algorithm_marker, short_size, time_unit
from a2a3sim.units import format_rate, format_size, format_time, parse_rate, parse_size, parse_time

__all__ = ["draw_crossover", "draw_heatmap"]

_CELL = (0.62, 0.36)  # inches
_MOST_NUMBERS = 160  # cells; with more, they are too small to write into


def _table(entries: Sequence[Entry], x: str, y: str) -> tuple[list, list, dict[tuple, list[Entry]]]:
    """Values of two columns in order of appearance in the sweep (which counts up), and the entries of each cell."""
    cells: dict[tuple, list[Entry]] = {}
    for entry in entries:
        cells.setdefault((entry.row[x], entry.row[y]), []).append(entry)
    across = list(dict.fromkeys(entry.row[x] for entry in entries))
    up = list(dict.fromkeys(entry.row[y] for entry in entries))
    return across, up, cells


def _extent(columns: int, rows: int) -> tuple[float, float]:
    wide = min(max(columns * _CELL[0], 1.8), 9.0)
    return wide, min(max(rows * _CELL[1], 1.2), 6.0)


def _label(axes, across: Sequence, up: Sequence, x: str, y: str) -> None:
    def shown(values, name):
        return [short_size(v) + "B" if name == "bytes_per_rank" else _tidy(v) for v in values]

    names = {"bytes_per_rank": "size per rank N", "ranks": "ranks P"}
    for values, name, ticks, label in (
        (across, x, axes.set_xticks, axes.set_xlabel),
        (up, y, axes.set_yticks, axes.set_ylabel),
    ):
        step = max(1, -(-len(values) // 16))
        ticks(range(0, len(values), step), shown(values[::step], name))
        label(names.get(name, name.removeprefix(OVERRIDES)))
    axes.tick_params(length=0)
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(-0.5, len(up) - 0.5)
    for side in axes.spines.values():
        side.set_visible(False)


def _tidy(value) -> str:
    """A value of a parameter in the unit that reads best."""
    for parse, form in ((parse_time, format_time), (parse_rate, format_rate), (parse_size, format_size)):
        try:
            return form(parse(value)) if isinstance(value, str) else str(value)
        except ConfigError:
            continue
    return str(value)


def draw_crossover(entries: Sequence[Entry], path: Path, title: str, head: str) -> Path:
    """The fastest algorithm by ranks and size, and by how much it beats the next one."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    across, up, cells = _table(entries, "bytes_per_rank", "ranks")
    across, up = sorted(across), sorted(up)
    handles_of: dict[str, Any] = {}
    numbers = len(across) * len(up) <= _MOST_NUMBERS
    panel = _extent(len(across), len(up))
    count = len({min(group, key=lambda e: e.mid).row["algorithm"] for group in cells.values()})
    with frame(path, title, head, 1, 1, panel, count) as picture:
        axes = picture.axes(0, 0)
        for (size, ranks), group in cells.items():
            ordered = sorted(group, key=lambda entry: entry.mid)
            best = ordered[0].row["algorithm"]
            column, row = across.index(size), up.index(ranks)
            colour = algorithm_colour(best)
            handles_of[best] = None
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fc=colour, ec="white", lw=1))
            ink = "white" if _dark(to_rgb(colour)) else "black"
            with_text = numbers and len(ordered) > 1
            axes.plot(
                column,
                row + (0.2 if with_text else 0),
                marker=algorithm_marker(best),
                color=ink,
                ms=4,
                mew=0,
                ls="none",
            )
            if with_text:
                text = f"{ordered[1].mid / ordered[0].mid:.2f}×"
                axes.text(column, row - 0.22, text, ha="center", va="center", fontsize=6.5, color=ink)
        _label(axes, across, up, "bytes_per_rank", "ranks")
        said = "; in the cell, its speed-up over the next best" if numbers else ""
        axes.set_title(f"fastest algorithm{said}", loc="left")
        picture.legend(algorithm_handles(list(handles_of), line=False))
    return path


def _dark(rgb) -> bool:
    red, green, blue = rgb
    return 0.3 * red + 0.59 * green + 0.11 * blue < 0.55


def draw_heatmap(entries: Sequence[Entry], path: Path, title: str, head: str, x: str, y: str) -> Path:
    """Time of up to three algorithms over two machine parameters; with several, also the first over the second."""
    across, up, cells = _table(entries, x, y)
    names = list(dict.fromkeys(entry.row["algorithm"] for entry in entries))
    shown = names[:3]
    panels = len(shown) + (len(names) > 1)
    panel = _extent(len(across), len(up))
    factor, unit = time_unit(int(max(entry.mid for entry in entries) / 2))
    times = {
        name: [[_time(cells.get((a, b), ()), name, factor) for a in across] for b in up] for name in names
    }
    with frame(path, title, head, 1, panels, panel, right=0.85) as picture:
        image = None
        every = [value for name in shown for line in times[name] for value in line if value is not None]
        for k, name in enumerate(shown):
            axes = picture.axes(0, k)
            image = _draw_times(axes, times[name], min(every), max(every))
            _label(axes, across, up, x, y)
            axes.set_title(f"{name}: time ({unit})", loc="left")
            axes.annotate(
                "■", (0, 1), (-9, 5.5), xycoords="axes fraction", textcoords="offset points",
                color=algorithm_colour(name), fontsize=9,
            )  # fmt: skip
        if len(names) > 1:
            axes = picture.axes(0, len(shown))
            _draw_ratio(axes, times[names[0]], times[names[1]])
            _label(axes, across, up, x, y)
            axes.set_title(f"{names[0]} ÷ {names[1]}", loc="left")
        if image is not None:
            _draw_scale(picture, image, unit, min(every), max(every))
    return path


def _time(group: Sequence[Entry], name: str, factor: int) -> float | None:
    return next((entry.mid / factor for entry in group if entry.row["algorithm"] == name), None)


def _numbers(values):
    import numpy as np

    return np.ma.masked_invalid([[float("nan") if v is None else v for v in line] for line in values])


def _write(axes, image, cells, form) -> None:
    import numpy as np

    if cells.size > _MOST_NUMBERS:
        return
    for (row, column), value in np.ndenumerate(cells.filled(np.nan)):
        if np.isnan(value):
            continue
        ink = "white" if _dark(image.cmap(image.norm(value))[:3]) else "black"
        axes.text(column, row, form(value), ha="center", va="center", fontsize=6.5, color=ink)


def _draw_times(axes, values, low: float, high: float):
    from matplotlib.colors import LogNorm

    cells = _numbers(values)
    image = axes.imshow(
        cells,
        cmap="cividis_r",
        norm=LogNorm(low, max(high, low * 1.01)),
        aspect="auto",
        interpolation="nearest",
        origin="lower",
    )
    _write(axes, image, cells, lambda value: f"{value:.3g}" if value < 1000 else f"{value:.0f}")
    return image


def _draw_ratio(axes, first, second) -> None:
    from matplotlib.colors import LogNorm

    cells = _numbers(first) / _numbers(second)
    most = max(float(cells.max()), 1 / float(cells.min()), 1.05)
    image = axes.imshow(
        cells,
        cmap="PuOr",
        norm=LogNorm(1 / most, most),
        aspect="auto",
        interpolation="nearest",
        origin="lower",
    )
    _write(axes, image, cells, lambda value: f"{value:.2f}")


def _draw_scale(picture, image, unit: str, low: float, high: float) -> None:
    axes = picture.side()
    bar = picture.figure.colorbar(image, cax=axes)
    log_ticks(bar.ax.yaxis, low, high)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2, labelsize=7)
    bar.set_label(f"time ({unit})")
