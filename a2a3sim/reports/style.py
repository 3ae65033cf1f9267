"""How every picture looks: colours, axes in units people read, and files that are equal when their data are.

Colours can be told apart by people with a colour vision deficiency (Okabe and Ito's set for what a core does,
CARTO's Safe set for algorithms), and never carry meaning alone: algorithms have a marker, waits a hatch.
matplotlib is imported by the functions that draw and never touches a screen or a global figure.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from a2a3sim.errors import ConfigError
from a2a3sim.units import PS_PER_S

__all__ = [
    "ACTIVITY_COLOURS",
    "GROUP_COLOURS",
    "algorithm_colour",
    "algorithm_marker",
    "drawing",
    "iec_ticks",
    "phase_tint",
    "rank_ticks",
    "save",
    "short_size",
    "time_unit",
]

# What a core does at one instant. Loads are blue, stores are red and orange; remote is the stronger one.
ACTIVITY_COLOURS = {
    "remote read": "#0072B2",
    "local read": "#8CC8EC",
    "vector": "#009E73",
    "remote write": "#D55E00",
    "local write": "#F0B04A",
    "issue": "#4D4D4D",
    "wait": "#C9C9C9",
    "held": "#E6D9C8",
    "notify": "#AA3377",
}

# What the critical path was spent on (a2a3sim.trace.critical_path.GROUPS).
GROUP_COLOURS = {
    "link bandwidth": "#0072B2",
    "HBM": "#8CC8EC",
    "pipe rate": "#F0B04A",
    "latency": "#D55E00",
    "waits": "#C9C9C9",
    "atomics": "#AA3377",
    "vector": "#009E73",
    "issue": "#4D4D4D",
    "launch": "#E6D9C8",
}

_ALGORITHMS = {
    "mesh": ("#332288", "o"),
    "mesh_rotated": ("#6699CC", "o"),
    "two_phase": ("#CC6677", "s"),
    "two_phase_rotated": ("#882255", "s"),
    "two_phase_push": ("#661100", "D"),
    "ring": ("#117733", "^"),
    "ring_bidirectional": ("#44AA99", "v"),
    "halving_doubling": ("#DDCC77", "P"),
    "recursive_doubling": ("#999933", "X"),
    "hierarchical": ("#AA4499", "*"),
    "flat": ("#88CCEE", "h"),
    "binomial": ("#5F5F5F", "p"),
}

_TINTS = ("#EEF3F8", "#F8F1E7", "#EDF5EF", "#F6EEF4")

_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so the same everywhere
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "hatch.linewidth": 0.4,
    "svg.hashsalt": "a2a3sim",
    "svg.fonttype": "path",
}


def algorithm_colour(name: str | None) -> str:
    """The algorithm's one colour in every picture; a user's own name gets one that depends on it only."""
    known = _ALGORITHMS.get(name or "")
    return known[0] if known else _anyone(name)[0]


def algorithm_marker(name: str | None) -> str:
    """The algorithm's marker, so that colour is not the only difference."""
    known = _ALGORITHMS.get(name or "")
    return known[1] if known else _anyone(name)[1]


def _anyone(name: str | None) -> tuple[str, str]:
    if not name:
        return "#333333", "o"
    styles = list(_ALGORITHMS.values())
    return styles[crc32(name.encode()) % len(styles)]


def phase_tint(index: int) -> str:
    """Background of the index-th phase."""
    return _TINTS[index % len(_TINTS)]


def time_unit(span_ps: int) -> tuple[int, str]:
    """The unit in which an axis over ``span_ps`` reads best: (ps per unit, its name)."""
    for factor, name in ((PS_PER_S, "s"), (10**9, "ms"), (10**6, "µs"), (10**3, "ns")):
        if span_ps >= 2 * factor:
            return factor, name
    return 1, "ps"


def short_size(nbytes: float) -> str:
    """A size in at most three digits and an IEC unit, for ticks and cells: ``1.5Mi``."""
    for factor, unit in ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if nbytes >= factor:
            scaled = nbytes / factor
            return f"{scaled:.0f}{unit}" if scaled >= 100 else f"{scaled:.3g}{unit}"
    return f"{nbytes:.3g}"


def iec_ticks(axis) -> None:
    """Ticks of a base-2 logarithmic axis of bytes: powers of two, in KiB, MiB, GiB."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base=2, numticks=9))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_size(value) + "B"))


def rank_ticks(axis, ranks) -> None:
    """Ticks of a base-2 logarithmic axis of ranks: those that were measured."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(sorted(set(ranks))))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:.0f}")


@contextmanager
def drawing(width: float, height: float):
    """A fresh figure of so many inches in the house style; draw and `save` inside."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user's own style file says
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=(width, height), dpi=150)
        FigureCanvasAgg(figure)
        yield figure


def save(figure, path: str | Path) -> Path:
    """Write a PNG or SVG, by the suffix; equal data give equal bytes (no date, no random ids).

    Raises:
        ConfigError: another suffix, or the directory does not exist.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (".png", ".svg"):
        raise ConfigError(f"a picture must be a .png or .svg file, got {str(path)!r}")
    if not path.parent.is_dir():
        raise ConfigError(f"the directory of a picture must exist, got {str(path.parent)!r}")
    metadata = {"Software": None} if kind == ".png" else {"Date": None, "Creator": "a2a3sim"}
    figure.savefig(path, format=kind[1:], metadata=metadata)
    return path
