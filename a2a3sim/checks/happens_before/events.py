"""The records from which guaranteed happens-before is computed: threads, signal cells, updates and waits.

A *thread* is one core while it runs one kernel. What it does is cut into *segments*: accesses to memory
first, then notifies; a wait, or an access after a notify, begins the next one. Everything in a segment
has the same clock, so a barrier over P ranks costs one clock and not P.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

__all__ = [
    "ADD", "READ", "WRITE", "Acquired", "Cell", "Footprint", "Line", "MemoryObject", "Op", "Order", "PipeState", "Ref",
    "Relation", "Solver", "Source", "Thread", "ThreadSpec", "Update", "Wait",
]  # fmt: skip

Line: TypeAlias = tuple[str, int]  # file and number
Op: TypeAlias = Any  # an operation of whoever recorded the run; only its `Source` looks into it

READ, WRITE, ADD = 0, 1, 2  # kinds of access; atomic adds commute


class ThreadSpec(NamedTuple):
    """Who a thread is: a core of a rank, and the group (one kernel of one dispatch) it belongs to."""

    rank: int
    core: int = 0
    group: int = 0
    device: int | None = None  # the rank's, if None
    launch: int = 0  # the how-manieth dispatch of its device
    call: int = 0
    old: bool = False  # of a call that has been checked before and is there for what follows it
    kernel: str = ""


class Ref(NamedTuple):
    """An operation that takes part in a finding; refs sort by rank, thread and program order."""

    rank: int
    thread: int
    order: int
    op: Op


class MemoryObject(NamedTuple):
    """A device memory object; ``key`` stays the same from call to call."""

    key: object
    name: str
    rank: int
    device: int
    shape: Sequence[int] | None = None  # extents by which the program addresses its signal cells
    window: bool = False  # filled with zeros to begin with, and within reach of peers


class Footprint(NamedTuple):
    """``rows`` runs of ``row_bytes``, ``stride`` bytes apart, of one memory object (by its number)."""

    memory: int
    offset: int
    rows: int
    row_bytes: int
    stride: int


class PipeState:
    """A pipe of a thread under explicit fences.

    Attributes:
        columns: its components of the vector clocks.
        rows: its newest segments, one for each.
        issued: the thread's segment in which they were issued.
    """

    __slots__ = ("columns", "issued", "rows")

    def __init__(self, *columns: int) -> None:
        self.columns = columns
        self.rows: tuple[int, ...] = ()
        self.issued = -1


class Thread:
    """One core in one kernel, while its operations are entered and afterwards."""

    __slots__ = (
        "acquires",
        "call",
        "column",
        "core",
        "device",
        "end_row",
        "end_segment",
        "group",
        "index",
        "kernel",
        "launch",
        "old",
        "pipes",
        "rank",
        "row",
        "shared",
        "state",
        "syncs",
    )

    def __init__(self, index: int, spec: ThreadSpec, column: int) -> None:
        self.index = index
        self.rank = spec.rank
        self.core = spec.core
        self.device = spec.rank if spec.device is None else spec.device
        self.group = spec.group
        self.launch = spec.launch
        self.call = spec.call
        self.old = spec.old
        self.kernel = spec.kernel
        self.column = column  # its component of the vector clocks
        self.row = -1  # current segment
        self.state = 2  # 0 accesses so far, 1 notifies too, 2 a wait stands before the next segment
        self.acquires: list[
            Acquired
        ] = []  # what the next segment's clock is joined with: waits, rows, lists of rows
        self.pipes: dict[str, PipeState] = {}  # with explicit fences
        self.shared = False  # other threads of the same rank could see its updates of its own cells
        self.end_row: int | None = None
        self.end_segment: int | None = None
        self.syncs = 0


class Update:
    """A notify, or a plain write to the bytes of a cell (``plain``)."""

    __slots__ = ("cell", "column", "index", "op", "plain", "replaces", "row", "thread", "value", "when")

    def __init__(
        self,
        cell: Cell,
        thread: Thread,
        row: int,
        index: int,
        value: int | None,
        replaces: bool,
        op: Op,
        when: int,
        plain: bool = False,
    ) -> None:
        self.cell = cell
        self.thread = thread
        self.column = thread.column
        self.row = row
        self.index = index  # grows along each column
        self.value = value  # None: unknown
        self.replaces = replaces  # Set or plain store, not Add
        self.op = op
        self.when = when
        self.plain = plain


class Wait:
    """A wait of one thread on a cell of its rank."""

    __slots__ = (
        "asked",
        "by_data",
        "cell",
        "column",
        "done",
        "equal",
        "gain",
        "index",
        "needs",
        "op",
        "own",
        "row",
        "solver",
        "source",
        "thread",
        "value",
        "when",
    )

    def __init__(
        self,
        cell: Cell,
        thread: Thread,
        index: int,
        value: int,
        equal: bool,
        op: Op,
        when: int,
        done: bool,
        own: int,
    ) -> None:
        self.cell = cell
        self.thread = thread
        self.column = thread.column
        self.index = index
        self.value = value
        self.equal = equal
        self.op = op
        self.when = when
        self.done = done  # False: the run ended while it waited
        self.own = own  # how many of its own column's updates of the cell precede it
        self.row = -1  # the segment that follows
        self.source = -1  # the segment whose clock it acquires, where that is known without clocks
        self.solver: Solver | None = None  # what computes the clock it acquires, where it is not
        self.gain: np.ndarray | None = None  # that clock
        self.asked: int | None = (
            None  # start value and others' credits it asks for, where the cell is one that only adds
        )
        self.needs: dict[
            int, int
        ] = {}  # column -> index of the last of its updates that it cannot do without
        self.by_data = False  # a plain write to the cell is all that it needs

    def holds(self, value: int) -> bool:
        """Does the predicate hold for this value of the cell?"""
        return value == self.value if self.equal else value >= self.value


class Cell:
    """One int32 signal cell of one rank's window."""

    __slots__ = (
        "by",
        "carried",
        "fresh",
        "level",
        "memory",
        "offset",
        "origin",
        "own_sums",
        "plain",
        "profiles",
        "rank",
        "replaced",
        "start",
        "waits",
    )

    def __init__(self, memory: int, offset: int, rank: int) -> None:
        self.memory = memory
        self.offset = offset
        self.rank = rank
        self.by: dict[int, list[Update]] = {}  # column -> its updates, in program order
        self.waits: list[Wait] = []
        self.replaced = False  # some update is a Set
        self.plain = False  # plain accesses write its bytes
        self.start = 0  # value when the call starts
        self.fresh = 0  # value of a fresh window
        self.carried: int | None = (
            None  # start value up to which waits of earlier calls needed credits, or None
        )
        self.origin: str | None = None  # "launch" or "data": where a start value that is not fresh comes from
        self.level: dict[int, int] = {}  # column -> credits its waits needed so far
        self.profiles: dict[int, tuple[str, list[int]] | None] = {}  # writer -> values it gives, if they rise
        self.own_sums: dict[int, list[int]] = {}  # column -> sums of its own updates

    def updates(self) -> Iterator[Update]:
        """All updates, column by column."""
        for updates in self.by.values():
            yield from updates


