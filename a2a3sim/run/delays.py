"""Delays of single cores at single operations: how a schedule is reached on purpose.

A delay is written ``RANK@FILE:LINE#K=TIME``: before the k-th operation that a core of this rank issues from
this line (from 0, which may be left away) its scalar pipe stands still. ``RANK.CORE`` means one core only,
``RANK@D#K=TIME`` the k-th operation of the rank's dispatch D. With ``TIME:flight`` the core goes on, and the
operation's bytes are under way so much longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from a2a3sim.errors import ConfigError
from a2a3sim.models.hold import later
from a2a3sim.models.operation import Lane, Move, Operation
from a2a3sim.trace.record import resolve_site
from a2a3sim.units import format_time, parse_time

__all__ = ["Delay", "Holds", "parse_delays", "same_file"]

_FORM = "RANK@FILE:LINE#K=TIME, for example 2@prog.py:40#0=10us"
_FLIGHT = ":flight"
_WHO = re.compile(r"(\d+)(?:\.(\d+))?")
_WHERE = re.compile(r"(?:(?P<dispatch>\d+)|(?P<file>.+):(?P<line>\d+))")


class Delay(NamedTuple):
    """One delay; ``file`` and ``line``, or ``dispatch``, say where; ``flight``: of the bytes alone."""

    rank: int
    core: int | None
    file: str | None
    line: int | None
    dispatch: int | None
    occurrence: int
    time_ps: int
    flight: bool = False

    def __str__(self) -> str:
        who = f"{self.rank}" if self.core is None else f"{self.rank}.{self.core}"
        where = f"{self.file}:{self.line}" if self.dispatch is None else f"{self.dispatch}"
        time = format_time(self.time_ps, exact=True).replace(" ", "")
        return f"{who}@{where}#{self.occurrence}={time}{_FLIGHT if self.flight else ''}"


def parse_delays(delays: Mapping, ranks: int) -> tuple[Delay, ...]:
    """Delays from ``RunConfig.delay``.

    Args:
        delays: (rank, place, occurrence) -> time, with place ``"file.py:40"`` or the number of a dispatch and
            rank a number or ``"rank.core"``; or the same as one text, ``"2@prog.py:40#0"``.

    Raises:
        ConfigError: a key or time that does not say what is delayed, or a rank that the run has not.
    """
    found = []
    for key, time in delays.items():
        who, where, occurrence = _key(key)
        match, place = _WHO.fullmatch(who), _WHERE.fullmatch(where)
        if match is None or place is None or not occurrence.isdigit():
            raise ConfigError(f"delay must look like {_FORM}, got {key!r}")
        rank = int(match[1])
        if rank >= ranks:
            raise ConfigError(f"delay: rank {rank} does not exist, the run has ranks 0..{ranks - 1}")
        core, file, line, dispatch = match[2], place["file"], place["line"], place["dispatch"]
        flight = isinstance(time, str) and time.endswith(_FLIGHT)
        found.append(
            Delay(
                rank=rank,
                core=None if core is None else int(core),
                file=file,
                line=None if line is None else int(line),
                dispatch=None if dispatch is None else int(dispatch),
                occurrence=int(occurrence),
                time_ps=parse_time(time.removesuffix(_FLIGHT) if flight else time),
                flight=flight,
            )
        )
    return tuple(found)


def _key(key) -> tuple[str, str, str]:
    if isinstance(key, str):
        who, _, rest = key.partition("@")
        where, hash_sign, occurrence = rest.rpartition("#")
        return (who, where, occurrence) if hash_sign else (who, rest, "0")
    if isinstance(key, tuple) and len(key) == 3:
        return str(key[0]), str(key[1]), str(key[2])
    return "", "", ""


def same_file(shown: str, wanted: str) -> bool:
    """Whether a path as reports show it is the one that somebody wrote: the same, or its last parts."""
    wanted = wanted.removeprefix("./")
    return shown == wanted or shown.endswith(f"/{wanted}") or wanted.endswith(f"/{shown}")


class Holds:
    """How long each core of one run stands still before its operations.

    Args:
        watch: told of every operation before it is issued, with how many its core has issued from its line.
    """

    def __init__(
        self, delays: Iterable[Delay], watch: Callable[[Operation, int], None] | None = None
    ) -> None:
        self._delays = tuple(delays)
        self._watch = watch
        self._issued: dict[tuple, int] = {}  # by rank, core and line or dispatch

    def of(self, lane: Lane) -> Callable[[Operation], int] | None:
        """What to ask before each operation of a lane; None if none of it matters."""
        mine = [d for d in self._delays if d.rank == lane.rank and d.core in (None, lane.core)]
        if not mine and self._watch is None:
            return None
        who = (lane.rank, lane.core)

        def before(op: Operation) -> int:
            place = resolve_site(op.site)
            of_line = self._count((*who, place.file, place.line))
            of_dispatch = self._count((*who, lane.dispatch))
            if self._watch is not None:
                self._watch(op, of_line)
            held = 0
            for delay in mine:
                if delay.dispatch is not None:
                    there = delay.dispatch == lane.dispatch and delay.occurrence == of_dispatch
                else:
                    there = delay.line == place.line and delay.occurrence == of_line
                    there = there and delay.file is not None and same_file(place.file, delay.file)
                if there and not delay.flight:
                    held += delay.time_ps
                elif there and isinstance(op, Move):
                    op.path = later(op.path, delay.time_ps)
            return held

        return before

    def _count(self, key: tuple) -> int:
        seen = self._issued[key] = self._issued.get(key, -1) + 1
        return seen
