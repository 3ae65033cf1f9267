"""Performance tables in the formats that people's other tools read: nccl-tests, hccl_test, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from a2a3sim.result import RunResult
from a2a3sim.trace.critical_path import GROUPS, summary

__all__ = [
    "HCCL_HEADER",
    "PerfRow",
    "csv_text",
    "hccl_lines",
    "link_use",
    "links_line",
    "nccl_lines",
    "what_bound_it",
]

HCCL_HEADER = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:"

_LEFT = (("size", "(B)", 12), ("count", "(elements)", 12), ("type", "", 8), ("redop", "", 6), ("root", "", 5))
_GROUP = (
    ("time", "(us)", 8),
    ("algbw", "(GB/s)", 7),
    ("busbw", "(GB/s)", 7),
    ("#wrong", "", 6),
    ("bound", "(%)", 6),
)
_BESIDE = 3  # algorithms in one line
_SAID = 3  # causes named in a line


@dataclass(frozen=True)
class PerfRow:
    """One algorithm at one size. Bandwidths in bytes/s; ``wrong`` None where no data were moved."""

    collective: str
    algorithm: str
    ranks: int
    cores: int
    size: int
    count: int
    type: str
    redop: str
    root: int
    time_ps: int
    algbw: float
    busbw: float
    wrong: int | None
    bound_ps: int | None
    result: RunResult = field(repr=False, compare=False)

    @property
    def percent_of_bound(self) -> float | None:
        """How close the run came to its bound."""
        return None if self.bound_ps is None or not self.time_ps else 100 * self.bound_ps / self.time_ps

    def as_dict(self) -> dict[str, Any]:
        """The row for CSV and JSON, with what bound it."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "result"}
        values["percent_of_bound"] = self.percent_of_bound
        shares = summary(self.result.critical_path)
        for group in GROUPS:
            values[f"critical_path.{group.replace(' ', '_')}_percent"] = round(shares.get(group, 0.0), 4)
        values |= {f"links.utilisation.{name}": value for name, value in link_use(self.result).items()}
        return values


def link_use(result: RunResult) -> dict[str, float]:
    """Utilisation over all links: least, median, most (0 to 1), empty where nothing is limited."""
    from statistics import median

    used = [link.utilisation for link in result.links]
    return {"min": min(used), "median": median(used), "max": max(used)} if used else {}


def what_bound_it(result: RunResult) -> str:
    """Causes of the critical path in percent, distance to the bound and use of the links, in one line."""
    shares = summary(result.critical_path)
    said = [f"{group} {share:.0f} %" for group, share in list(shares.items())[:_SAID]]
    rest = sum(list(shares.values())[_SAID:])
    if rest >= 0.5:
        said.append(f"other {rest:.0f} %")
    parts = [", ".join(said) or "no time"]
    if result.percent_of_bound is not None:
        parts.append(f"{result.percent_of_bound:.1f} % of bound")
    if result.links:
        parts.append(links_line(result))
    return " · ".join(parts)


def links_line(result: RunResult) -> str:
    """How much of the links' bandwidth was used over the whole run, and which link most."""
    use = link_use(result)
    if not use:
        return "no link has a limit"
    most = max(result.links, key=lambda link: link.utilisation)
    return (
        f"{len(result.links)} links used {100 * use['min']:.0f} to {100 * use['max']:.0f} % "
        f"(median {100 * use['median']:.0f} %, most {most.name})"
    )


def nccl_lines(rows: Sequence[PerfRow], head: str = "") -> Iterator[str]:
    """The table of nccl-tests; algorithms stand where that has out-of-place and in-place, three in a block."""
    algorithms = list(dict.fromkeys(row.algorithm for row in rows))
    if head:
        yield f"# {head}"
    for k in range(0, len(algorithms), _BESIDE):
        yield "#"
        yield from _block(rows, algorithms[k : k + _BESIDE])
    for name in algorithms:
        own = [r.busbw for r in rows if r.algorithm == name]
        yield f"# Avg bus bandwidth {name}: {sum(own) / len(own) / 1e9:.4g} GB/s"
    yield "# What bound it:"
    for name in algorithms:
        its = [r for r in rows if r.algorithm == name]
        for row in dict.fromkeys((its[0], its[len(its) // 2], its[-1])):
            yield f"#   {name} {row.size} B: {what_bound_it(row.result)}"


def _block(rows: Sequence[PerfRow], algorithms: Sequence[str]) -> Iterator[str]:
    sizes = list(dict.fromkeys(row.size for row in rows))
    cells = {(row.size, row.algorithm): row for row in rows}
    left = sum(width + 1 for _, _, width in _LEFT) - 1
    group = sum(width + 1 for _, _, width in _GROUP)
    yield "#" + " " * left + "".join(f"{name:>{group}}" for name in algorithms)
    for k in (0, 1):
        text = " ".join(f"{column[k]:>{column[2]}}" for column in _LEFT)
        text += "".join(f" {column[k]:>{column[2]}}" for _ in algorithms for column in _GROUP)
        yield "#" + text
    for size in sizes:
        row = next(r for r in rows if r.size == size)
        shown = (row.size, row.count, row.type, row.redop, row.root)
        text = " ".join(f"{value:>{column[2]}}" for value, column in zip(shown, _LEFT, strict=True))
        for name in algorithms:
            text += _measured(cells.get((size, name)))
        yield " " + text


def _measured(row: PerfRow | None) -> str:
    if row is None:
        return "".join(f" {'':>{width}}" for _, _, width in _GROUP)
    share = row.percent_of_bound
    shown = (
        _figures(row.time_ps / 1e6, 8),
        _figures(row.algbw / 1e9, 7),
        _figures(row.busbw / 1e9, 7),
        "N/A" if row.wrong is None else str(row.wrong),
        "N/A" if share is None else f"{share:.1f}",
    )
    return "".join(f" {text:>{column[2]}}" for text, column in zip(shown, _GROUP, strict=True))


def _figures(value: float, width: int) -> str:
    """As many decimals as fit four significant digits, two at most."""
    places = 2 if value < 100 else (1 if value < 10000 else 0)
    return f"{value:.{places}f}"[:width]


def hccl_lines(rows: Sequence[PerfRow]) -> Iterator[str]:
    """The table of hccl_test; with several algorithms one table each, under its name."""
    algorithms = list(dict.fromkeys(row.algorithm for row in rows))
    widths = [len(part) for part in HCCL_HEADER.split(" | ")]
    for name in algorithms:
        if len(algorithms) > 1:
            yield f"algorithm: {name}"
        yield HCCL_HEADER
        for row in rows:
            if row.algorithm != name:
                continue
            verdict = "NULL" if row.wrong is None else ("failed" if row.wrong else "success")
            cells = (str(row.size), f"{row.time_ps / 1e6:.2f}", f"{row.algbw / 1e9:.5f}", verdict)
            yield " | ".join(f"{text:<{width}}" for text, width in zip(cells, widths, strict=True)).rstrip()


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """Rows with equal keys as CSV: numbers in full precision, nothing where there is no value."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
