"""Signal memory: int32 cells in windows, updated one at a time per line, and the cores that poll them.

A notify that arrives at its target joins the queue of its cell's 512-byte line; each update takes the
platform's atomic time. Arrivals of one instant are ordered by (rank, core, sequence), or, with a seed
other than 0, by a keyed hash of these. Polls are computed, not simulated: a wait that begins at t0 looks at
t0, t0 + interval, … and an update applied at t is seen by a poll at t.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from a2a3sim.models.clock import Clock
from a2a3sim.models.memory import Memory
from a2a3sim.models.operation import Cell, Signal

__all__ = ["Signals", "tie_key"]

_MASK = (1 << 64) - 1
_SETTLE, _LAST = 2, 3


class _Core(Protocol):
    """What the signals ask of a core."""

    sent: dict[int, tuple[int, Signal]]  # rank -> when its newest notify is applied there

    def wake(self) -> None: ...

    def notified(self, op: Signal) -> None: ...


InFlight: TypeAlias = tuple[Signal, _Core]  # a notify that is on its way


def tie_key(seed: int, rank: int, core: int, sequence: int) -> int:
    """A shuffled order of simultaneous arrivals: a keyed hash (splitmix64) of who they are."""
    z = (seed * 0x9E3779B97F4A7C15 + rank * 0xBF58476D1CE4E5B9 + core * 0x94D049BB133111EB + sequence) & _MASK
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = ((z ^ (z >> shift)) * factor) & _MASK
    return z ^ (z >> 31)


class _Waiter:
    __slots__ = ("armed", "cell", "core", "lapsed", "op")

    def __init__(self, op: Signal, core: _Core) -> None:
        self.op = op
        self.core = core
        self.cell = op.cell
        self.armed = False  # a poll that should succeed is on its way
        self.lapsed = False  # but since then an update has made the predicate false


def _holds(op: Signal, value: int) -> bool:
    return value >= op.value if op.action == "ge" else value == op.value


class Signals:
    """The signal memories of all devices of one machine.

    Args:
        atomic: time of one update of a line, ps.
        poll: interval between polls of a wait, ps; 0 sees an update when it happens.
        line: bytes that are updated one at a time.
        seed: for the order of simultaneous arrivals.
    """

    def __init__(self, clock: Clock, atomic: int, poll: int, line: int, seed: int) -> None:
        self.clock = clock
        self.atomic = atomic
        self.poll = poll
        self.line = line
        self.seed = seed
        self.applied = 0
        self._arrivals: dict[int, list[InFlight]] = {}
        self._lines: dict[Cell, tuple[int, Signal]] = {}
        self._waiters: dict[Memory, dict[int, list[_Waiter]]] = {}  # by memory object and offset

    def value(self, cell: Cell) -> int:
        """The current value of a cell (memory, byte offset)."""
        memory, offset = cell
        return memory.cells()[offset >> 2]

    def stored(self, memory: Memory) -> None:
        """Plain bytes were written to an object with signal cells: its waits look again."""
        for offset, waiters in list(self._waiters.get(memory, {}).items()):
            self._changed(waiters, self.value((memory, offset)), None)

    def _changed(self, waiters: list[_Waiter], value: int, update: Signal | None) -> None:
        """A cell has a new value: its waits look again."""
        for waiter in list(waiters):
            if not _holds(waiter.op, value):
                waiter.lapsed = waiter.armed
            elif not waiter.armed:
                self._arm(waiter, update, self.clock.now)
            elif waiter.lapsed:
                waiter.lapsed, waiter.op.by = False, update

    @property
    def due(self) -> bool:
        """Whether a wait is about to end."""
        return any(w.armed for w in self._all())

    def waiting(self) -> list[Signal]:
        """The waits that are not satisfied, in the order in which they began."""
        return [w.op for w in self._all()]

    def _all(self) -> list[_Waiter]:
        return [w for cells in self._waiters.values() for waiters in cells.values() for w in waiters]

    def send(self, op: Signal, arrival: int, core: _Core) -> None:
        """A notify is on its way and reaches the target's signal memory at ``arrival`` (ps)."""
        batch = self._arrivals.get(arrival)
        if batch is None:
            self._arrivals[arrival] = [(op, core)]
            self.clock.at(arrival, self._arrive, arrival, _SETTLE)
        else:
            batch.append((op, core))

    def _order(self, entry: InFlight) -> int:
        op, _ = entry
        lane = op.lane
        return tie_key(self.seed, lane.rank, lane.core, op.seq)

    def _arrive(self, time: int) -> None:
        batch = self._arrivals.pop(time)
        if len(batch) > 1:
            if self.seed:
                batch.sort(key=self._order)
                batch = _program_order(batch)
            else:
                batch.sort(key=_as_numbered)
        atomic = self.atomic
        if atomic == 0:
            for entry in batch:
                self._apply(entry)
            return
        for entry in batch:
            op = entry[0]
            memory, offset = op.cell
            line = (memory, offset // self.line)
            held = self._lines.get(line)
            begin = time
            if held is not None and held[0] > time:
                begin, op.by = held
            done = begin + atomic
            # What this core has sent here before is applied before, on whatever line that is.
            sent = entry[1].sent
            before = sent.get(memory.rank)
            if before is not None and before[0] > done:
                done, op.by = before
            self._lines[line] = sent[memory.rank] = (done, op)
            self.clock.at(done, self._apply, entry, _SETTLE)

    def _apply(self, entry: InFlight) -> None:
        op, core = entry
        memory, offset = op.cell
        cells = memory.cells()
        value = op.value
        if op.action == "add":
            value += cells[offset >> 2]
        if not -0x80000000 <= value <= 0x7FFFFFFF:
            value = (value + 0x80000000) % 0x100000000 - 0x80000000
        cells[offset >> 2] = value
        now = self.clock.now
        op.seen = value
        op.applied = op.end = now
        op.order = self.applied
        self.applied += 1
        waiters = self._waiters.get(memory)
        if waiters and offset in waiters:
            self._changed(waiters[offset], value, op)
        core.notified(op)

    def _arm(self, waiter: _Waiter, update: Signal | None, now: int) -> None:
        wait = waiter.op
        poll = wait.start
        if now > poll:
            poll = now if self.poll == 0 else poll + -(-(now - poll) // self.poll) * self.poll
        waiter.armed = True
        wait.by = update
        if poll == now:
            self._look(waiter)
        else:
            self.clock.at(poll, self._look, waiter, _LAST)

    def _look(self, waiter: _Waiter) -> None:
        """A poll: the wait ends if its predicate holds now (it may have stopped to hold)."""
        op = waiter.op
        waiter.armed = waiter.lapsed = False
        value = self.value(waiter.cell)
        if not _holds(op, value):
            op.by = None
            return
        memory, offset = waiter.cell
        cells = self._waiters[memory]
        waiters = cells[offset]
        waiters.remove(waiter)
        if not waiters:
            del cells[offset]
        op.seen = value
        op.end = self.clock.now
        waiter.core.wake()

    def wait(self, op: Signal, core: _Core) -> bool:
        """Begin a wait at ``op.start``; True if it has ended already, else the core is woken when it has."""
        value = self.value(op.cell)
        now = self.clock.now
        if op.start == now and _holds(op, value):
            op.seen = value
            op.end = now
            return True
        waiter = _Waiter(op, core)
        memory, offset = op.cell
        self._waiters.setdefault(memory, {}).setdefault(offset, []).append(waiter)
        if _holds(op, value):
            waiter.armed = True
            self.clock.at(op.start, self._look, waiter, _LAST)
        return False


def _as_numbered(entry: InFlight) -> tuple[int, int, int]:
    op = entry[0]
    lane = op.lane
    return (lane.rank, lane.core, op.seq)


def _program_order(batch: list[InFlight]) -> list[InFlight]:
    """Notifies of one core to one rank stay in program order, whatever the hash says."""
    places: dict[tuple[int, int, int], list[int]] = {}
    for k, (op, _) in enumerate(batch):
        places.setdefault((op.lane.rank, op.lane.core, op.cell[0].rank), []).append(k)
    ordered = list(batch)
    for ks in places.values():
        for k, entry in zip(ks, sorted((batch[k] for k in ks), key=lambda e: e[0].seq), strict=True):
            ordered[k] = entry
    return ordered
