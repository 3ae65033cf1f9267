"""Findings in pictures: where on which rank the operations stand that a finding names."""

from __future__ import annotations

from string import ascii_uppercase
from typing import NamedTuple

from a2a3sim.reports.findings import finding_title
from a2a3sim.result import RunResult
from a2a3sim.trace.kinds import KINDS

__all__ = ["MARK_COLOURS", "Mark", "finding_marks", "mark_titles"]

MARK_COLOURS = {"error": "#C00000", "warning": "#E69F00"}
_SHOWN = 6  # findings; the gravest come first
_TITLE = 70  # characters


class Mark(NamedTuple):
    """One operation of a finding: ``A1`` is the first site of the first finding."""

    label: str
    severity: str
    rank: int
    time_ps: int
    pipe: str


def _shown(result: RunResult):
    """(letter, finding) of those that are marked: errors and warnings that nobody has accepted."""
    found = [f for f in result.findings if f.severity in MARK_COLOURS and f.suppressed is None]
    return list(zip(ascii_uppercase, found[:_SHOWN], strict=False))


def finding_marks(result: RunResult) -> list[Mark]:
    """The marks of a run's findings, in the clock's ps."""
    marks = []
    for letter, finding in _shown(result):
        lines: dict[tuple, int] = {}
        for site in finding.sites:
            number = lines.setdefault((site.file, site.line), len(lines) + 1)
            if site.rank is not None and site.time_ps is not None:
                pipe = KINDS[site.operation].pipe if site.operation in KINDS else "S"
                marks.append(Mark(f"{letter}{number}", finding.severity, site.rank, site.time_ps, pipe))
    return marks


def mark_titles(result: RunResult) -> list[tuple[str, str]]:
    """(severity, words) of each finding that is marked."""
    titles = []
    for letter, finding in _shown(result):
        text = f"{letter}: {finding_title(finding)}"
        titles.append((finding.severity, text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"))
    return titles
