"""The unified buffer of one core: who waits for space, and whether a program fits at all.

Two questions, answered apart. *Space* is waited for only while unfinished operations use tiles, so that
wait always ends. Whether a program *fits* is decided by liveness in program order: a tile lives from the
operation that makes it to the last that uses it, and an elementwise result may take the place of an
operand that dies there.
"""

from __future__ import annotations

from a2a3sim.models.operation import Operation

__all__ = ["TileLife", "peak_usage"]


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
