"""The trace of a run: everything that happened, once, for results, pictures and checks alike."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from a2a3sim.collector import collector_paused
from a2a3sim.models.capacity import CapacityUse
from a2a3sim.models.memory import Memory
from a2a3sim.models.operation import UNKNOWN, Lane, Operation
from a2a3sim.models.operation import Site as Place
from a2a3sim.result import RunResult
from a2a3sim.trace import packing, store
from a2a3sim.trace.table import Table

__all__ = ["DispatchRecord", "Site", "Trace", "resolve_site"]


class Site(NamedTuple):
    """A place in the user's program."""

    file: str  # relative to the working directory where it lies below it, POSIX form
    line: int
    source: str
    function: str


@dataclass(slots=True)
class DispatchRecord:
    """One kernel started on one device by the host body; times in the clock's ps, -1 until known."""

    index: int
    kernel: str
    rank: int
    device: int
    cores: int = 1
    start: int = -1
    end: int = -1
    call: int = 0


@dataclass(slots=True)
class Trace:
    """What a run recorded; times in the clock's ps.

    Attributes:
        lanes: one per core and kernel, each with its operations in program order.
        memories: every memory object that the run made.
        capacities: what each link and memory carried.
        fences: ``statement``, ``notify`` or ``explicit``.
        atomic_ps: time of one update of a signal line.
        edges: pairs of (dispatch index, task) that declared tensor directions order on one rank.
        domains: the devices of each window buffer.
        builtins: sites at which built-in collectives were called.
        kept: the windows outlive the call as they are, so that nothing joins the devices between two calls.
        set_writes_line: a Set writes its whole 64-byte line back (the platform's word).
        granule: bytes of which addresses and lengths of transfers should be multiples, or None.
    """

    lanes: list[Lane] = field(default_factory=list)
    dispatches: list[DispatchRecord] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    capacities: list[CapacityUse] = field(default_factory=list)
    fences: str = "statement"
    skew_ps: int = 0
    atomic_ps: int = 0
    edges: list[tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=list)
    domains: dict[str, tuple[int, ...]] = field(default_factory=dict)
    builtins: set[Place] = field(default_factory=set)
    kept: bool = False
    set_writes_line: bool = True
    granule: int | None = None

    _table: Table | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def table(self) -> Table:
        """The operations of the lanes that started as columns; made once, when the run is over."""
        if self._table is None:
            self._table = Table(lane for lane in self.lanes if lane.start != UNKNOWN)
        return self._table

    def operations(self) -> Iterator[Operation]:
        """Every operation, lane by lane, in program order."""
        for lane in self.lanes:
            yield from lane.operations

    def save(self, path: str | Path, result: RunResult) -> Path:
        """Write the trace and the result of its run into one file (schema ``a2a3sim.trace/1``)."""
        header, columns = packing.pack(self, resolve_site)
        told = {"result": result.model_dump(mode="json"), "verdict": result.verdict}
        return store.write(path, {**told, **header}, columns)

    @classmethod
    def load(cls, path: str | Path) -> tuple[Trace, RunResult]:
        """A saved trace and the result of its run; memories have no bytes, sites are places.

        Raises:
            ConfigError: the file cannot be read, is no saved trace, of another version, cut or changed.
        """
        header, columns = store.read(path)
        with store.reading(path), collector_paused():
            return cls(**packing.unpack(header, columns, Site, DispatchRecord)), store.result_of(header)

    @staticmethod
    def place(site: Place | None) -> tuple[str, int]:
        """File and line of a (code object, instruction offset) pair."""
        return resolve_site(site)[:2]

    @staticmethod
    def site(op: Operation) -> Site:
        """Where in the user's program an operation stands."""
        return resolve_site(op.site)


def resolve_site(site: Place | None) -> Site:
    """File, line and source text of a (code object, instruction offset) pair, or of a saved place."""
    assert site is not None, "only traces put together by hand have operations without a site"
    code, lasti = site
    if isinstance(code, Site):
        return code
    return _resolved(code, lasti, code.co_filename)  # code objects are equal whatever file they come from


@lru_cache(maxsize=1 << 14)
def _resolved(code: CodeType, lasti: int, file: str) -> Site:
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= lasti < end and number is not None:
            line = number
            break
    path = os.path.normpath(file)
    source = linecache.getline(path, line).strip()
    relative = os.path.relpath(path) if os.path.exists(path) else path
    shown = path if relative.startswith("..") else relative
    return Site(shown.replace(os.sep, "/"), line, source, code.co_name)
