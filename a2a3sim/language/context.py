"""Where code runs: a host body that is being recorded, an orchestration on a device, or a kernel on a core.

The current context lives in the greenlet's own context variables, so kernels never see each other's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from a2a3sim.errors import ParserSyntaxError
from a2a3sim.language.handles import Tensor
from a2a3sim.language.types import DataType
from a2a3sim.locate import user_frame
from a2a3sim.models.barrier import BlockBarrier
from a2a3sim.models.core import Core
from a2a3sim.models.machine import Machine
from a2a3sim.models.operation import Lane, Site

__all__ = [
    "Context",
    "DeviceContext",
    "HostBody",
    "KernelContext",
    "Note",
    "OrchestrationBody",
    "caller_site",
    "current",
    "device_context",
    "enter",
    "kernel_context",
    "leave",
    "user_site",
]


class Note(NamedTuple):
    """Something about a run that the checks turn into a finding.

    Attributes:
        kind: ``remainder`` or ``undefined``.
        site: (code object, instruction offset) of the user's line.
        lane: of the kernel, None in an orchestration.
        time: the scalar pipe's, ps.
    """

    kind: str
    message: str
    site: Site
    rank: int
    lane: Lane | None
    time: int


class KernelContext:
    """A kernel on one core.

    Attributes:
        machine: the modelled hardware (`a2a3sim.models.machine.Machine`).
        device: the platform's device on which the core is.
        bytes: the run moves real bytes.
        group: the blocks of this kernel on its device, for `sync_all`.
        site: the user's call site while a built-in collective runs, else None.
        task: the dispatch that the kernel is part of (`a2a3sim.run.dispatch.Orchestration`).
        deferred: conditions that hold back the end of its task so far; None where that is not allowed.
    """

    level: Literal["kernel"] = "kernel"
    __slots__ = (
        "bytes", "core", "deferred", "device", "group", "lane", "latencies", "loads", "machine", "row",
        "site", "strict", "task", "ub", "vector",
    )  # fmt: skip

    def __init__(
        self,
        machine: Machine,
        core: Core,
        lane: Lane,
        device: int,
        keeps_bytes: bool,
        group: BlockBarrier,
        task: Any = None,
    ) -> None:
        self.machine = machine
        self.core = core
        self.lane = lane
        self.device = device
        self.bytes = keeps_bytes
        self.group = group
        self.site: Site | None = None
        self.strict = core.fences == "statement"
        self.task = task
        self.deferred: int | None = None
        self.ub = core.ub  # where tiles get their places; None where UB has no limit
        self.row = machine.platform.align.row  # rows of tiles are multiples of it; None: of any size
        # What the machine has said before, by device or operands: a look-up instead of a call.
        self.loads = machine.fabric.loads_from(device)
        self.latencies = machine.fabric.latencies_from(device)
        self.vector = machine.vector_costs(device)

    def note(self, kind: str, message: str, site: Site) -> None:
        """Remember something that the checks will report, once per place and rank."""
        self.task.remember(Note(kind, message, site, self.lane.rank, self.lane, self.core.time))


class OrchestrationBody(Protocol):
    """An orchestration on its device, where it calls kernels (`a2a3sim.run.dispatch.Orchestration`).

    Attributes:
        blocks: cores of the next kernel.
        manual: inside of `pl.manual_scope`.
        tasks: kernels so far.
    """

    level: Literal["orchestration"]
    blocks: int
    manual: bool
    tasks: int

    def note(self, kind: str, message: str, site: Site) -> None:
        """See `KernelContext.note`."""

    def created(self, name: str, shape: tuple[int, ...], dtype: DataType) -> Tensor:
        """A new tensor in the device's memory."""

    def run_small(
        self,
        name: str,
        body: Callable[[KernelContext], Any],
        accesses: list[tuple[Tensor, bool, bool]],
        site: Site,
        joins: bool = False,
    ) -> Any:
        """Run a kernel of the simulator's own on one core."""

    def run_kernel(self, function: Any, owner: Any, args: tuple[Any, ...], keep: Any = None) -> Any:
        """Run a kernel of the program and wait for its end."""

    def submit(self, block: Any, args: tuple[Any, ...], deps: tuple[Any, ...]) -> int:
        """Start a block once the tasks before it are over."""


class HostBody(Protocol):
    """A host body while it is recorded (`a2a3sim.language.host.recording.HostContext`)."""

    level: Literal["host"]

    def created(self, name: str, shape: tuple[int, ...], dtype: DataType) -> Any:
        """A host intermediate."""

    def check_readable(self, tensor: Any) -> None:
        """InvalidOperationError if a task writes the tensor."""

    def call(self, function: Any, owner: object, args: tuple[Any, ...], device: Any, site: Site) -> Any:
        """A function of the program is called."""

    def dispatch(self, function: Any, owner: object, args: tuple[Any, ...], device: Any, site: Site) -> None:
        """Record a kernel for one device; without ``device`` for the next."""


DeviceContext: TypeAlias = KernelContext | OrchestrationBody
Context: TypeAlias = DeviceContext | HostBody

_current: ContextVar[Context | None] = ContextVar("a2a3sim context", default=None)

current = _current.get


def enter(context: Context) -> Token[Context | None]:
    """Make a context current; returns the token for `leave`."""
    return _current.set(context)


def leave(token: Token[Context | None]) -> None:
    """Go back to the context before `enter`."""
    _current.reset(token)


def kernel_context(what: str) -> KernelContext:
    """The kernel that is running.

    Raises:
        ParserSyntaxError: outside of a kernel.
    """
    context = _current.get()
    if context is None or context.level != "kernel":
        where = "outside of a program" if context is None else f"in a {context.level} body"
        raise ParserSyntaxError(f"{what} stands {where}; it belongs into a kernel (InCore function)")
    return context


def device_context(what: str) -> DeviceContext:
    """The kernel that is running, or the orchestration.

    Raises:
        ParserSyntaxError: outside of both.
    """
    context = _current.get()
    if context is None or context.level == "host":
        where = "outside of a program" if context is None else "in a host body"
        raise ParserSyntaxError(f"{what} stands {where}; it belongs into a kernel or an orchestration")
    return context


def user_site() -> Site:
    """The user's line as (code object, instruction offset), however deep the simulator's own frames are."""
    frame = user_frame()
    return (frame.f_code, frame.f_lasti)


def caller_site(depth: int = 2) -> Site:
    """The user's call site as (code object, instruction offset), cheap to take and resolved when shown."""
    frame = sys._getframe(depth)
    return (frame.f_code, frame.f_lasti)
