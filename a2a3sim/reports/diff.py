"""What differs between two results: parameters, times, bytes, findings and numerics."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from a2a3sim.result import Finding, RunResult
from a2a3sim.trace.critical_path import summary
from a2a3sim.units import format_size, format_time

__all__ = ["Change", "diff", "render_diff"]

_PARAMETERS = (
    "version", "program", "algorithm", "platform", "platform_hash", "seed", "skew_ps", "fences",
    "timing_only", "ranks", "device_labels", "placement", "cores", "dtype", "bytes_per_rank",
)  # fmt: skip
_TIMES = ("kernel_ps", "sync_ps", "total_ps", "bound_ps")
_COUNTS = ("rounds", "barriers")
_RANK_BYTES = ("remote_read_bytes", "remote_write_bytes", "local_read_bytes", "local_write_bytes")
_RANK_COUNTS = ("notifies", "waits")


class Change(NamedTuple):
    """One difference. ``where`` is the field, such as ``kernel_ps`` or ``per_rank[3].wait_ps``."""

    group: str  # parameters, times, bytes, counts, critical path, findings, numerics
    where: str
    before: Any
    after: Any


def diff(a: RunResult, b: RunResult) -> list[Change]:
    """Every difference between two results, in the order of the schema; empty for two equal runs.

    What the simulation cost (`cost`) is no part of the result. Where all ranks, pairs or links changed alike
    they fold into one, ``per_rank[*]``.
    """
    changes: list[Change] = []

    def compare(group: str, where: str, before: Any, after: Any) -> None:
        if before != after:
            changes.append(Change(group, where, before, after))

    for name in _PARAMETERS:
        compare("parameters", name, getattr(a, name), getattr(b, name))
    for key in sorted(a.overrides.keys() | b.overrides.keys()):
        compare("parameters", f"overrides.{key}", a.overrides.get(key), b.overrides.get(key))
    for name in _TIMES:
        compare("times", name, getattr(a, name), getattr(b, name))
    for name in ("start_ps", "end_ps", "wait_ps"):
        changes += _per_rank("times", name, a, b)
    for pipe in ("S", "MTE2", "V", "MTE3", "SDMA"):
        changes += _per_rank("times", f"pipe_busy_ps.{pipe}", a, b)
    before, after = ({p.name: p.end_ps - p.start_ps for p in run.phases} for run in (a, b))
    for name in dict.fromkeys([*before, *after]):
        compare("times", f"phases[{name}]", before.get(name), after.get(name))
    for name in (*_RANK_BYTES, "ub_peak_bytes"):
        changes += _per_rank("bytes", name, a, b)
    pairs = [{(p.src, p.dst): p.bytes for p in run.pairs} for run in (a, b)]
    both = sorted(pairs[0].keys() | pairs[1].keys())
    moved = [(f"{src}->{dst}", *(p.get((src, dst), 0) for p in pairs)) for src, dst in both]
    changes += _folded("bytes", "pairs[{}]", moved)
    links = [{link.name: link.bytes for link in run.links} for run in (a, b)]
    names = sorted(links[0].keys() | links[1].keys())
    carried = [(name, *(link.get(name, 0) for link in links)) for name in names]
    changes += _folded("bytes", "links[{}]", carried)
    for name in _COUNTS:
        compare("counts", name, getattr(a, name), getattr(b, name))
    for name in _RANK_COUNTS:
        changes += _per_rank("counts", name, a, b)
    shares = [
        {group: round(share, 1) for group, share in summary(run.critical_path).items()} for run in (a, b)
    ]
    for name in dict.fromkeys([*shares[0], *shares[1]]):
        compare("critical path", name, *(share.get(name, 0.0) for share in shares))
    changes += _findings(a, b)
    for name in ("ok", "wrong", "max_abs_error", "max_rel_error", "explanation"):
        compare("numerics", name, getattr(a.numerics, name, None), getattr(b.numerics, name, None))
    return changes


def _per_rank(group: str, name: str, a: RunResult, b: RunResult) -> list[Change]:
    values = [{use.rank: _get(use, name) for use in run.per_rank} for run in (a, b)]
    ranks = sorted(values[0].keys() | values[1].keys())
    found = [(rank, values[0].get(rank), values[1].get(rank)) for rank in ranks]
    return _folded(group, f"per_rank[{{}}].{name}", found)


def _folded(group: str, where: str, found: list[tuple]) -> list[Change]:
    """Changes of (key, before, after), one for all of them where all changed alike."""
    changed = [entry for entry in found if entry[1] != entry[2]]
    if len(changed) > 1 and len(changed) == len(found) and len({entry[1:] for entry in changed}) == 1:
        return [Change(group, where.format("*"), *changed[0][1:])]
    return [Change(group, where.format(key), before, after) for key, before, after in changed]


def _get(use, name: str):
    for part in name.split("."):
        use = getattr(use, part)
    return use


def _key(finding: Finding) -> tuple:
    """What makes two findings the same one: its kind and its places, not times or the ranks it folds."""
    places = sorted({(site.file, site.line) for site in finding.sites})
    return (finding.kind, finding.subtype or "", finding.severity, tuple(places))


def _findings(a: RunResult, b: RunResult) -> list[Change]:
    before, after = (Counter(_key(f) for f in run.findings) for run in (a, b))
    changes = []
    for key in dict.fromkeys([*before, *after]):
        if before[key] != after[key]:
            kind, subtype, severity, places = key
            where = ", ".join(f"{file}:{line}" for file, line in places)
            name = f"{severity} {kind}{f' ({subtype})' if subtype else ''}{f' at {where}' if where else ''}"
            changes.append(Change("findings", name, before[key], after[key]))
    return changes


def render_diff(changes: list[Change], limit: int | None = 12) -> Group:
    """The differences as tables for people, at most ``limit`` rows a group (None: all)."""
    if not changes:
        return Group(Text("no difference: parameters, times, bytes, findings and numerics are equal"))
    parts: list = []
    for group in dict.fromkeys(change.group for change in changes):
        rows = [change for change in changes if change.group == group]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=group, title_justify="left")
        for name in ("", "before", "after", "change"):
            table.add_column(name, justify="left" if not name else "right", overflow="fold")
        for change in rows[:limit]:
            table.add_row(change.where, *_shown(change))
        if limit is not None and len(rows) > limit:
            table.add_row(f"… and {len(rows) - limit} more")
        parts.append(table)
    return Group(*parts)


def _shown(change: Change) -> tuple[str, str, str]:
    before, after = change.before, change.after
    relative = ""
    numbers = (
        isinstance(before, int | float) and isinstance(after, int | float) and not isinstance(before, bool)
    )
    if numbers and change.group != "parameters":
        if change.group == "critical path":
            return f"{before:.1f} %", f"{after:.1f} %", f"{after - before:+.1f}"
        relative = f"{100 * (after - before) / before:+.1f} %" if before else "new"
    if change.group == "findings":
        return (
            str(before),
            str(after),
            "gone" if not after else ("new" if not before else f"{after - before:+d}"),
        )
    show = _person(change)
    return show(before), show(after), relative


def _person(change: Change):
    if change.group == "times" or change.where.endswith("_ps"):
        return lambda value: "none" if value is None else format_time(value)
    if change.group == "bytes" or change.where == "bytes_per_rank":
        return lambda value: "none" if value is None else format_size(value)
    return lambda value: "none" if value is None else str(value)
