"""The operations of a run as columns: numpy arrays with one entry per operation.

    table = compiled.last_trace.table
    loads = table.where(lambda kind: kind.name == "remote_load")
    (table.drained - table.start)[loads]  # ps

Lanes stand by rank, core and start, the operations of each in program order: those of ``table.lanes[k]`` from
``table.first[k]`` up to ``table.first[k + 1]``. A column is made when it is first asked for, without Python code for each operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from a2a3sim.models.operation import Lane, Operation
from a2a3sim.trace.kinds import Kind, kind_of

__all__ = ["PIPES", "Column", "Mask", "Table", "summed"]

Column: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

PIPES = ("S", "MTE2", "V", "MTE3", "SDMA")
"""Pipes by their code in `Table.pipe`."""

_PIPE_CODES = {pipe: code for code, pipe in enumerate(PIPES)}
_NONE = {None: -1}


def summed(values: Column | Mask, groups: Column, count: int) -> Column:
    """Exact sums of ``values`` by group, int64 of shape [count]; ``groups`` are numbers in [0, count)."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, values)
    return sums


def _numbers(name: str) -> cached_property[Column]:
    return cached_property(lambda table: table.numbers(name))


class Table:
    """Columns over n operations, each int64 of shape [n]; what is unknown or missing is -1.

    Attributes:
        begun, issued, start, drained, visible, end, applied: times in the clock's ps
            (see `a2a3sim.models.operation.Operation`).
        order: as which update of its signal memory a notify was applied.
        nbytes: payload moved, in bytes; 0 for what moves none.
        peer: rank at the other end; -1 for local operations.
        lane, rank, core: position in `lanes`, and that lane's rank and core.
        kind, pipe: codes into `kinds` and `PIPES`.
        lanes, operations, first: the records behind the columns; ``first`` has shape [lanes + 1].
    """

    def __init__(self, lanes: Iterable[Lane]) -> None:
        self.lanes: list[Lane] = sorted(lanes, key=attrgetter("rank", "core", "start", "index"))
        each = [lane.operations for lane in self.lanes]
        self.operations: list[Operation] = list(chain.from_iterable(each))
        self.first: Column = np.cumsum([0, *map(len, each)])

    def __len__(self) -> int:
        return len(self.operations)

    def objects(self, name: str) -> list[Any]:
        """An attribute of all operations, as it is."""
        return list(map(attrgetter(name), self.operations))

    def numbers(self, name: str) -> Column:
        """An attribute of all operations that is a number for each of them."""
        return np.fromiter(map(attrgetter(name), self.operations), np.int64, len(self))

    begun = _numbers("begun")
    issued = _numbers("issued")
    start = _numbers("start")
    drained = _numbers("drained")
    visible = _numbers("visible")
    end = _numbers("end")
    applied = _numbers("applied")
    order = _numbers("order")
    nbytes = _numbers("nbytes")

    @cached_property
    def peer(self) -> Column:
        peers = self.objects("peer")
        return np.fromiter(map(_NONE.get, peers, peers), np.int64, len(self))

    @cached_property
    def lane(self) -> Column:
        return self.by_lane(range(len(self.lanes)))

    @cached_property
    def rank(self) -> Column:
        return self.by_lane(lane.rank for lane in self.lanes)

    @cached_property
    def core(self) -> Column:
        return self.by_lane(lane.core for lane in self.lanes)

    @cached_property
    def pipe(self) -> Column:
        return np.fromiter(map(_PIPE_CODES.__getitem__, self.objects("pipe")), np.int64, len(self))

    @cached_property
    def kind(self) -> Column:
        codes = {name: code for code, name in enumerate(self.kinds)}
        return np.fromiter(map(codes.__getitem__, self._names), np.int64, len(self))

    @cached_property
    def kinds(self) -> list[str]:
        """The names of all kinds that occur, in order of first appearance."""
        return list(dict.fromkeys(self._names))

    @cached_property
    def _names(self) -> list[str]:
        return self.objects("kind")

    @cached_property
    def remote(self) -> Mask:
        """Where the other end is another rank (moves and notifies), bool [n]."""
        found: Mask = (self.peer >= 0) & (self.peer != self.rank)
        return found

    def on(self, pipe: str) -> Mask:
        """Where an operation runs on a pipe, bool [n]."""
        return np.equal(self.pipe, _PIPE_CODES[pipe])

    def where(self, test: Callable[[Kind], bool]) -> Mask:
        """Where the operation's `Kind` passes a test, bool [n]."""
        passed: Mask = np.array([test(kind_of(name)) for name in self.kinds], np.bool_)[self.kind]
        return passed

    def by_lane(self, values: Iterable[int]) -> Column:
        """A number of each lane, repeated for each of its operations."""
        return np.repeat(np.fromiter(values, np.int64, len(self.lanes)), np.diff(self.first))
