"""Pictures of a sweep with lines: time and bus bandwidth by size, scaling over ranks, bytes per rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

from a2a3sim.experiments.conventions import busbw
from a2a3sim.experiments.plots_axes import (
    algorithm_handles,
    frame,
    log_ticks,
    marker,
    ranks_axis,
    sizes_axis,
    spread,
    time_axis,
)  # fmt: skip
from a2a3sim.experiments.plots_data import Entry
from a2a3sim.reports import algorithm_colour, iec_ticks, short_size
from a2a3sim.units import format_size

__all__ = ["draw_bytes", "draw_scaling", "draw_time"]

_MOST_RANKS = 4  # rows of panels by size
_MOST_SIZES = 4  # panels by ranks
_MOST_CROSSINGS = 3  # marked in a panel
_DEEPEST = 4  # markers around each other
_SIZE = 4.5  # of a marker, points
_SAME = 1.9  # by how much a marker is larger than the one it lies around
_DODGE = 0.075  # octaves between markers that would lie on each other
_BOUND: dict[str, Any] = {"lw": 1.0, "ls": (0, (4, 2)), "alpha": 0.9}


def _by_algorithm(entries: Sequence[Entry], x: str) -> Iterator[tuple[str, list[Entry]]]:
    for name in dict.fromkeys(entry.row["algorithm"] for entry in entries):
        own = [entry for entry in entries if entry.row["algorithm"] == name]
        yield name, sorted(own, key=lambda entry: entry.row[x])


def _legend(entries: Sequence[Entry], seeds: bool, bound: str = "bound") -> list:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = algorithm_handles(list(dict.fromkeys(entry.row["algorithm"] for entry in entries)))
    handles.append(Line2D([], [], color="#555555", label=bound, **_BOUND))
    if seeds:
        handles.append(Patch(facecolor="#BBBBBB", label="range over seeds"))
    return handles


def _grid(axes) -> None:
    axes.grid(color="#E4E4E4", lw=0.5)
    axes.set_axisbelow(True)


def _draw_curve(axes, name: str, at: Sequence, values: Sequence[float], drawn: list) -> None:
    """A line with markers; one that is the same as an earlier one is shown by markers around those."""
    colour = algorithm_colour(name)
    points = [*zip(at, (f"{value:.3g}" for value in values), strict=True)]
    depth = min(sum(all(point in other for point in points) for other in drawn), _DEEPEST)
    drawn.append(points)
    if depth == 0:
        axes.plot(at, values, color=colour, lw=1.4, clip_on=False, zorder=3, **marker(name, _SIZE))
    else:
        style = marker(name, _SIZE + _SAME * depth) | {"mec": colour, "mfc": "none", "mew": 1.1}
        axes.plot(at, values, ls="none", clip_on=False, zorder=3.5, **style)


def _draw_times(axes, entries: Sequence[Entry], x: str, factor: int) -> None:
    drawn: list = []
    for name, own in _by_algorithm(entries, x):
        colour = algorithm_colour(name)
        at = [entry.row[x] for entry in own]
        if any(entry.low != entry.high for entry in own):
            low, high = [e.low / factor for e in own], [e.high / factor for e in own]
            axes.fill_between(at, low, high, color=colour, alpha=0.2, lw=0)
        known = [(entry.row[x], entry.row["bound_ps"] / factor) for entry in own if entry.row["bound_ps"]]
        if known:
            axes.plot(*zip(*known, strict=True), color=colour, zorder=2, **_BOUND)
        _draw_curve(axes, name, at, [entry.mid / factor for entry in own], drawn)


def _reach(entries: Sequence[Entry]) -> tuple[float, float]:
    """Least and most time that a panel must show, bounds included."""
    bounds = [entry.row["bound_ps"] for entry in entries if entry.row["bound_ps"]]
    return max(1, min([e.low for e in entries] + bounds)), max([e.high for e in entries] + bounds)


def draw_time(entries: Sequence[Entry], path: Path, title: str, head: str) -> Path:
    """Time and bus bandwidth by size, one row of panels for each of up to four numbers of ranks."""
    ranks = spread(sorted({entry.row["ranks"] for entry in entries}), _MOST_RANKS)
    seeds = any(entry.low != entry.high for entry in entries)
    handles = _legend(entries, seeds)
    sizes = sorted({entry.row["bytes_per_rank"] for entry in entries})
    with frame(path, title, head, len(ranks), 2, (3.5, 2.3), len(handles)) as picture:
        for k, p in enumerate(ranks):
            own = [entry for entry in entries if entry.row["ranks"] == p]
            left, right = picture.axes(k, 0), picture.axes(k, 1)
            factor = time_axis(left, *_reach(own))
            _draw_times(left, own, "bytes_per_rank", factor)
            left.set_title(f"time, P = {p}", loc="left")
            _mark_crossings(left, own)
            _draw_busbw(right, own)
            right.set_title(f"bus bandwidth, P = {p}", loc="left")
            for axes in (left, right):
                sizes_axis(axes, sizes)
                _grid(axes)
        picture.legend(handles)
    return path


def _mark_crossings(axes, entries: Sequence[Entry]) -> None:
    """A dotted line with its size wherever another algorithm becomes the fastest, up to three."""
    times: dict[int, dict[str, float]] = {}
    for entry in entries:
        times.setdefault(entry.row["bytes_per_rank"], {})[entry.row["algorithm"]] = entry.mid
    found = [at for (a, one), (b, two) in pairwise(sorted(times.items())) for at in _crossing(a, one, b, two)]
    for at in found[:_MOST_CROSSINGS]:
        axes.axvline(at, color="#777777", lw=0.8, ls=":", zorder=1)
        axes.annotate(
            f"≈ {short_size(at)}B",
            (at, 1),
            (2, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=6.5,
            color="#555555",
            va="top",
        )


def _crossing(a: int, one: dict[str, float], b: int, two: dict[str, float]) -> list[float]:
    """Where between two sizes the fastest at the first is overtaken by the fastest at the second, straight on logs."""
    first, second = min(one, key=lambda name: one[name]), min(two, key=lambda name: two[name])
    if first == second or first not in two or second not in one:
        return []
    before, after = log2(one[second] / one[first]), log2(two[first] / two[second])
    return [a * (b / a) ** (before / (before + after))] if before + after > 0 else []


def _draw_busbw(axes, entries: Sequence[Entry]) -> None:
    values: list[float] = []
    drawn: list = []
    for name, own in _by_algorithm(entries, "bytes_per_rank"):
        colour = algorithm_colour(name)
        at = [entry.row["bytes_per_rank"] for entry in own]

        def rate(row, time):
            return busbw(row.get("collective") or "allreduce", row["ranks"], row["size"], time) / 1e9

        reached = [rate(entry.row, entry.mid) for entry in own]
        best = [(e.row["bytes_per_rank"], rate(e.row, e.row["bound_ps"])) for e in own if e.row["bound_ps"]]
        if best:
            axes.plot(*zip(*best, strict=True), color=colour, zorder=2, **_BOUND)
        _draw_curve(axes, name, at, reached, drawn)
        values += reached + [value for _, value in best]
    axes.set_yscale("log")
    low, high = min(values) / 1.3, max(values) * 1.3
    axes.set_ylim(low, high)
    log_ticks(axes.yaxis, low, high)
    axes.set_ylabel("GB/s")


def draw_scaling(entries: Sequence[Entry], path: Path, title: str, head: str) -> Path:
    """Time over ranks, one panel for each of up to four sizes."""
    sizes = spread(sorted({entry.row["bytes_per_rank"] for entry in entries}), _MOST_SIZES)
    ranks = [entry.row["ranks"] for entry in entries]
    handles = _legend(entries, any(entry.low != entry.high for entry in entries))
    columns = min(2, len(sizes))
    with frame(path, title, head, -(-len(sizes) // columns), columns, (3.5, 2.3), len(handles)) as picture:
        for k, size in enumerate(sizes):
            own = [entry for entry in entries if entry.row["bytes_per_rank"] == size]
            axes = picture.axes(k // columns, k % columns)
            factor = time_axis(axes, *_reach(own))
            _draw_times(axes, own, "ranks", factor)
            ranks_axis(axes, ranks)
            axes.set_title(f"N = {format_size(size)}", loc="left")
            _grid(axes)
        picture.legend(handles)
    return path


def draw_bytes(entries: Sequence[Entry], path: Path, title: str, head: str) -> Path:
    """Remote bytes of the rank that moved most beside the closed form, over ranks or, with one P, over size."""
    over_ranks = len({entry.row["ranks"] for entry in entries}) > 1
    x = "ranks" if over_ranks else "bytes_per_rank"
    size = max(entry.row["bytes_per_rank"] for entry in entries)
    if over_ranks:
        entries = [entry for entry in entries if entry.row["bytes_per_rank"] == size]
    handles = _legend(entries, False, "closed form")
    with frame(path, title, head, 1, 1, (5.2, 2.9), len(handles)) as picture:
        axes = picture.axes(0, 0)
        axes.set_yscale("log", base=2)
        groups = list(_by_algorithm(entries, x))
        for name, own in groups:
            at = [entry.row[x] for entry in own]
            line = [entry.row["closed_form_bytes"] for entry in own]
            axes.plot(at, line, color=algorithm_colour(name), zorder=2, **_BOUND)
        aside, margin = _asides(entries, x)
        for name, own in groups:
            at = [entry.row[x] * 2 ** aside[id(entry)] for entry in own]
            moved = [entry.row["max_remote_bytes"] for entry in own]
            axes.plot(
                at,
                moved,
                ls="none",
                color=algorithm_colour(name),
                clip_on=False,
                zorder=3,
                **marker(name, _SIZE),
            )
        if over_ranks:
            ranks_axis(axes, [entry.row["ranks"] for entry in entries], margin)
        else:
            sizes_axis(axes, [entry.row["bytes_per_rank"] for entry in entries], margin)
        low, high = axes.get_ylim()
        if high / low < 4:
            axes.set_ylim(low / 2, high * 2)
        iec_ticks(axes.yaxis)
        axes.set_ylabel("remote bytes per rank")
        what = f"N = {short_size(size)}B" if over_ranks else f"P = {entries[0].row['ranks']}"
        axes.set_title(f"remote bytes of the busiest rank, {what}; equal ones side by side", loc="left")
        _grid(axes)
        picture.legend(handles)
    return path


def _asides(entries: Sequence[Entry], x: str) -> tuple[dict[int, float], float]:
    """By how many octaves each marker moves so that those with the same value stand beside each other; the margin."""
    places: dict[tuple, list[Entry]] = {}
    for entry in entries:
        places.setdefault((entry.row[x], entry.row["max_remote_bytes"]), []).append(entry)
    at = sorted({entry.row[x] for entry in entries})
    nearest = min((log2(b / a) for a, b in pairwise(at)), default=1.0)
    most = max(len(same) for same in places.values())
    step = min(_DODGE, nearest / (most + 1))
    aside = {
        id(entry): (k - (len(same) - 1) / 2) * step
        for same in places.values()
        for k, entry in enumerate(same)
    }
    return aside, most * step / 2 + 0.12
