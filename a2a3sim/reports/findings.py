"""Findings in words: what terminals print, and what pictures and JSON take their names from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from a2a3sim.checks import ranks_text
from a2a3sim.result import Finding, FindingSite
from a2a3sim.units import format_time

__all__ = ["finding_lines", "finding_title", "place_text", "verdict_lines"]

_SITES = 6  # of one finding; more are counted
_WIDTH = 110
_INDENT = "    "


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Each finding in a few lines: what and where, its source lines, what can go wrong, and the cheapest fix."""
    for finding in findings:
        if finding.suppressed is not None:
            yield f"accepted {finding.severity}: {finding_title(finding)}"
            yield from _site_lines(finding)
            yield from _wrapped(f"reason: {finding.suppressed}", _INDENT + "        ")
            continue
        yield f"{finding.severity}: {finding_title(finding)}"
        yield from _site_lines(finding)
        yield from _wrapped(finding.message)
        if finding.fix:
            yield from _wrapped(f"fix: {finding.fix}", _INDENT + "     ")
        if finding.witness is not None:
            yield from _wrapped(f"witness: {finding.witness.message}", _INDENT + "         ")


def finding_title(finding: Finding) -> str:
    """Kind and place: ``race (WAR): bytes 0-255 of data of ranks 0..3``."""
    kind = f"{finding.kind} ({finding.subtype})" if finding.subtype else finding.kind
    place = place_text(finding.where)
    return f"{kind}: {place}" if place else kind


def place_text(where) -> str:
    """A finding's memory object and range."""
    if not isinstance(where, dict) or not where.get("memory"):
        return ""
    of = f" of {ranks_text(where['ranks'])}" if where.get("ranks") else ""
    names = where.get("names")
    if names:
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return shown + of
    memory = where["memory"] if isinstance(where["memory"], str) else ", ".join(where["memory"])
    span = where.get("bytes")
    return f"bytes {span[0]}-{span[1] - 1} of {memory}{of}" if span else memory + of


def verdict_lines(verdict: str | None) -> Iterator[str]:
    """The verdict of a run without errors and warnings, and what it rests on."""
    if verdict:
        yield from textwrap.wrap(verdict, _WIDTH, subsequent_indent=_INDENT)


def _site_lines(finding: Finding) -> Iterator[str]:
    places: dict[tuple, list[FindingSite]] = {}
    for site in finding.sites:
        places.setdefault((site.file, site.line, site.source, site.operation), []).append(site)
    numbered = len(finding.sites) > 1 and len(places) == len(finding.sites)
    # With one dispatch for each rank its number says nothing more.
    calls = len({s.call for s in finding.sites}) > 1
    several = calls or any(s.dispatch != s.rank for s in finding.sites)
    for number, ((file, line, source, _), sites) in enumerate(list(places.items())[:_SITES], 1):
        mark = f"({number}) " if numbered else ""
        yield f"{_INDENT}{mark}{file}:{line}: {source}{_who(sites, several, calls)}"
    if len(places) > _SITES:
        yield f"{_INDENT}and {len(places) - _SITES} more places"


def _who(sites: list[FindingSite], several: bool, calls: bool) -> str:
    """``  [rank 2, dispatch 1, 4.1 us]``."""
    ranks = sorted({s.rank for s in sites if s.rank is not None})
    parts = [ranks_text(ranks)] if ranks else []
    first = sites[0]
    if several and len(sites) == 1:
        parts += [f"call {first.call}"] if calls else []
        parts.append(f"dispatch {first.dispatch}")
    if len(sites) == 1 and first.time_ps is not None:
        parts.append(format_time(first.time_ps))
    return f"  [{', '.join(parts)}]" if parts else ""


def _wrapped(text: str, hanging: str = "") -> Iterator[str]:
    for line in text.splitlines():
        indent = _INDENT + line[: len(line) - len(line.lstrip())]
        yield from textwrap.wrap(
            line.strip(), _WIDTH, initial_indent=indent, subsequent_indent=hanging or indent,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
