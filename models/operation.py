"""The record of one operation: what a core was asked to do and when each part of it happened.

The same object is scheduled by the core and kept as the trace record, so nothing is recorded twice.
Times are integers in picoseconds; ``UNKNOWN`` until the machine knows them (which may be before the
clock gets there: a core's own queues are computed ahead).
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from a2a3sim.models.bottleneck import Flow
    from a2a3sim.models.fabric import Path
    from a2a3sim.models.memory import Access, Memory

__all__ = ["UNKNOWN", "Lane", "Move", "Operation", "Signal", "Vector", "operation"]

UNKNOWN = -1

Cause: TypeAlias = "tuple[str, Operation | None]"  # a reason, and the operation that it names
Cell: TypeAlias = "tuple[Memory, int]"  # a signal cell: memory, byte offset
Site: TypeAlias = tuple[CodeType, int]  # of the user's call; a2a3sim.trace.record resolves it


class Lane:
    """One core's part in one dispatch: the context that all operations issued there share."""

    __slots__ = (
        "block",
        "blocks",
        "call",
        "core",
        "device",
        "dispatch",
        "end",
        "index",
        "kernel",
        "last",
        "operations",
        "phase",
        "rank",
        "sites",
        "start",
        "task",
        "ub_peak_bytes",
    )

    def __init__(
        self,
        index: int,
        call: int,
        dispatch: int,
        task: int,
        device: int,
        rank: int,
        core: int,
        kernel: str,
        block: int = 0,
        blocks: int = 1,
    ) -> None:
        self.index = index  # position in Trace.lanes
        self.call = call  # index of the call (0 unless a worker makes several)
        self.dispatch = dispatch  # index of the dispatch within the call, in host order
        self.task = task  # index of the kernel within its dispatch (an orchestration may run several)
        self.device = device  # physical device on the platform
        self.rank = rank  # index of the device in the run (its communication-domain rank for one domain)
        self.core = core  # vector core of the device
        self.kernel = kernel  # name of the kernel function
        self.block = block  # pl.get_block_idx()
        self.blocks = blocks  # pl.get_block_num()
        self.start = UNKNOWN  # the kernel's first instant on this core
        self.end = UNKNOWN  # pipes drained, stores and notifies applied
        self.last: Cause | None = None  # (reason, operation) that determined `end`, for the critical path
        self.operations: list[Operation] = []  # in program order
        self.phase: Any = None  # the named phase that it is in
        self.sites: dict[int, Site] = {}  # of its operations, by instruction offset; the last code object's
        self.ub_peak_bytes = UNKNOWN  # of live tiles; where UB has no limit, nobody needs it during the run

    def __repr__(self) -> str:
        return f"<lane {self.kernel} rank {self.rank} core {self.core} dispatch {self.dispatch}>"


class Operation:
    """One instruction of the kernel language on one core (or one chunk's half of a put or get).

    kind
        ``load store remote_load remote_store put get`` (moves), any vector instruction (``add`` …),
        ``read write`` (scalar), ``notify wait sync_all fence drain``, ``phase`` (a marker without time).
    pipe
        ``S MTE2 V MTE3``.
    Times
        ``begun`` the scalar pipe turns to it; ``issued`` it is in its pipe's queue; ``start`` its pipe
        begins it (a notify: it leaves); ``drained`` its last byte left the core or arrived; ``visible``
        its effect can be seen at the target; ``end`` it is over for its core (acknowledged).
    Why it started when it did
        ``cause`` = (reason, operation or None) with reason one of ``start pipe operand space fence line
        signal issue dispatch``; ``after`` = (reason, operation or None): what the scalar pipe did until
        ``begun``, None if it issued the operation before (most do: a tuple each would be a tenth of a trace).
    Signals
        ``cell`` = (memory, byte offset); ``action`` is ``add`` or ``set`` (notify) or ``ge`` or ``eq``
        (wait); ``value`` the operand or the expected value; ``applied``/``order`` when and as which update
        of that signal memory; ``seen`` the value after the update, or the value with which a wait ended;
        ``by`` the update that ended a wait, or the one ahead of a notify on its signal line.
    Vector instructions
        ``value`` is the duration in ps.
    """

    __slots__ = (
        "after",
        "begun",
        "cause",
        "dependents",
        "deps",
        "end",
        "issued",
        "kind",
        "lane",
        "pipe",
        "seq",
        "site",
        "start",
        "tiles",
        "work",
    )

    lane: Lane
    kind: str
    pipe: str
    site: Site | None
    seq: int  # program index within the lane
    begun: int
    issued: int
    start: int
    end: int
    cause: Cause | None
    after: Cause | None
    deps: tuple[Operation, ...]  # operations whose end bounds the start
    dependents: list[Callable[[Operation], None]] | None  # callbacks once `end` is known
    tiles: tuple[Any, ...]  # lifetimes of the UB tiles it uses, until it is known when it ends
    work: Any  # what to do with the bytes; dropped when done

    # What only some kinds of operations have; their classes below make slots of them.
    operands: tuple[Operation, ...] = ()  # producing operations
    action: str | None = None
    cell: Cell | None = None
    by: Operation | None = None
    flow: Flow | None = None
    path: Path | None = None
    peer: int | None = None
    seen: int | None = None
    staged: Operation | None = None
    value: int | None = None
    applied = order = UNKNOWN
    atomic = False
    makes = nbytes = 0
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()

    @property
    def drained(self) -> int:
        """When its last byte left the core or arrived; its end, for what moves no bytes."""
        return self.end

    @property
    def visible(self) -> int:
        """When its effect can be seen; its end, for what moves no bytes."""
        return self.end

    def __repr__(self) -> str:
        return f"<{self.kind} #{self.seq} {self.lane!r} {self.start}..{self.end}>"


