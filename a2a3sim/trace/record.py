"""The trace of a run: everything that happened, once, for results, pictures and checks alike."""

from __future__ import annotations

import linecache
import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from a2a3sim.collector import collector_paused
from a2a3sim.models.memory import Memory
from a2a3sim.models.operation import Lane, Operation
from a2a3sim.result import RunResult
from a2a3sim.trace import packing, store

__all__ = ["DispatchRecord", "Site", "Trace", "resolve_site"]


class Site(NamedTuple):
    """A place in the user's program."""

    file: str  # relative to the working directory where it lies below it, POSIX form
    line: int
    source: str
    function: str


@dataclass(slots=True)
class DispatchRecord:
    """One kernel started on one device by the host body."""

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
    """What a run recorded.

    Attributes:
        lanes: one per core and kernel, each with its operations in program order.
        edges: pairs of (dispatch index, task) that declared tensor directions order on one rank.
        kept: the windows outlive the call as they are, so that nothing joins the devices between two calls.
        set_writes_line: a Set writes its whole 64-byte line back (the platform's word).
        granule: bytes of which addresses and lengths of transfers should be multiples, or None.
    """

    lanes: list[Lane] = field(default_factory=list)
    dispatches: list[DispatchRecord] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    capacities: list = field(default_factory=list)
    fences: str = "statement"
    skew_ps: int = 0
    atomic_ps: int = 0  # time of one update of a signal line
    edges: list = field(default_factory=list)
    domains: dict = field(default_factory=dict)  # window buffer -> devices
    builtins: set = field(default_factory=set)  # sites at which built-in collectives were called
    kept: bool = False
    set_writes_line: bool = True
    granule: int | None = None

    def operations(self):
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
    def place(site) -> tuple[str, int]:
        """File and line of a (code object, instruction offset) pair."""
        return resolve_site(site)[:2]

    @staticmethod
    def site(op: Operation) -> Site:
        """Where in the user's program an operation stands."""
        return resolve_site(op.site)


def resolve_site(site) -> Site:
    """File, line, source text and function of a (code object, instruction offset) pair.

    In a saved trace it is resolved already: (Site, instruction offset).
    """
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
