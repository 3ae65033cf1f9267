"""The traffic picture: bytes per rank over the number of ranks, and who moved how much to whom.

Left, what was measured beside the closed forms (mesh and two-phase unless others are given); right, one
matrix of bytes per ordered pair for each run. Takes plain data, so it draws results of any age.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from a2a3sim.reports.style import (
    algorithm_colour,
    algorithm_marker,
    drawing,
    iec_ticks,
    rank_ticks,
    save,
    short_size,
)
from a2a3sim.result import RunResult
from a2a3sim.units import format_size

__all__ = ["ALL_REDUCE_FORMS", "Form", "Matrix", "TrafficPoint", "draw_traffic", "matrix_of"]

_TOP, _ROW = 0.6, 3.1  # inches: the title, and one row of pictures
_LINE, _MATRIX, _SIDE = 4.6, 3.2, 2.35
_COLUMNS = 3  # matrices beside each other
_LEGEND_INSIDE = 5  # entries; a longer legend goes below the lines
_NUMBERS_UP_TO = 8  # ranks; beyond, cells are too small to write into
_LABELS_UP_TO = 16


class Form(NamedTuple):
    """A closed form, drawn as a line in the colour of the algorithm it belongs to."""

    label: str
    algorithm: str
    nbytes: Callable  # of (ranks, payload), also for arrays of ranks


ALL_REDUCE_FORMS = (
    Form("(P−1)·N  mesh", "mesh", lambda ranks, payload: (ranks - 1) * payload),
    Form("2(P−1)/P·N  two-phase", "two_phase", lambda ranks, payload: 2 * (ranks - 1) / ranks * payload),
)


class TrafficPoint(NamedTuple):
    """One measurement: the remote bytes of the rank that moved most."""

    algorithm: str
    ranks: int
    nbytes: int


class Matrix(NamedTuple):
    """Bytes by ordered pair of one run."""

    title: str
    ranks: int
    pairs: Mapping[tuple[int, int], int]


def matrix_of(result: RunResult) -> Matrix:
    """The matrix of one run."""
    pairs = {(pair.src, pair.dst): pair.bytes for pair in result.pairs}
    return Matrix(result.algorithm or result.program, result.ranks, pairs)


def draw_traffic(
    points: Sequence[TrafficPoint],
    matrices: Sequence[Matrix],
    payload: int,
    path: str | Path,
    header: str = "",
    title: str = "remote traffic",
    *,
    forms: Sequence[Form] = ALL_REDUCE_FORMS,
    measured_on: str = "",
) -> Path:
    """Write the traffic picture as PNG or SVG.

    Args:
        points: the measurements, of any number of algorithms and ranks.
        matrices: the runs whose pairs are shown, usually one per algorithm.
        payload: N, bytes per rank.
        header: `a2a3sim.reports.heading.header` of one of the runs.
        forms: what the measurements are held against.
        measured_on: the machine of the measurements, where it is not the header's.

    Raises:
        ConfigError: the path is no ``.png`` or ``.svg`` in an existing directory.
    """
    columns = min(len(matrices), _COLUMNS)
    entries = len({point.algorithm for point in points}) + len(forms)
    rows = max(-(-len(matrices) // _COLUMNS), 1 if entries <= _LEGEND_INSIDE else 2)
    width = _LINE + _MATRIX * columns + (0.7 if matrices else 0.2)
    total = _TOP + _ROW * rows

    with drawing(width, total) as figure:

        def place(left: float, row: int, wide: float):
            bottom = total - _TOP - _ROW * (row + 1) + 0.55
            return figure.add_axes((left / width, bottom / total, wide / width, _SIDE / total))

        figure.text(0.12 / width, 1 - 0.2 / total, title, fontsize=11, weight="bold", va="center")
        figure.text(0.12 / width, 1 - 0.4 / total, header, fontsize=7, color="#555555", va="center")
        _draw_lines(place(0.75, 0, _LINE - 1.15), points, payload, forms, measured_on)
        most = max((nbytes for matrix in matrices for nbytes in matrix.pairs.values()), default=1)
        image = None
        for k, matrix in enumerate(matrices):
            axes = place(_LINE + k % _COLUMNS * _MATRIX + 0.35, k // _COLUMNS, _SIDE)
            image = _draw_matrix(axes, matrix, most)
        if image is not None:
            _draw_scale(figure, image, place(width - 0.75, 0, 0.12), most)
        return save(figure, path)


def _draw_lines(
    axes, points: Sequence[TrafficPoint], payload: int, forms: Sequence[Form], measured_on: str = ""
) -> None:
    import numpy as np

    measured = sorted({point.ranks for point in points})
    low, high = min([2, *measured]), max([4, *measured])
    ranks = np.geomspace(low, high, 200)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for form, dashes in zip(forms, cycle(("--", "-.", ":")), strict=False):
        nbytes = form.nbytes(ranks, payload)
        axes.plot(ranks, nbytes, color=algorithm_colour(form.algorithm), lw=1.2, ls=dashes, label=form.label)
    for k, algorithm in enumerate(dict.fromkeys(point.algorithm for point in points)):
        own = sorted((p.ranks, p.nbytes) for p in points if p.algorithm == algorithm and p.nbytes)
        # Markers of algorithms that move the same lie around each other, not on top.
        axes.plot(
            [p for p, _ in own],
            [nbytes for _, nbytes in own],
            ls="none",
            marker=algorithm_marker(algorithm),
            ms=5 + 2.6 * min(k, 4),
            mew=1.3,
            mfc="none" if k else algorithm_colour(algorithm),
            mec=algorithm_colour(algorithm),
            label=f"{algorithm}, measured",
        )
    axes.set_xlim(low / 1.12, high * 1.12)
    rank_ticks(axes.xaxis, [*measured, *(2**k for k in range(1, 20) if low <= 2**k <= high)])
    iec_ticks(axes.yaxis)
    axes.grid(color="#E4E4E4", lw=0.5)
    axes.set_axisbelow(True)
    axes.set_xlabel(
        f"ranks P (measured on {measured_on}: bytes do not depend on the machine)"
        if measured_on
        else "ranks P"
    )
    axes.set_title(f"remote bytes per rank, N = {format_size(payload)}", loc="left")
    drawn = axes.get_legend_handles_labels()[1]
    if len(drawn) > _LEGEND_INSIDE:
        axes.legend(loc="upper left", bbox_to_anchor=(-0.04, -0.22), handlelength=2.2, labelspacing=0.9)
    elif drawn:
        axes.legend(loc="upper left", handlelength=2.2, borderaxespad=0.2)


def _draw_matrix(axes, matrix: Matrix, most: int):
    import numpy as np

    cells = np.zeros((matrix.ranks, matrix.ranks))
    for (src, dst), nbytes in matrix.pairs.items():
        cells[src, dst] = nbytes
    shown = np.ma.masked_equal(cells, 0)
    image = axes.imshow(shown, cmap="Blues", vmin=0, vmax=1.1 * most, interpolation="nearest")
    axes.set_facecolor("#F3F3F3")
    if matrix.ranks <= _NUMBERS_UP_TO:
        for (src, dst), nbytes in sorted(matrix.pairs.items()):
            colour = "white" if nbytes > 0.6 * most else "black"
            size = 7 if matrix.ranks <= 6 else 5.5
            axes.text(dst, src, short_size(nbytes), ha="center", va="center", fontsize=size, color=colour)
    step = max(1, matrix.ranks // _LABELS_UP_TO)
    ticks = range(0, matrix.ranks, step)
    axes.set_xticks(ticks)
    axes.set_yticks(ticks)
    axes.tick_params(length=0)
    if matrix.ranks > _NUMBERS_UP_TO:
        axes.tick_params(labelsize=6)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_xlabel("to rank")
    axes.set_ylabel("from rank", labelpad=3)
    total = sum(matrix.pairs.values())
    axes.set_title(f"{matrix.title}: {format_size(total)} in all", loc="left", color="black")
    axes.annotate(
        "■", (0, 1), (-9, 5.5), xycoords="axes fraction", textcoords="offset points",
        color=algorithm_colour(matrix.title), fontsize=9,
    )  # fmt: skip
    return image


def _draw_scale(figure, image, axes, most: int) -> None:
    bar = figure.colorbar(image, cax=axes)
    step = 2 ** max((most - 1).bit_length() - 2, 0)  # two to four ticks, on powers of two
    bar.ax.set_ylim(0, most)
    bar.set_ticks(range(0, most + 1, step))
    bar.ax.yaxis.set_major_formatter(lambda value, _: short_size(value) + "B")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2, labelsize=7)
