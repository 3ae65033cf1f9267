"""The unified buffer of one core: who waits for space, and whether a program fits at all.

Two questions, answered apart. *Space* is waited for only while unfinished operations use tiles, so that
wait always ends. Whether a program *fits* is decided by liveness in program order: a tile lives from the
operation that makes it to the last that uses it, and an elementwise result may take the place of an
operand that dies there.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import chain
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from a2a3sim.errors import KernelError
from a2a3sim.models.clock import Clock
from a2a3sim.models.operation import Cause, Lane, Operation

__all__ = ["TileLife", "TileSpace", "peak_usage"]


class _Core(Protocol):
    """What the space for tiles asks of its core."""

    clock: Clock
    time: int
    after: Cause | None
    pipes: dict[str, Any]
    unknown: dict[Operation, None]

    def sync(self) -> None: ...

    def park(self, reason: Any) -> None: ...

    def wake(self) -> None: ...


class TileLife:
    """What still uses one tile, for the wait for space."""

    __slots__ = ("busy", "held", "nbytes", "number", "open", "stored", "stores", "user")

    def __init__(self, nbytes: int, number: int) -> None:
        self.nbytes = nbytes
        self.number = number
        self.open = 0  # operations on it whose end is not known yet
        self.busy = 0  # ps until which the operations of known end use it
        self.user: Operation | None = None  # the operation that ends at `busy`
        self.stores = 0  # those of `open` that store it
        self.stored = 0  # ps until which stores of known end read it
        self.held = True  # its space is counted

    def used_since(self, busy: int) -> bool:
        """Whether it has been used again, or is, since its operations were to end at ``busy``."""
        return self.open > 0 or self.busy != busy


class TileSpace:
    """The space for tiles in a core's UB of limited size, and the scalar pipe's wait for it.

    Args:
        limit: bytes that the tiles of unfinished operations may take together.
    """

    def __init__(self, core: _Core, limit: int) -> None:
        self.core = core
        self.limit = limit
        self._used = 0  # bytes of tiles that operations may still use
        self._tiles = 0  # made so far
        self._left: list[TileLife] = []  # that no operation of unknown end uses, since the last look,
        self._leaving: list[tuple[int, int, TileLife]] = []  # and before: a heap by the end of the last use
        self._waited_for = False

    def take(self, op: Operation, nbytes: int, operands: tuple[TileLife, ...] = ()) -> TileLife:
        """Before `issue`: the tile that ``op`` makes gets its place, once no unfinished operation holds it.

        An elementwise result (``operands`` given) that fits where an operand stands does not wait.
        """
        needed = nbytes
        for life in operands:
            if not life.held:
                needed += life.nbytes
        if self._used + needed > self.limit:
            self._make_room(nbytes, operands)
        for life in operands:
            if not life.held:
                self._hold_again(life)
        life = TileLife(nbytes, self._tiles)
        self._tiles += 1
        self._used += nbytes
        if op.pipe == "S":
            self._left.append(life)  # made without an operation that would end
        return life

    def use(self, op: Operation, lives: tuple[TileLife, ...]) -> None:
        """Before `issue`: these tiles are used until ``op`` is over."""
        op.tiles = lives
        for life in lives:
            if not life.held:
                if self._used + life.nbytes > self.limit:
                    self._make_room(0, (life,))
                self._hold_again(life)
            life.open += 1
            if op.writes:
                life.stores += 1

    def _hold_again(self, life: TileLife) -> None:
        """A tile that no unfinished operation used is used once more, so its space counts again."""
        life.held = True
        self._used += life.nbytes

    def over(self, op: Operation) -> None:
        """It is known when an operation stops using its tiles."""
        if op.writes:
            until = op.drained
            for life in op.tiles:
                life.stores -= 1
                life.stored = max(life.stored, until)
        else:
            until = op.end
        for life in op.tiles:
            life.open -= 1
            if until >= life.busy:
                life.busy, life.user = until, op
            if not life.open:
                self._left.append(life)

    def look_again(self, op: Operation) -> None:
        """Its tiles are free, or no longer held by a store: who waits for space will look which."""
        if self._waited_for:
            until = op.drained if op.writes else op.end
            self.core.clock.at(max(until, self.core.clock.now), self._freed, op)

    def _make_room(self, nbytes: int, operands: tuple[TileLife, ...]) -> None:
        """Wait until a new tile and the operands fit beside the tiles of unfinished operations."""
        core, clock, leaving = self.core, self.core.clock, self._leaving
        core.sync()
        while True:
            now = core.time = max(core.time, clock.now)
            for life in self._left:
                heappush(leaving, (life.busy, life.number, life))
            self._left.clear()
            while leaving and (leaving[0][0] <= now or leaving[0][2].used_since(leaving[0][0])):
                busy, _, life = heappop(leaving)
                if life.held and not life.used_since(busy):
                    life.held = False
                    self._used -= life.nbytes
            needed, place = nbytes, False
            for life in dict.fromkeys(operands):
                if not life.held:
                    needed += life.nbytes
                if life.nbytes >= nbytes and not life.stores and life.stored <= now:
                    place = True  # the result may stand where this operand does
            if self._used + needed <= self.limit or (place and self._used + needed - nbytes <= self.limit):
                return
            if leaving:
                clock.at(leaving[0][0], self._freed, leaving[0][2].user)
            elif not core.pipes["V"].queue and not any(op.tiles for op in core.unknown):
                return  # it never fits, as `measure` will say
            self._waited_for = True
            core.park(("space", nbytes))

    def _freed(self, op: Operation) -> None:
        if self._waited_for:
            self._waited_for = False
            core = self.core
            core.after = ("space", op)
            core.time = max(core.time, core.clock.now)
            core.wake()

    def measure(self, lane: Lane) -> None:
        """Enter the peak of live tiles over a finished lane.

        Raises:
            KernelError: the tiles that are alive together exceed UB.
        """
        lane.ub_peak_bytes, tiles = peak_usage(lane.operations)
        peak, limit = lane.ub_peak_bytes, self.limit
        if peak <= limit:
            return
        largest = sorted(tiles, key=lambda op: -op.makes)[:4]
        named = ", ".join(f"{op.makes} B made by {op.kind}" for op in largest)
        more = f" and {len(tiles) - len(largest)} more" if len(tiles) > len(largest) else ""
        error = KernelError(
            f"capacity: {len(tiles)} tiles of {lane.kernel} are alive together and need {peak} B "
            f"({named}{more}), but UB holds {limit} B for tiles: move the data in chunks of "
            f"{limit * 100 // peak} % of the size or smaller"
        )
        error.site, error.lane = tiles[-1].site, lane
        raise error


def peak_usage(operations: Sequence[Operation]) -> tuple[int, list[Operation]]:
    """Peak bytes of live tiles over a lane's program, and the operations whose tiles are alive there.

    Worked out on arrays over the operations: it is done for every lane, and most programs fit.
    """
    count = len(operations)
    every = np.arange(count)
    makes = np.fromiter(map(attrgetter("makes"), operations), np.int64, count)
    operands = list(map(attrgetter("operands"), operations))
    user = np.repeat(every, np.fromiter(map(len, operands), np.int64, count))
    used = np.fromiter(map(attrgetter("seq"), chain.from_iterable(operands)), np.int64, len(user))
    owner = every.copy()  # of a staging tile that several loads fill in turn, the first
    staged = list(map(attrgetter("staged"), operations))
    if staged.count(None) < count:
        for k, before in enumerate(staged):
            if before is not None:
                owner[k] = owner[before.operands[0].seq]
    last = owner.copy()
    np.maximum.at(last, owner, every)
    np.maximum.at(last, owner[used], user)
    # The result of a vector instruction stands in the place of the first operand that dies there, if large enough.
    vector = np.fromiter(map("V".__eq__, map(attrgetter("pipe"), operations)), np.bool_, count)
    fits = np.flatnonzero(
        vector[user] & (makes[user] > 0) & (last[used] == user) & (makes[used] >= makes[user])
    )
    heirs, first = np.unique(user[fits], return_index=True)
    gone = last + 1  # from when on its place is free or another's
    gone[used[fits[first]]] = heirs
    change = np.zeros(count + 2, np.int64)
    change[:count] = makes
    np.subtract.at(change, gone, makes)
    held = np.cumsum(change)[:count]
    at = int(held.argmax()) if count else 0
    peak = int(held[at]) if count else 0
    alive = np.flatnonzero((makes > 0) & (every <= at) & (gone > at)).tolist() if peak else []
    return peak, [operations[k] for k in alive]
