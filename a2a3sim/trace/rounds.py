"""Rounds: the longest chain of remote transfers of which each needs the one before.

A transfer's depth is one more than that of whatever it depends on. Depth passes through tiles (operands),
through a core's own memory (a read of bytes it wrote), through signals (a notify carries that of all earlier
memory accesses of its core, a wait acquires that of every update applied to its cell before it ended),
through device barriers and from one dispatch to the next. What merely comes later, because of a fence, a full
pipe, space or a shared link, adds no round: tiles of one chunk are one round however they are cut.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from a2a3sim.models.operation import UNKNOWN
from a2a3sim.models.overlap import overlaps

if TYPE_CHECKING:
    from a2a3sim.models.memory import Memory

__all__ = ["round_count"]


class _Cell:
    """The updates of one signal cell in the order in which they were applied, and their depth so far."""

    __slots__ = ("applied", "depths", "updates")

    def __init__(self) -> None:
        self.updates: list = []
        self.applied: list[int] = []
        self.depths: list[int] = []  # running maximum over a prefix of the updates


class _Written:
    """What a core has written to one memory object as far as it depends on some transfer."""

    __slots__ = ("deepest", "entries")

    def __init__(self) -> None:
        self.deepest = 0
        self.entries: list = []

    def add(self, access, depth: int) -> None:
        self.entries.append((access, depth))
        self.deepest = max(self.deepest, depth)

    def under(self, access, least: int) -> int:
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


def _group(lane) -> tuple:
    return (lane.call, lane.dispatch, lane.task, lane.rank)


class _Chains:
    """The state of the walk over all lanes."""

    def __init__(self, lanes) -> None:
        self.notified: dict = {}  # notify -> the depth it carries
        self.exit: dict = {}  # lane -> depth at its end
        self.cells: dict = {}
        self.meetings: dict = {}
        self.blocks: dict = {}  # the lanes of one kernel on one device
        self.deepest = 0
        for lane in lanes:
            self.blocks.setdefault(_group(lane), []).append(lane)
            for op in lane.operations:
                if op.kind == "notify" and op.applied != UNKNOWN:
                    cell = self.cells.get(op.cell)
                    if cell is None:
                        cell = self.cells[op.cell] = _Cell()
                    cell.updates.append(op)
        for cell in self.cells.values():
            if len(cell.updates) > 1:
                cell.updates.sort(key=lambda op: (op.applied, op.order))
            cell.applied = [op.applied for op in cell.updates]

    def acquired(self, wait) -> int | None:
        """The depth a wait acquires; None while a notify it may have seen has not been walked."""
        cell = self.cells.get(wait.cell)
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


def _walk(lane, chains: _Chains):
    """Walk one lane; yields whenever it must wait for another lane to be walked further."""
    rank = lane.rank
    depth: dict = {}
    written: dict[Memory, _Written] = {}
    scalar = 0  # what the scalar pipe depends on, by its waits
    accessed = 0  # the deepest memory access so far
    half = 0  # the load half of the put or get that comes next
    met = 0
    for op in lane.operations:
        kind = op.kind
        after = op.after
        if (
            after is not None
            and after[0] == "dispatch"
            and after[1] is not None
            and after[1].lane is not lane
        ):
            for other in chains.blocks[_group(after[1].lane)]:
                while other not in chains.exit:
                    yield
                scalar = max(scalar, chains.exit[other])
        pipe = op.pipe
        if kind == "notify":
            chains.notified[op] = scalar if scalar > accessed else accessed
        elif kind == "wait":
            if op.end == UNKNOWN:
                break
            found = chains.acquired(op)
            while found is None:
                yield
                found = chains.acquired(op)
            scalar = max(scalar, found)
        elif pipe != "S":
            mine = scalar
            for producer in op.operands:
                below = depth.get(producer, 0)
                mine = max(mine, below)
            if pipe != "V":
                if pipe == "MTE3" and kind in ("put", "get"):
                    mine = max(mine, half)
                elif written and pipe == "MTE2":
                    for access in op.reads:
                        found = written.get(access.memory)
                        if found is not None and found.deepest > mine:
                            mine = max(mine, found.under(access, mine))
                if op.peer is not None and op.peer != rank:
                    mine += 1
                    chains.deepest = max(chains.deepest, mine)
                accessed = max(accessed, mine)
                if pipe == "MTE2":
                    half = mine
                elif mine:
                    for access in op.writes:
                        written.setdefault(access.memory, _Written()).add(access, mine)
            depth[op] = mine
        elif kind == "sync_all":
            group = _group(lane)
            meeting = chains.meetings.setdefault((group, met), _Meeting())
            met += 1
            meeting.came += 1
            meeting.depth = max(meeting.depth, scalar, accessed)
            while meeting.came < len(chains.blocks[group]):
                yield
            scalar = max(scalar, meeting.depth)
    chains.exit[lane] = max(scalar, accessed)


def round_count(lanes) -> int:
    """The longest chain of dependent remote transfers over all lanes."""
    chains = _Chains(lanes)
    walks = [_walk(lane, chains) for lane in lanes]
    while walks:
        before = (len(walks), len(chains.notified), len(chains.exit))
        came = sum(meeting.came for meeting in chains.meetings.values())
        walks = [walk for walk in walks if next(walk, True) is None]
        if before == (len(walks), len(chains.notified), len(chains.exit)) and came == sum(
            meeting.came for meeting in chains.meetings.values()
        ):
            break  # the rest waits for something that never happened
    return chains.deepest
