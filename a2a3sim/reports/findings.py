"""Findings in words, for terminals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from a2a3sim.result import Finding, Site

__all__ = ["finding_lines"]

_SITES = 6  # of one finding; more are counted


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Each finding as a few lines: what and who, where in the program, and the cheapest fix."""
    for finding in findings:
        kind = f"{finding.kind} ({finding.subtype})" if finding.subtype else finding.kind
        first, *more = finding.message.splitlines() or [""]
        yield f"{finding.severity}: {kind}: {first}"
        yield from (f"    {line}" for line in more)
        places: dict[tuple, list[Site]] = {}
        for site in finding.sites:
            places.setdefault((site.file, site.line, site.source), []).append(site)
        for (file, line, source), sites in list(places.items())[:_SITES]:
            who = sorted({s.rank for s in sites if s.rank is not None})
            shown = f" [rank{'s' if len(who) > 1 else ''} {', '.join(map(str, who))}]" if who else ""
            yield f"    {file}:{line}: {source}{shown}"
        if len(places) > _SITES:
            yield f"    and {len(places) - _SITES} more places"
        if finding.fix:
            yield f"    fix: {finding.fix}"
