"""What a worker of a sweep does: simulate a chunk of points and hand back their rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from a2a3sim import A2A3Error, ConfigError
from a2a3sim.experiments.runner import Point, run_point
from a2a3sim.experiments.sweep_rows import row
from a2a3sim.run import Session, current_session, session

__all__ = ["Failure", "run_chunk"]


class Failure(NamedTuple):
    """A point that could not be simulated; ``usage`` if its settings are at fault, not its program."""

    number: int
    usage: bool
    message: str


def run_chunk(
    points: Sequence[tuple[int, Point]], stated: Mapping[str, str | None]
) -> tuple[list[tuple[int, list]], float, Failure | None]:
    """Rows of the points by number, the seconds their simulation took, and the failure that ended the chunk."""
    rows: list[tuple[int, list]] = []
    busy = 0.0
    shared = current_session() or Session()  # points on equal machines share its paths
    for number, point in points:
        started = time.perf_counter()
        try:
            with session(shared):
                outcome = run_point(point)
        except A2A3Error as error:
            message = str(error).splitlines()[0] if str(error) else type(error).__name__
            return rows, busy, Failure(number, isinstance(error, ConfigError), message)
        simulated = time.perf_counter()
        rows.append((number, row(outcome, stated)))
        written = time.perf_counter()
        del outcome  # taking a trace apart is part of what its simulation costs
        busy += simulated - started + time.perf_counter() - written
    return rows, busy, None
