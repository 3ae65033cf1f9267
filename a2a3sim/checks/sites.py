"""Operations as findings name them."""

from __future__ import annotations

from a2a3sim.models.operation import Operation
from a2a3sim.result import FindingSite
from a2a3sim.trace.record import resolve_site

__all__ = ["site_of"]


def site_of(op: Operation, time_ps: int | None) -> FindingSite:
    """Line, rank and call of an operation; ``time_ps`` is when it matters."""
    lane = op.lane
    file, line, source, _ = resolve_site(op.site) if op.site is not None else (op.kind, 0, "", "")
    return FindingSite(
        file=file,
        line=line,
        source=source,
        rank=lane.rank,
        operation=op.kind,
        time_ps=time_ps,
        call=lane.call,
        dispatch=lane.dispatch,
    )
