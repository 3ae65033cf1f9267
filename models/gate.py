"""Notifies that are held back on their core until what it did before is complete."""

from __future__ import annotations

from typing import Protocol

from a2a3sim.models.operation import Operation, Signal

__all__ = ["Gate"]


class _Core(Protocol):
    """What a gate asks of its core."""

    memory_done: int
    memory_last: Operation | None
    accesses: int
    unknown: dict[Operation, None]
    gate: Gate | None

    def leave(self, op: Signal, gate: int, cause: Operation | None) -> None: ...


class Gate:
    """Notifies that leave once all memory accesses before them are complete.

    A gate opens after the one before it, so it looks only at the accesses since then.
    """

    __slots__ = ("cause", "core", "following", "missing", "newest", "notifies", "seq", "time")

    def __init__(self, core: _Core, seq: int) -> None:
        self.core = core
        self.seq = seq  # of its first notify
        self.time = core.memory_done
        self.cause: Operation | None = core.memory_last
        self.notifies: list[Signal] = []
        self.newest = core.accesses
        self.following: Gate | None = None
        self.missing, since = 0, -1
        if core.gate is not None:  # it has not opened
            core.gate.following = self
            self.missing, since = 1, core.gate.seq
        for op in reversed(core.unknown):
            if op.seq < since:
                break
            if op.dependents is None:
                op.dependents = []
            op.dependents.append(self.known)
            self.missing += 1

    def known(self, op: Operation) -> None:
        """It is known when one of the accesses is complete."""
        if op.visible > self.time:
            self.time, self.cause = op.visible, op
        gate: Gate | None = self
        while gate is not None:
            gate.missing -= 1
            if gate.missing:
                return
            core = gate.core
            if core.gate is gate:
                core.gate = None
            for notify in gate.notifies:
                core.leave(notify, gate.time, gate.cause)
            before, gate = gate, gate.following
            if gate is not None and before.time > gate.time:
                gate.time, gate.cause = before.time, before.cause
