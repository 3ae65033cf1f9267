"""What happened in a run, and what is read from it.

A `Trace` holds a `Lane` for each core and kernel, a lane its `Operation` records in program order; every time is a
whole number of ps of the run's clock, `UNKNOWN` (-1) where something never happened. ``RunConfig(keep_trace=True)``
leaves the trace of a call at ``compiled.last_trace``::

    compiled(x, y, config=RunConfig(keep_trace=True))
    print(*a2a3sim.trace.line_trace(compiled.last_trace), sep="\\n")

What a kind of operation means says `kind_of`; `remote`, `side`, `ends` and `took` ask one operation. `barriers_of`
finds where cores stop for others, `phase_spans` what they do in between, `round_count` the longest chain of remote
transfers, `walk` what the time went to, `rank_lanes` what each pipe did when.
"""

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim.models.memory import Access, Memory
    from a2a3sim.models.operation import UNKNOWN, Lane, Operation
    from a2a3sim.trace.barriers import Barrier, barrier_count, barriers_of
    from a2a3sim.trace.critical_path import GROUPS, summary, walk
    from a2a3sim.trace.kinds import KINDS, Kind, ends, kind_of, remote, side, took
    from a2a3sim.trace.lanes import RankLanes, rank_lanes
    from a2a3sim.trace.phases import Span, phase_spans, phase_union
    from a2a3sim.trace.record import DispatchRecord, Site, Trace, resolve_site
    from a2a3sim.trace.rounds import round_count
    from a2a3sim.trace.table import PIPES, Table
    from a2a3sim.trace.text import line_trace

__all__ = [
    "GROUPS", "KINDS", "PIPES", "UNKNOWN", "Access", "Barrier", "DispatchRecord", "Kind", "Lane", "Memory", "Operation",
    "RankLanes", "Site", "Span", "Table", "Trace", "barrier_count", "barriers_of", "ends", "kind_of", "line_trace",
    "phase_spans", "phase_union", "rank_lanes", "remote", "resolve_site", "round_count", "side", "summary", "took",
    "walk",
]  # fmt: skip

__getattr__, __dir__ = lazy(__name__)
