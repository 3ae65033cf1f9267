"""The finding for an error that ended a run: what the machine cannot do, as data."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence

from a2a3sim.checks.wording import ranks_text
from a2a3sim.errors import A2A3Error
from a2a3sim.result import Finding, FindingSite
from a2a3sim.trace.record import resolve_site

__all__ = ["failure_findings"]

#: How the messages of the machine's and the language's errors begin, and the kind of finding each is.
_KINDS = {
    "out of bounds": "out-of-bounds",
    "capacity": "capacity",
    "type": "type",
    "alignment": "alignment",
    "livelock": "livelock",
}
_PLACE = re.compile(r"^(?P<file>.*):(?P<line>\d+): $")
_RANK = re.compile(r"rank (\d+)")


def failure_findings(errors: Sequence[A2A3Error]) -> list[Finding]:
    """One finding for each line at which kernels failed, over all ranks.

    Args:
        errors: what ended the run, of the lowest rank first.
    """
    found: dict[tuple[object, ...], Finding] = {}
    for error in errors:
        finding = _finding(error)
        place = finding.sites[0] if finding.sites else None
        key = (finding.kind, place and (place.file, place.line))
        first = found.setdefault(key, finding)
        if first is not finding:
            first.ranks = sorted({*first.ranks, *finding.ranks})
    for finding in found.values():
        if len(finding.ranks) > 1:
            finding.message += f" (rank {finding.ranks[0]}; likewise {ranks_text(finding.ranks[1:])})"
    return list(found.values())


def _finding(error: A2A3Error) -> Finding:
    """Kind, place and message of an error; ``program`` where it is the program's own exception or misuse."""
    message = str(error.args[0]) if error.args else str(error)
    where: FindingSite | None
    if error.site is not None:
        place = resolve_site(error.site)
        rank = error.lane.rank
        where = FindingSite(file=place.file, line=place.line, source=place.source, rank=rank)
        text = message.partition(f"rank {rank}: ")[2] or message
    else:
        where = _stated_place(error)
        rank = where.rank if where is not None else None
        prefix = error.place + (f"{error.who}: " if error.who else "")
        text = message.removeprefix(prefix)
    start, kind = next((item for item in _KINDS.items() if text.startswith(item[0])), ("", "program"))
    return Finding(
        kind=kind,
        severity="error",
        ranks=[] if rank is None else [rank],
        sites=[] if where is None else [where],
        message=text.removeprefix(f"{start}: "),
    )


def _stated_place(error: A2A3Error) -> FindingSite | None:
    match = _PLACE.match(error.place)
    if match is None:
        return None
    rank = _RANK.search(error.who)
    file, line = match["file"], int(match["line"])
    return FindingSite(
        file=file,
        line=line,
        source=linecache.getline(file, line).strip(),
        rank=int(rank[1]) if rank else None,
    )
