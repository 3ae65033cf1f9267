"""The unified buffer of one core: who waits for space, and whether a program fits at all.

Two questions, answered apart. *Space* is waited for only while unfinished operations use tiles, so that
wait always ends. Whether a program *fits* is decided by liveness in program order: a tile lives from the
operation that makes it to the last that uses it, and an elementwise result may take the place of an
operand that dies there.
"""

from __future__ import annotations

__all__ = ["TileLife", "peak_usage"]


class TileLife:
    """One tile's place in UB: its bytes, its first and last operation, and what still uses it."""

    __slots__ = ("busy", "first", "inplace", "last", "nbytes", "open", "user")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.first = None  # the operation that makes it
        self.last = None  # the last operation so far that uses it
        self.inplace = ()  # lives of the operands whose place an elementwise result may take
        self.open = 0  # operations on it whose end is not known yet
        self.busy = 0  # ps until which the operations of known end use it
        self.user = None  # the operation that ends at `busy`


def peak_usage(lives: list[TileLife]) -> tuple[int, list[TileLife], object]:
    """Peak bytes over the program, the tiles alive there, and the operation at which it happens."""
    starts: dict[int, list[TileLife]] = {}
    ends: dict[int, list[TileLife]] = {}
    for life in lives:
        starts.setdefault(life.first.seq, []).append(life)
        ends.setdefault(life.last.seq, []).append(life)
    alive: dict[TileLife, None] = {}
    used = peak = 0
    at, where = [], None
    for seq in sorted(starts):
        for done in [life for life in alive if life.last.seq < seq]:
            del alive[done]
            used -= done.nbytes
        for life in starts[seq]:
            reuse = next(
                (o for o in life.inplace if o in alive and o.last.seq == seq and o.nbytes >= life.nbytes), None
            )
            if reuse is not None:
                # The result stands in the operand's place; the operand is gone from here on.
                del alive[reuse]
                used -= reuse.nbytes
            alive[life] = None
            used += life.nbytes
        if used > peak:
            peak, at, where = used, list(alive), starts[seq][0].first
    return peak, at, where
