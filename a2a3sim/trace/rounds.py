"""Rounds: the longest chain of remote transfers of which each needs the one before.

A transfer's depth is one more than that of whatever it depends on. Depth passes through tiles (operands),
through a core's own memory (a read of bytes it wrote), through signals (a notify carries that of all earlier
memory accesses of its core, a wait acquires that of every update applied to its cell before it ended),
through device barriers and from one dispatch to the next. What merely comes later, because of a fence, a full
pipe, space or a shared link, adds no round: tiles of one chunk are one round however they are cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from a2a3sim.models.memory import Access, Memory
from a2a3sim.models.operation import UNKNOWN, Cell, Lane, Operation
from a2a3sim.models.overlap import overlaps
from a2a3sim.trace.table import Table

__all__ = ["round_count"]

_NOTIFY, _WAIT, _MEET, _COMPUTE, _LOAD, _STORE = range(1, 7)  # what can pass on depth

_Group: TypeAlias = tuple[int, int, int, int]


class _Cell:
    """The updates of one signal cell in the order in which they were applied, and their depth so far."""

    __slots__ = ("applied", "depths", "updates")

    def __init__(self) -> None:
        self.updates: list[Operation] = []
        self.applied: list[int] = []
        self.depths: list[int] = []  # running maximum over a prefix of the updates


class _Written:
    """What a core has written to one memory object as far as it depends on some transfer."""

    __slots__ = ("deepest", "entries")

    def __init__(self) -> None:
        self.deepest = 0
        self.entries: list[tuple[Access, int]] = []

    def add(self, access: Access, depth: int) -> None:
        self.entries.append((access, depth))
        self.deepest = max(self.deepest, depth)

    def under(self, access: Access, least: int) -> int:
        """The deepest write that a read overlaps, if it is deeper than ``least``."""
        for other, depth in reversed(self.entries):  # what was written last is mostly what is read
            if depth > least and overlaps(access, other):
                least = depth
                if least == self.deepest:
                    break
        return least


class _Meeting:
    """One device barrier: what its cores brought, until the last has come."""

    __slots__ = ("came", "depth")

    def __init__(self) -> None:
        self.came = 0
        self.depth = 0


def _group(lane: Lane) -> _Group:
    return (lane.call, lane.dispatch, lane.task, lane.rank)


class _Chains:
    """The state of the walk over all lanes."""

    def __init__(self, table: Table) -> None:
        self.notified: dict[Operation, int] = {}  # notify -> the depth it carries
        self.exit: dict[Lane, int] = {}  # lane -> depth at its end
        self.cells: dict[Cell, _Cell] = {}
        self.meetings: dict[tuple[_Group, int], _Meeting] = {}
        self.blocks: dict[_Group, list[Lane]] = {}  # the lanes of one kernel on one device
        self.deepest = 0
        for lane in table.lanes:
            self.blocks.setdefault(_group(lane), []).append(lane)
        updates = np.flatnonzero(table.where(lambda kind: kind.name == "notify") & (table.applied >= 0))
        applied = table.applied[updates]
        order = np.lexsort((table.order[updates], applied))
        for k, time in zip(updates[order].tolist(), applied[order].tolist(), strict=True):
            op = table.operations[k]
            cell = self.cells.get(op.cell)
            if cell is None:
                cell = self.cells[op.cell] = _Cell()
            cell.updates.append(op)
            cell.applied.append(time)

    def state(self, *left: int) -> tuple[int, ...]:
        """Numbers of which one changes with every progress."""
        came = sum(meeting.came for meeting in self.meetings.values())
        return (*left, len(self.notified), len(self.exit), came)

    def acquired(self, wait: Operation) -> int | None:
        """The depth a wait acquires; None while a notify it may have seen has not been walked."""
        cell = self.cells.get(wait.cell)  # type: ignore[arg-type]  # a wait has one
        if cell is None:
            return 0
        count = bisect_right(cell.applied, wait.end)
        depths = cell.depths
        while len(depths) < count:
            depth = self.notified.get(cell.updates[len(depths)])
            if depth is None:
                return None
            depths.append(max(depth, depths[-1]) if depths else depth)
        return depths[count - 1] if count else 0


def _steps(table: Table) -> list[int]:
    """What the walk does at each operation: one of the constants above."""
    step = np.zeros(len(table), np.int64)
    step[table.where(lambda kind: kind.name == "notify")] = _NOTIFY
    step[table.where(lambda kind: kind.waits)] = _WAIT
    step[table.where(lambda kind: kind.name == "sync_all")] = _MEET
    step[table.on("V")] = _COMPUTE
    step[table.on("MTE2")] = _LOAD
    step[table.on("MTE3")] = _STORE
    return step.tolist()


def _walk(lane: Lane, steps: list[int], remote: list[bool], chains: _Chains) -> Iterator[None]:
    """Walk one lane; yields whenever it must wait for another lane to be walked further."""
    depth: dict[Operation, int] = {}
    written: dict[Memory, _Written] = {}
    scalar = 0  # what the scalar pipe depends on, by its waits
    accessed = 0  # the deepest memory access so far
    half = 0  # the load half of the put or get that comes next
    met = 0
    notified, acquired = chains.notified, chains.acquired
    _, earlier = (lane.operations and lane.operations[0].after) or (None, None)
    if earlier is not None and earlier.lane is not lane:  # the dispatch before
        for other in chains.blocks[_group(earlier.lane)]:
            while other not in chains.exit:
                yield
            scalar = max(scalar, chains.exit[other])
    for op, step, far in zip(lane.operations, steps, remote, strict=True):
        if step == _NOTIFY:
            notified[op] = scalar if scalar > accessed else accessed
        elif step == _WAIT:
            if op.end == UNKNOWN:
                break
            found = acquired(op)
            while found is None:
                yield
                found = acquired(op)
            scalar = max(scalar, found)
        elif step == _COMPUTE:
            mine = scalar
            for producer in op.operands:
                if producer in depth and depth[producer] > mine:
                    mine = depth[producer]
            depth[op] = mine
        elif step == _LOAD:
            mine = scalar
            if written:
                for access in op.reads:
                    before = written.get(access.memory)
                    if before is not None and before.deepest > mine:
                        mine = before.under(access, mine)
            if far:
                mine += 1
                chains.deepest = max(chains.deepest, mine)
            accessed = max(accessed, mine)
            depth[op] = half = mine
        elif step == _STORE:
            mine = max(scalar, half) if op.kind in ("put", "get") else scalar
            for producer in op.operands:
                mine = max(mine, depth.get(producer, 0))
            if far:
                mine += 1
                chains.deepest = max(chains.deepest, mine)
            accessed = max(accessed, mine)
            if mine:
                for access in op.writes:
                    written.setdefault(access.memory, _Written()).add(access, mine)
            depth[op] = mine
        elif step == _MEET:
            group = _group(lane)
            meeting = chains.meetings.setdefault((group, met), _Meeting())
            met += 1
            meeting.came += 1
            meeting.depth = max(meeting.depth, scalar, accessed)
            while meeting.came < len(chains.blocks[group]):
                yield
            scalar = max(scalar, meeting.depth)
    chains.exit[lane] = max(scalar, accessed)


def round_count(table: Table) -> int:
    """The longest chain of dependent remote transfers over all lanes."""
    chains = _Chains(table)
    steps, remote, first = _steps(table), table.remote.tolist(), table.first.tolist()
    walks = [
        _walk(lane, steps[low:high], remote[low:high], chains)
        for lane, low, high in zip(table.lanes, first, first[1:], strict=False)
    ]
    state: tuple[int, ...] = ()
    while walks and state != (state := chains.state(len(walks))):
        walks = [walk for walk in walks if next(walk, True) is None]
    return chains.deepest  # what is left waits for something that never happened