Acquired: TypeAlias = "Wait | int | list[int]"  # what a segment's clock is joined with: a wait, rows


# ---- what others must be able to say ----------------------------------------------------------------


class Source(Protocol):
    """What the findings need to know about operations; whoever records the run answers."""

    def site(self, op: Op) -> Line:
        """File and line of the user's call."""

    def kind(self, op: Op) -> str:
        """The operation in the language's words."""

    def when(self, op: Op, write: bool) -> int:
        """When the run saw it, as a write or as a read."""

    def written(self, op: Op, cell: Cell) -> int | None:
        """The value that a plain write gave a cell; None if nothing tells."""

    def found(self, cell: Cell) -> int | None:
        """The value of a cell at the start of the call; None if nothing tells."""


class Relation(Protocol):
    """Which updates are certain to be applied before what."""

    def before(self, update: Update, clock: np.ndarray, wait: Wait | None = None) -> bool: ...

    def pair(self, first: Update, second: Update) -> bool: ...


class Order(Protocol):
    """The clocks as far as they are known."""

    matrix: np.ndarray
    position: np.ndarray
    segment_of: list[int]
    first: bool

    @property
    def applied(self) -> Relation: ...


class Solver(Protocol):
    """Computes what the waits of one thread on one cell acquire, where that takes clocks."""

    cell: Cell
    column: int

    @property
    def by_sum(self) -> bool: ...

    def begin(self, clocks: Order) -> None: ...

    def solve(self, wait: Wait, clocks: Order, before: np.ndarray) -> None: ...
