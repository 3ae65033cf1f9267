"""What the pictures of a sweep share: the frame around panels, ticks, and the legend of algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from math import log10, sqrt
from pathlib import Path

from a2a3sim.reports import (
    algorithm_colour,
    algorithm_marker,
    drawing,
    iec_ticks,
    rank_ticks,
    save,
    time_unit,
)

__all__ = [
    "PlotFrame",
    "algorithm_handles",
    "frame",
    "log_ticks",
    "marker",
    "ranks_axis",
    "sizes_axis",
    "spread",
    "time_axis",
]

_LEFT, _RIGHT, _TOP, _BOTTOM = 0.75, 0.25, 0.78, 0.55  # inches
_GAP_X, _GAP_Y = 0.75, 0.85
_LEGEND_ROW = 0.2


class PlotFrame:
    """A grid of panels under a title, with room for a legend at the bottom."""

    def __init__(self, figure, rows, columns, panel, legend_rows, right) -> None:
        self.figure = figure
        self.width, self.height = figure.get_size_inches()
        self.rows, self.columns = rows, columns
        self.panel = panel
        self.bottom = _BOTTOM + legend_rows * _LEGEND_ROW
        self.right = right

    def axes(self, row: int, column: int):
        """The panel in a row (from the top) and column."""
        wide, tall = self.panel
        left = _LEFT + column * (wide + _GAP_X)
        low = self.bottom + (self.rows - 1 - row) * (tall + _GAP_Y)
        return self.figure.add_axes(
            (left / self.width, low / self.height, wide / self.width, tall / self.height)
        )

    def side(self):
        """A narrow panel at the right, for a colour scale."""
        tall = self.height - self.bottom - _TOP
        return self.figure.add_axes(
            (
                1 - (self.right - 0.15) / self.width,
                self.bottom / self.height,
                0.13 / self.width,
                tall / self.height,
            )
        )

    def legend(self, handles) -> None:
        """The legend below the panels."""
        self.figure.legend(
            handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.04 / self.height),
            ncol=_columns(len(handles), self.width), handlelength=2.2, columnspacing=1.6,
        )  # fmt: skip


def _columns(handles: int, width: float) -> int:
    most = max(1, int(width / 1.45))
    rows = -(-handles // most)
    return -(-handles // rows)


@contextmanager
def frame(
    path: Path, title: str, head: str, rows: int, columns: int, panel, handles: int = 0, right: float = _RIGHT
):
    """Draw into a `PlotFrame`; the file is written when the block ends.

    Args:
        panel: (width, height) of one panel in inches.
        handles: entries of the legend.
        right: inches right of the panels.
    """
    wide, tall = panel
    width = _LEFT + columns * wide + (columns - 1) * _GAP_X + right
    width = max(width, 0.24 + 0.052 * len(head), 0.24 + 0.085 * len(title))
    panel = ((width - _LEFT - right - (columns - 1) * _GAP_X) / columns, tall)  # a long header makes room
    legend_rows = -(-handles // _columns(handles, width)) if handles else 0
    height = _TOP + rows * tall + (rows - 1) * _GAP_Y + _BOTTOM + legend_rows * _LEGEND_ROW
    with drawing(width, height) as figure:
        figure.text(0.12 / width, 1 - 0.2 / height, title, fontsize=11, weight="bold", va="center")
        figure.text(0.12 / width, 1 - 0.4 / height, head, fontsize=7, color="#555555", va="center")
        yield PlotFrame(figure, rows, columns, panel, legend_rows, right)
        save(figure, path)


def marker(name: str, size: float) -> dict:
    """An algorithm's marker; those of thin shape are a little larger."""
    shape = algorithm_marker(name)
    if shape in "*PX":
        return {"marker": shape, "ms": size * 1.45, "mew": 0.4, "mec": "white"}
    return {"marker": shape, "ms": size, "mew": 0.6, "mec": "white"}


def algorithm_handles(names: Sequence[str], line: bool = True) -> list:
    """Legend entries of algorithms, one colour and marker each everywhere."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=algorithm_colour(name), label=name, lw=1.4 if line else 0, **marker(name, 5))
        for name in names
    ]


def spread(values: Sequence, most: int) -> list:
    """At most so many of some sorted values, evenly spread, both ends included."""
    values = list(values)
    if len(values) <= most:
        return values
    return [values[round(k * (len(values) - 1) / (most - 1))] for k in range(most)]


def log_ticks(axis, low: float, high: float, most: int = 7) -> None:
    """Ticks of a logarithmic axis at 1, 2 and 5 times powers of ten, written as plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    decades = range(int(log10(low)) - 2, int(log10(high)) + 2)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [f * 10.0**d for d in decades for f in factors if low <= f * 10.0**d <= high]
        if len(ticks) <= most:
            break
    axis.set_major_locator(FixedLocator(spread(ticks, most)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def time_axis(axes, low_ps: float, high_ps: float) -> int:
    """Make y a logarithmic axis of time between two times; the ps of its unit."""
    factor, unit = time_unit(int(2 * sqrt(low_ps * high_ps)))  # that of the middle
    low, high = low_ps / factor / 1.25, high_ps / factor * 1.25
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    log_ticks(axes.yaxis, low, high)
    axes.set_ylabel(f"time ({unit})")
    return factor


def sizes_axis(axes, sizes: Sequence[int], margin: float = 0.35) -> None:
    """Make x a base-2 logarithmic axis of sizes, with ticks at some of those measured; margin in octaves."""
    from matplotlib.ticker import FixedLocator

    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes) / 2**margin, max(sizes) * 2**margin)
    iec_ticks(axes.xaxis)
    measured = sorted(set(sizes))
    axes.xaxis.set_major_locator(FixedLocator(measured[:: -(-len(measured) // 6)]))
    axes.set_xlabel("size per rank N")


def ranks_axis(axes, ranks: Sequence[int], margin: float = 0.2) -> None:
    """Make x a base-2 logarithmic axis of ranks; margin in octaves."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(ranks) / 2**margin, max(ranks) * 2**margin)
    shown = sorted(set(ranks))
    if len(shown) > 8:
        shown = [r for r in shown if r & (r - 1) == 0] or spread(shown, 8)
    rank_ticks(axes.xaxis, shown)
    axes.set_xlabel("ranks P")