def _shared(lane: Lane, site: Site | None) -> Site | None:
    """The same site as one object: a lane comes by a line over and over."""
    if site is None:
        return None
    known = lane.sites.get(site[1])
    if known is None or known[0] is not site[0]:
        known = lane.sites[site[1]] = site
    return known


class Move(Operation):
    """An operation that moves bytes: MTE2, MTE3, or a scalar access."""

    __slots__ = (
        "atomic", "drained", "flow", "makes", "nbytes", "operands", "path", "peer", "reads",
        "staged", "visible", "writes",
    )  # fmt: skip

    drained: int
    visible: int
    path: Path

    def __init__(self, lane: Lane, kind: str, pipe: str, site: Site | None) -> None:
        # Each class by itself: a call to a common part would cost as much as the assignments.
        self.lane = lane
        self.kind = kind
        self.pipe = pipe
        self.site = _shared(lane, site)
        self.seq = 0
        self.begun = self.issued = self.start = self.end = UNKNOWN
        self.operands = self.deps = self.tiles = ()
        self.dependents = self.cause = self.after = self.work = None
        self.drained = self.visible = UNKNOWN
        self.reads = self.writes = ()  # Access
        self.makes = 0  # bytes of the tile it makes
        self.nbytes = 0
        self.peer = None  # rank at the other end, None for local operations
        self.flow = None
        self.path = None  # type: ignore[assignment]  # the front end gives it one at once
        self.staged = None  # the store whose bytes must have left the staging tile before this load starts
        self.atomic = False  # the write adds instead of replacing


class Vector(Operation):
    """A vector instruction."""

    __slots__ = ("makes", "operands", "value")

    value: int

    def __init__(self, lane: Lane, kind: str, pipe: str, site: Site | None) -> None:
        self.lane = lane
        self.kind = kind
        self.pipe = pipe
        self.site = _shared(lane, site)
        self.seq = 0
        self.begun = self.issued = self.start = self.end = UNKNOWN
        self.operands = self.deps = self.tiles = ()
        self.dependents = self.cause = self.after = self.work = None
        self.makes = self.value = 0


class Signal(Operation):
    """A notify, a wait, a barrier or fence, or a marker: what the scalar pipe does without moving data."""

    __slots__ = ("action", "applied", "by", "cell", "order", "peer", "seen", "value")

    # A notify and a wait have them from the start, the others never.
    action: str
    cell: Cell
    value: int

    def __init__(self, lane: Lane, kind: str, pipe: str, site: Site | None) -> None:
        self.lane = lane
        self.kind = kind
        self.pipe = pipe
        self.site = _shared(lane, site)
        self.seq = 0
        self.begun = self.issued = self.start = self.end = UNKNOWN
        self.deps = self.tiles = ()
        self.dependents = self.cause = self.after = self.work = None
        self.seen = self.by = self.peer = None
        self.cell = self.action = self.value = None  # type: ignore[assignment]  # see above
        self.applied = self.order = UNKNOWN


def operation(lane: Lane, kind: str, pipe: str, site: Site | None) -> Operation:
    """An empty record of the class that a kind needs."""
    if pipe == "V" or kind == "create":
        return Vector(lane, kind, pipe, site)
    if pipe == "S" and kind not in ("read", "write"):
        return Signal(lane, kind, pipe, site)
    return Move(lane, kind, pipe, site)
