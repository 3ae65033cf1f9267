"""The unified buffer of one core: who waits for space, and whether a program fits at all.

Two questions, answered apart. *Space* is waited for only while unfinished operations use tiles, so that
wait always ends. Whether a program *fits* is decided by liveness in program order: a tile lives from the
operation that makes it to the last that uses it, and an elementwise result may take the place of an
operand that dies there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter

import numpy as np

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
    alive = np.flatnonzero((makes > 0) & (every <= at) & (gone > at)) if peak else []
    return peak, [operations[k] for k in alive]
