"""The timeline: what every rank and pipe did when, several runs under each other on one time axis.

Up to `LANES_UP_TO` ranks each rank has four lanes: S, MTE2, V, MTE3. A move is pale where it is latency and
strong while bytes flow; moves in flight at once lie beside each other within their lane. Waits are hatched,
arrows run from a notify to the wait it ended, and the background is tinted by phase. With more ranks each has
one strip that shows the most telling thing it did at every instant. Findings are marked where their operations
stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a2a3sim.models.operation import UNKNOWN
from a2a3sim.reports.heading import header
from a2a3sim.reports.marks import MARK_COLOURS, finding_marks, mark_titles
from a2a3sim.reports.style import ACTIVITY_COLOURS, algorithm_colour, drawing, phase_tint, save, time_unit
from a2a3sim.result import RunResult
from a2a3sim.trace.lanes import DRAWN, rank_lanes, rank_strips
from a2a3sim.trace.measures import run_span
from a2a3sim.trace.phases import phase_union
from a2a3sim.units import format_size, format_time

__all__ = ["LANES_UP_TO", "TimelineRun", "draw_timeline"]

LANES_UP_TO = 16  # ranks; beyond, one strip a rank

_ALL_ARROWS_UP_TO = 4  # ranks; beyond, only the notify that ended each barrier
_WIDTH, _LEFT, _RIGHT = 11.0, 0.85, 0.2  # inches
_TOP, _BETWEEN, _BOTTOM = 1.0, 0.66, 0.85
_MARGIN = 1.015  # of the time axis, for the line at the end
_STRIP_BINS = 1500
_PALE = 0.38
_THIN = 0.02  # inches
_HATCH: dict[str, Any] = {"facecolor": "#F4F4F4", "edgecolor": "#9A9A9A", "hatch": "//////"}
_SHAPE = {"issue": 0.5, "notify": 1.0}  # height of a bar of the scalar pipe, of its lane


@dataclass(frozen=True, slots=True)
class TimelineRun:
    """One run to draw: its trace, its result, and a title (default: algorithm or program)."""

    trace: Any
    result: RunResult
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or self.result.algorithm or self.result.program


def draw_timeline(
    runs: Sequence[TimelineRun],
    path: str | Path,
    title: str = "",
    window: tuple[int, int] | None = None,
    ranks: Sequence[int] | None = None,
) -> Path:
    """Write the timeline of one or more runs as PNG or SVG.

    Time zero is the first kernel start of each run, so that the ends compare.

    Args:
        window: only from the one to the other time, in ps from time zero.
        ranks: only these.

    Raises:
        ValueError: there is no run.
        ConfigError: the path is no ``.png`` or ``.svg`` in an existing directory.
    """
    if not runs:
        raise ValueError(f"runs must hold at least one run, got {runs!r}")
    panels = [_Panel(run, ranks) for run in runs]
    shown = window or (0, max(1, *(panel.last - panel.first for panel in panels)))
    factor, unit = time_unit(shown[1] if window is None else window[1] - window[0])
    tints: dict[str, int] = {}
    for panel in panels:
        for phase in panel.union:
            tints.setdefault(phase["name"], len(tints))
    total = _TOP + sum(panel.height for panel in panels) + _BETWEEN * (len(panels) - 1) + _BOTTOM
    with drawing(_WIDTH, total) as figure:
        y = total - _TOP
        for k, panel in enumerate(panels):
            y -= panel.height
            width = (_WIDTH - _LEFT - _RIGHT) / _WIDTH
            axes = figure.add_axes((_LEFT / _WIDTH, y / total, width, panel.height / total))
            panel.draw(axes, shown, factor, tints)
            axes.tick_params(labelbottom=k == len(panels) - 1)
            y -= _BETWEEN
        axes.set_xlabel(f"time since the first kernel's start ({unit})")
        left = 0.12 / _WIDTH
        figure.text(left, 1 - 0.2 / total, title or "timeline", fontsize=11, weight="bold", va="center")
        figure.text(left, 1 - 0.4 / total, header(runs[0].result), fontsize=7, color="#555555", va="center")
        _legend(figure, panels, total)
        return save(figure, path)


class _Panel:
    """One run's part of the picture."""

    def __init__(self, run: TimelineRun, ranks: Sequence[int] | None = None) -> None:
        self.run = run
        chosen = range(run.result.ranks) if ranks is None else [r for r in ranks if r < run.result.ranks]
        self.rows = {rank: row for row, rank in enumerate(chosen)}  # ranks shown, from the top
        self.ranks = len(self.rows)
        self.lanes = [lane for lane in run.trace.lanes if lane.start != UNKNOWN]
        self.first, self.last = run_span(self.lanes)
        self.strips = self.ranks > LANES_UP_TO
        self.shown: set[str] = set()
        views = rank_lanes(self.lanes, run.result.ranks, self.first, self.last)
        self.views = [views[rank] for rank in self.rows]
        self.union = phase_union([span for view in self.views for span in view.phases])
        if self.strips:
            self.height = min(max(self.ranks * 0.07, 2.0), 7.0)
        else:
            self.lane_height = 0.15 if self.ranks <= 4 else (0.105 if self.ranks <= 8 else 0.075)
            self.height = self.ranks * 4 * self.lane_height / 0.9

    def draw(self, axes, shown: tuple[int, int], factor: int, tints: dict[str, int]) -> None:
        self.factor = factor
        self.from_ps, self.to_ps = shown
        axes.set_xlim(shown[0] / factor, (shown[1] + (shown[1] - shown[0]) * (_MARGIN - 1)) / factor)
        axes.set_ylim(self.ranks, 0)
        for side in ("left", "top", "right"):
            axes.spines[side].set_visible(False)
        if self.strips:
            self._strips(axes)
        else:
            self._tints(axes, tints)
            self._bars(axes)
            self._arrows(axes)
        self._marks(axes)
        self._labels(axes)
        end = self.last - self.first
        if self.from_ps <= end <= self.to_ps:
            at = [end / factor] * 2
            axes.plot(at, [0, self.ranks], color=self.colour, lw=1.2, ls=(0, (4, 2)), clip_on=False, zorder=5)
        self._title(axes)

    @property
    def colour(self) -> str:
        return algorithm_colour(self.run.result.algorithm)

    def _tints(self, axes, tints: dict[str, int]) -> None:
        boxes, colours = [], []
        for view in self.views:
            for span in view.phases:
                row = self.rows[view.rank]
                boxes.append(self._box(span.start, span.end, row + 0.02, row + 0.98))
                colours.append(phase_tint(tints[span.name]))
        self._add(axes, boxes, facecolors=colours, linewidths=0, zorder=0)
        for rank in range(1, self.ranks):
            axes.axhline(rank, color="#B8B8B8", lw=0.5, zorder=0.5)

    def _box(self, start: float, end: float, top: float, bottom: float) -> list[tuple[float, float]]:
        a, b = start / self.factor, end / self.factor
        return [(a, top), (b, top), (b, bottom), (a, bottom)]

    def _bars(self, axes) -> None:
        strong: dict[str, list] = {}
        pale: dict[str, list] = {}
        for view in self.views:
            for index, pipe in enumerate(DRAWN):
                tall = 0.9 / 4 * 0.88 / view.slots[pipe]
                for bar in view.bars[pipe]:
                    top = self.rows[view.rank] + 0.05 + 0.9 * index / 4 + bar.slot * tall
                    margin = tall * (1 - _SHAPE.get(bar.what, 1.0)) / 2
                    rows = top + margin, top + 0.94 * tall - margin
                    a, b = bar.strong
                    if b > a:
                        strong.setdefault(bar.what, []).append(self._box(a, b, *rows))
                    for c, d in ((bar.start, min(a, bar.end)), (max(b, bar.start), bar.end)):
                        if d > c:
                            pale.setdefault(bar.what, []).append(self._box(c, d, *rows))
        self.shown |= strong.keys() | pale.keys()
        left, right = axes.get_xlim()
        thin = _THIN * (right - left) / (_WIDTH - _LEFT - _RIGHT)
        for what, colour in ACTIVITY_COLOURS.items():
            self._add(axes, pale.get(what), facecolors=colour, alpha=_PALE, linewidths=0, zorder=2)
            boxes = strong.get(what, [])
            if what == "wait":
                self._add(axes, boxes, zorder=2, linewidths=0.3, **_HATCH)
                continue
            # A white edge parts neighbours, but would leave nothing of a very short bar.
            short = [box for box in boxes if box[1][0] - box[0][0] < thin]
            wide = [box for box in boxes if box[1][0] - box[0][0] >= thin]
            self._add(axes, wide, facecolors=colour, edgecolors="white", linewidths=0.25, zorder=3)
            self._add(axes, short, facecolors=colour, edgecolors=colour, linewidths=0.35, zorder=3)

    @staticmethod
    def _add(axes, boxes, **style) -> None:
        from matplotlib.collections import PolyCollection

        if boxes:
            axes.add_collection(PolyCollection(boxes, **style), autolim=False)

    def _arrows(self, axes) -> None:
        arrows = [arrow for view in self.views for arrow in view.arrows if arrow.src != arrow.dst]
        seen = (self.from_ps, self.to_ps)
        arrows = [a for a in arrows if a.src in self.rows and seen[0] <= a.left and a.ended <= seen[1]]
        if self.ranks > _ALL_ARROWS_UP_TO:
            # Of every barrier of a rank, the notify that came last: the one that released it.
            last = {(arrow.dst, arrow.barrier): arrow for arrow in arrows}
            arrows = list(last.values())
        middle = 0.05 + 0.9 / 8
        for arrow in arrows:
            axes.annotate(
                "",
                xy=(arrow.ended / self.factor, self.rows[arrow.dst] + middle),
                xytext=(arrow.left / self.factor, self.rows[arrow.src] + middle),
                arrowprops={
                    "arrowstyle": "-|>,head_width=0.12,head_length=0.25",
                    "color": ACTIVITY_COLOURS["notify"],
                    "lw": 0.6 if self.ranks <= 8 else 0.4,
                    "alpha": 0.8 if self.ranks <= 8 else 0.6,
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
                zorder=4,
            )
        if arrows:
            self.shown.add("notify")

    def _marks(self, axes) -> None:
        """A diamond and a label, A1, for every operation that a finding names."""
        for mark in finding_marks(self.run.result):
            time = mark.time_ps - self.first
            row = self.rows.get(mark.rank)
            if row is None or not self.from_ps <= time <= self.to_ps:
                continue
            lane = 0.5 if self.strips else 0.05 + 0.9 * (DRAWN.index(mark.pipe) + 0.45) / 4
            at, colour = (time / self.factor, row + lane), MARK_COLOURS[mark.severity]
            axes.plot(*at, marker="D", ms=4, mfc=colour, mec="white", mew=0.6, zorder=7, clip_on=False)
            axes.annotate(
                mark.label,
                at,
                (4, 3),
                textcoords="offset points",
                fontsize=6.5,
                weight="bold",
                color=colour,
                zorder=7,
            )

    def _strips(self, axes) -> None:
        import numpy as np
        from matplotlib.colors import to_rgb

        span = self.first + self.from_ps, self.last
        ranks = self.run.result.ranks
        strips, names = rank_strips(self.lanes, ranks, span, self.to_ps - self.from_ps, _STRIP_BINS)
        strips = strips[list(self.rows)]
        colours = np.array([to_rgb(ACTIVITY_COLOURS[name]) for name, _ in names] + [(1.0, 1.0, 1.0)])
        opaque = np.array([1.0 if strong else _PALE for _, strong in names] + [1.0])[:, None]
        palette = opaque * colours + (1 - opaque)
        axes.imshow(
            palette[strips],
            extent=(self.from_ps / self.factor, self.to_ps / self.factor, self.ranks, 0),
            aspect="auto",
            interpolation="nearest",
            zorder=1,
        )
        self.shown |= {names[k][0] for k in set(strips.ravel().tolist()) if k >= 0}

    def _labels(self, axes) -> None:
        labels = self.run.result.device_labels
        axes.tick_params(axis="y", length=0)
        if self.strips:
            step = next(s for s in (1, 2, 4, 8, 16, 32, 64, 128) if self.height / (self.ranks / s) >= 0.13)
            rows = range(0, self.ranks, step)
            axes.set_yticks([row + 0.5 for row in rows], [list(self.rows)[row] for row in rows])
            axes.set_ylabel("rank")
            return
        axes.set_yticks([])
        shift = axes.get_yaxis_transform()
        names = self.lane_height >= 0.1
        for rank, row in self.rows.items():
            text = f"rank {rank}"
            if rank < len(labels) and labels[rank] != rank:
                text += f"\n(-d {labels[rank]})"
            x = -0.036 if names else -0.006
            axes.text(
                x, row + 0.5, text, transform=shift, ha="right", va="center", fontsize=7.5 if names else 6.5
            )
            for index, pipe in enumerate(DRAWN if names else ()):
                y = row + 0.05 + 0.9 * (index + 0.45) / 4
                axes.text(
                    -0.004, y, pipe, transform=shift, ha="right", va="center", fontsize=5.5, color="#666666"
                )

    def _title(self, axes) -> None:
        result = self.run.result
        inch = 1 / (axes.get_position().height * axes.figure.get_figheight())
        shift = axes.transAxes
        above = 1 + 0.26 * inch
        said = [format_time(result.kernel_ps)]
        if result.percent_of_bound is not None:
            said.append(f"{result.percent_of_bound:.0f} % of bound")
        said.append(f"{format_size(result.max_remote_bytes)} remote per rank")
        said.append(f"{result.rounds} round{'s' if result.rounds != 1 else ''}")
        cores = max((view.cores for view in self.views), default=1)
        if cores > 1:
            said.append(f"all {cores} cores" if self.strips else f"core 0 of {cores} shown")
        mark = axes.annotate("■", (0, above), xycoords=shift, color=self.colour, fontsize=10, va="baseline")
        after = {"textcoords": "offset points", "va": "baseline"}
        name = axes.annotate(self.run.name, (1, 0), (3, 1), xycoords=mark, fontsize=9, weight="bold", **after)
        text = "   ·   ".join(said)
        axes.annotate(text, (1, 0), (9, 1.5), xycoords=name, fontsize=8, color="#333333", **after)
        self._phase_names(axes, 1 + 0.06 * inch)

    def _phase_names(self, axes, y: float) -> None:
        """Names over their phases, as far as they fit beside each other."""
        per_ps = (_WIDTH - _LEFT - _RIGHT) / ((self.to_ps - self.from_ps) * _MARGIN)
        taken = 0.0
        for phase in self.union:
            start, end = max(phase["start_ps"], self.from_ps), min(phase["end_ps"], self.to_ps)
            if end <= start:
                continue
            middle = ((start + end) / 2 - self.from_ps) * per_ps
            half = 0.03 * len(phase["name"]) + 0.03
            span = (end - start) * per_ps
            left = max(middle - half, 0.0)
            if left < taken or (2 * half > span and len(self.union) > 6):
                continue
            taken = left + 2 * half
            axes.annotate(
                phase["name"],
                (((left + half) / per_ps + self.from_ps) / self.factor, y),
                xycoords=("data", "axes fraction"),
                ha="center",
                fontsize=7,
                color="#555555",
                annotation_clip=False,
            )


_MEANING = {"held": "scalar pipe held (fence, space)", "notify": "notify, arrow to the wait it ended"}


def _legend(figure, panels: list[_Panel], total: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown = set().union(*(panel.shown for panel in panels))
    handles: list[Any] = []
    for what, colour in ACTIVITY_COLOURS.items():
        if what not in shown:
            continue
        if what == "wait" and not all(panel.strips for panel in panels):
            patch = Patch(lw=0.3, label="wait", **_HATCH)
        else:
            patch = Patch(facecolor=colour, label=_MEANING.get(what, what))
        handles.append(patch)
    handles.append(Patch(facecolor=ACTIVITY_COLOURS["remote read"], alpha=_PALE, label="pale: latency"))
    if not all(panel.strips for panel in panels):
        handles.append(Patch(facecolor=phase_tint(0), edgecolor="#CCCCCC", lw=0.3, label="background: phase"))
    for panel in panels:
        for severity, title in mark_titles(panel.run.result):
            prefix = f"{panel.run.name}: " if len(panels) > 1 else ""
            style: dict[str, Any] = {
                "color": "none",
                "marker": "D",
                "mfc": MARK_COLOURS[severity],
                "mec": "white",
            }
            handles.append(Line2D([], [], label=prefix + title, **style))
    figure.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.5, 0.02 / total),
        ncol=min(len(handles), 6),
        handlelength=1.4,
        columnspacing=1.4,
    )
