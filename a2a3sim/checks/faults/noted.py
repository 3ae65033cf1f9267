"""Findings from what the front end noted while the program ran."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from a2a3sim.checks.wording import ranks_text
from a2a3sim.language.context import Note
from a2a3sim.result import Finding, FindingSite
from a2a3sim.trace.record import resolve_site

__all__ = ["noted_findings"]

_KINDS: dict[str, tuple[str, str | None, Literal["error", "warning", "note"], str]] = {
    "remainder": (
        "out-of-bounds",
        "remainder",
        "warning",
        "keep the left side of the division from being negative",
    ),
    "undefined": ("uninitialised", None, "error", "write it first, or do not use it"),
}


def noted_findings(notes: Iterable[Note], raced: Iterable[str] = ()) -> list[Finding]:
    """One finding for each line and kind, over all ranks.

    Args:
        raced: names of memory objects with races: which values these had is for the races to tell.
    """
    raced = set(raced)
    groups: dict[tuple[str, object], list[Note]] = {}
    for note in notes:
        if note.kind == "undefined" and any(name in note.message for name in raced):
            continue
        groups.setdefault((note.kind, note.site), []).append(note)
    findings = []
    for (kind, _), group in groups.items():
        name, subtype, severity, fix = _KINDS[kind]
        group.sort(key=lambda note: note.rank)
        first = group[0]
        ranks = [note.rank for note in group]
        same = {note.message for note in group}
        message = f"on rank {first.rank} {first.message}"
        if len(group) > 1:
            message += f" ({'the same' if len(same) == 1 else 'likewise'} on {ranks_text(ranks[1:])})"
        findings.append(
            Finding(
                kind=name, subtype=subtype, severity=severity, ranks=ranks, sites=[_site(first)],
                message=message[0].upper() + message[1:] + ".", fix=fix,
            )
        )  # fmt: skip
    return sorted(findings, key=lambda f: (f.sites[0].file, f.sites[0].line, f.kind))


def _site(note: Note) -> FindingSite:
    place = resolve_site(note.site)
    lane = note.lane
    return FindingSite(
        file=place.file, line=place.line, source=place.source, rank=note.rank, time_ps=note.time,
        call=lane.call if lane is not None else 0, dispatch=lane.dispatch if lane is not None else 0,
    )  # fmt: skip
