"""A trace as text: one line an operation, for reading, searching and comparing."""

from __future__ import annotations

from collections.abc import Iterator

from a2a3sim.models.operation import UNKNOWN, Operation
from a2a3sim.trace.record import Trace

__all__ = ["line_trace"]


def line_trace(trace: Trace) -> Iterator[str]:
    """One line for each operation, lane by lane in the order of `Trace.lanes`, in program order within a lane.

    Ten fields, separated by single blanks: ``rank core dispatch kind peer bytes begun issued start end``. Times are
    in ps from the first start of a kernel, a whole number each; ``-`` stands for a peer or a time that there is not.
    Equal runs give equal lines, and a later version may add fields at the end only::

        0 0 0 remote_load 1 4096 120000 140000 140000 1340000
    """
    first = min((lane.start for lane in trace.lanes if lane.start != UNKNOWN), default=0)
    for lane in trace.lanes:
        where = f"{lane.rank} {lane.core} {lane.dispatch}"
        for op in lane.operations:
            times = " ".join(_time(t, first) for t in (op.begun, op.issued, op.start, op.end))
            yield f"{where} {op.kind} {_peer(op)} {op.nbytes} {times}"


def _time(time: int, first: int) -> str:
    return "-" if time == UNKNOWN else str(time - first)


def _peer(op: Operation) -> str:
    return "-" if op.peer is None else str(op.peer)
