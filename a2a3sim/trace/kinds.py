"""What an operation's kind means to those who read a trace, stated once.

A record carries its kind as a plain text. Whoever asks what that means, whether bytes move and which way, whether
it stops the core, looks here and compares no texts of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a2a3sim.models.operation import Operation

__all__ = ["KINDS", "VECTOR", "Kind", "Side", "ends", "kind_of", "remote", "side", "took"]

Side = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What all operations of a name have in common.

    Attributes:
        pipe: where it runs; of ``put`` and ``get``, which have a load half and a store half, the half at the peer.
        side: which way bytes go, seen from the core: ``read`` or ``write``, ``both`` for a move of two halves
            (see `side` for each half), None where none move.
        waits: it is a wait for a signal, of which barriers consist.
        transparent: between two waits it leaves them one barrier.
        synchronises: the core stops for others; a stretch of these parts two unnamed phases.
        notifies: it raises a signal.
        fences: it holds the core until its own accesses have come far enough.
        marker: it only marks a place in the program.
        vector: a vector instruction, whatever its name.
    """

    name: str
    pipe: str
    side: Literal["read", "write", "both"] | None = None
    waits: bool = False
    transparent: bool = False
    synchronises: bool = False
    notifies: bool = False
    fences: bool = False
    marker: bool = False
    vector: bool = False

    @property
    def moves(self) -> bool:
        """Bytes move, through MTE2 or MTE3 or as one scalar."""
        return self.side is not None

    @property
    def signal(self) -> bool:
        """It publishes what came before; where phases have no names it belongs to the barrier behind it."""
        return self.notifies or self.fences


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("load", "MTE2", "read"),
        Kind("store", "MTE3", "write"),
        Kind("remote_load", "MTE2", "read"),
        Kind("remote_store", "MTE3", "write"),
        Kind("put", "MTE3", "both"),
        Kind("get", "MTE2", "both"),
        Kind("read", "S", "read"),
        Kind("write", "S", "write"),
        Kind("wait", "S", waits=True, synchronises=True),
        Kind("sync_all", "S", transparent=True, synchronises=True),
        Kind("notify", "S", notifies=True),
        Kind("fence", "S", transparent=True, fences=True),
        Kind("drain", "S", transparent=True, fences=True),
        Kind("phase", "S", transparent=True, marker=True),
        Kind("create", "S"),  # of a tile: takes space and no time
    )
}
"""Every kind but the vector instructions, by name."""

VECTOR = Kind("vector", "V", vector=True)
"""The kind of all vector instructions: machines may price new ones by name."""

# By pipe, then for what runs on the scalar pipe by kind: the two halves of a put or get differ in their pipe only.
_SIDE: dict[str, Side] = {"MTE2": "read", "MTE3": "write"}
_SCALAR: dict[str, Side] = {"read": "read", "write": "write"}


def kind_of(name: str) -> Kind:
    """The kind of an operation by its name; `VECTOR` for every vector instruction."""
    return KINDS.get(name, VECTOR)


def remote(op: Operation) -> bool:
    """It has another rank at its other end: a move or a notify between two ranks."""
    return op.peer is not None and op.peer != op.lane.rank


def side(op: Operation) -> Side | None:
    """Whether its core reads or writes by it; None where no bytes move."""
    return _SIDE.get(op.pipe) or _SCALAR.get(op.kind)


def ends(op: Operation) -> tuple[int, int]:
    """The ranks (from, to) between which a move's bytes or a notify go; equal where both are its own."""
    rank = op.lane.rank
    peer = rank if op.peer is None else op.peer
    return (peer, rank) if side(op) == "read" else (rank, peer)


def took(op: Operation) -> int:
    """From its start to its end in ps; 0 while one of them is unknown."""
    return max(op.end, op.start) - op.start if op.start >= 0 else 0
