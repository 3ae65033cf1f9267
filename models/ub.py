"""The unified buffer of one core: who waits for space, and whether a program fits at all.

Two questions, answered apart. *Space* is waited for only while unfinished operations use tiles, so that
wait always ends. Whether a program *fits* is decided by liveness in program order: a tile lives from the
operation that makes it to the last that uses it, and an elementwise result may take the place of an
operand that dies there.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Protocol

from a2a3sim.errors import KernelError
from a2a3sim.models.clock import Clock
from a2a3sim.models.operation import Cause, Lane, Operation

__all__ = ["TileLife", "TileSpace", "peak_usage"]


class _Core(Protocol):
    """What the space for tiles asks of its core."""

    clock: Clock
    time: int
    after: Cause
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


def peak_usage(operations: list[Operation]) -> tuple[int, list[Operation]]:
    """Peak bytes of live tiles over a lane's program, and the operations whose tiles are alive there."""
    owner: dict[Operation, Operation] = {}  # of a staging tile that several loads fill in turn
    last: dict[Operation, int] = {}
    for op in operations:
        if op.staged is not None:
            before = op.staged.operands[0]
            owner[op] = owner.get(before, before)
            last[owner[op]] = op.seq
        elif op.makes:
            last[op] = op.seq
        for made in op.operands:
            last[owner.get(made, made)] = op.seq
    dying: dict[int, list[Operation]] = {}
    for made, seq in last.items():
        dying.setdefault(seq, []).append(made)
    alive: dict[Operation, None] = {}
    replaced: dict[Operation, int] = {}  # where another stands, from that operation on
    used = peak = at = 0
    for op in operations:
        if op.makes:
            if op.pipe == "V":
                # The result stands in the place of an operand that dies here, if that is large enough.
                for made in op.operands:
                    if last[made] == op.seq and made.makes >= op.makes and made in alive:
                        del alive[made]
                        used -= made.makes
                        replaced[made] = op.seq
                        break
            alive[op] = None
            used += op.makes
            if used > peak:
                peak, at = used, op.seq
        for made in dying.get(op.seq, ()):
            if made in alive:
                del alive[made]
                used -= made.makes
    return peak, [
        m for m, seq in last.items() if m.makes and m.seq <= at <= seq and replaced.get(m, at + 1) > at
    ]
