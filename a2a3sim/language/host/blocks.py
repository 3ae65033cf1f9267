"""``with pl.at(...):`` blocks: anonymous chip tasks in a host body, anonymous kernels in an orchestration.

Where a block's task has explicit dependences or holds back its completion (`defer_wait`), the orchestration
goes on without it and the block becomes a node of a task graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple, Self, TypeAlias

from a2a3sim.errors import InvalidOperationError, ParserSyntaxError
from a2a3sim.language.annotations import Parameter
from a2a3sim.language.context import current
from a2a3sim.language.dynamic import Bindings, bound, present_bindings
from a2a3sim.language.handles import Tensor
from a2a3sim.language.host_handles import HostTensor, WindowView
from a2a3sim.language.kernel.arrays import Array
from a2a3sim.language.types import Level, Role

__all__ = ["UNBOUND", "Block", "TaskId", "at", "manual_scope", "open_block"]

UNBOUND = object()  # stands for a name that has no value when a block is reached

_Names: TypeAlias = tuple[str, ...]


class TaskId(NamedTuple):
    """``with pl.at(...) as task:``; what ``deps=`` of later blocks takes."""

    number: int
    name: str


class _Unavailable:
    """A value that a block makes later, while its orchestration or host body has already gone on."""

    def __init__(self, name: str, block: str) -> None:
        self._text = f"<{name} of {block}, which has not run: let the block write a tensor instead>"

    def __repr__(self) -> str:
        return self._text


class at:
    """``with pl.at(level=pl.Level.CORE_GROUP):`` around kernel code in an orchestration.

    In a host body ``with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):`` is an anonymous chip task;
    successive ones go to successive chips.

    Args:
        name_hint: the task's name in reports.
        deps: `TaskId`s that must be complete before it starts.

    Raises:
        InvalidOperationError: levels, roles or dependences that mean nothing here.
    """

    def __init__(
        self,
        level: Level,
        role: Role | None = None,
        *,
        name_hint: str | None = None,
        deps: Any = None,
        **others: Any,
    ) -> None:
        for name in others:
            raise InvalidOperationError(
                f"pl.at: {name}= is not supported; level, role, name_hint and deps are"
            )
        if level not in (Level.CORE_GROUP, Level.CHIP):
            raise InvalidOperationError(
                f"pl.at: level must be pl.Level.CORE_GROUP or pl.Level.CHIP, got {level!r}"
            )
        if role not in (None, Role.Orchestrator) or (role is not None and level is Level.CORE_GROUP):
            raise InvalidOperationError(
                "pl.at: role must be pl.Role.Orchestrator at pl.Level.CHIP and absent at CORE_GROUP, "
                f"got {role!r}"
            )
        self.level = level
        self.name_hint = name_hint or None
        self.deps = None if deps is None else _task_ids(deps)

    def __enter__(self) -> TaskId:
        raise ParserSyntaxError(
            "a pl.at block must stand in the body of a program's function whose source is at hand: it "
            "is made a task "
            "of its own before the body runs"
        )

    def __exit__(self, *_exc: object) -> None:
        """Never reached."""


def _task_ids(deps: Any) -> tuple[TaskId, ...]:
    found: list[TaskId] = []
    for dep in [deps] if isinstance(deps, (TaskId, Array)) else deps:
        if isinstance(dep, Array):
            found += [t for t in dep.written() if isinstance(t, TaskId)]
        elif isinstance(dep, TaskId):
            found.append(dep)
        else:
            raise InvalidOperationError(
                f"pl.at: deps must be task ids (with pl.at(...) as task), got {dep!r}"
            )
    return tuple(found)


class manual_scope:
    """``with pl.manual_scope():``: ``deps=`` alone orders the tasks in it, not the tensors they share."""

    def __enter__(self) -> Self:
        context = current()
        if context is None or context.level != "orchestration":
            raise ParserSyntaxError("pl.manual_scope stands around pl.at blocks in an orchestration")
        self._context, self._before = context, context.manual
        context.manual = True
        return self

    def __exit__(self, *_exc: object) -> None:
        self._context.manual = self._before


class Block:
    """The body of a block as a function of the names it reads.

    Attributes:
        kind: ``kernel`` at CORE_GROUP, else ``orchestration``.
        defers: it consists of `defer_wait`s, so its task needs no core.
    """

    declared = "block"
    parameters: tuple[Parameter, ...] = ()

    def __init__(
        self, name: str, fn: FunctionType, names: _Names, reads: _Names, writes: _Names, kind: str
    ) -> None:
        self.name = name
        self.fn = fn
        self.names = names
        self.kind = kind
        self.defers = "defer_wait" in fn.__code__.co_names
        self._reads = reads
        self._writes = writes
        self._bindings = present_bindings()

    def check_arguments(self, args: Sequence[Any]) -> None:
        """Anything may be captured."""

    def bind(self, args: Sequence[Any]) -> tuple[Sequence[Any], Bindings]:
        """The captured values, and the dynamic dimensions in force where the block stands."""
        return args, self._bindings

    def run(self, _owner: object, bound_args: tuple[Sequence[Any], Bindings]) -> dict[str, Any]:
        """Run the body; returns its local names."""
        args, bindings = bound_args
        with bound(bindings):
            found: dict[str, Any] = self.fn(*args)
        return found

    def accesses(self, args: Sequence[Any]) -> list[tuple[Any, bool, bool]]:
        """(tensor, reads, writes) of the tensors that it captured."""
        return [
            (arg, name in self._reads, name in self._writes)
            for name, arg in zip(self.names, args, strict=True)
            if hasattr(arg, "layout") and (name in self._reads or name in self._writes)
        ]

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


class _Opened(NamedTuple):
    task: TaskId | None
    values: dict[str, Any]


def open_block(
    where: at,
    fn: FunctionType,
    scope: dict[str, Any],
    loaded: _Names,
    outs: _Names,
    reads: _Names,
    writes: _Names,
    graph: bool,
) -> _Opened:
    """What a rewritten ``with pl.at(...):`` statement does in its context.

    Args:
        scope: local names with their values where the block stands.
        loaded: names that the block takes.
        outs: names that it assigns and others use.
        reads, writes: names that it reads and writes as tensors.
        graph: some block of the function has ``deps=`` or defers its completion.
    """
    context = current()
    if context is None:
        raise ParserSyntaxError("pl.at stands outside of a program")
    args = tuple(scope.get(name, UNBOUND) for name in loaded)
    kind = "kernel" if where.level is Level.CORE_GROUP else "orchestration"
    block = Block(where.name_hint or fn.__name__, fn, loaded, reads, writes, kind)
    if context.level == "host":
        if where.deps is not None:
            raise InvalidOperationError(
                "pl.at: deps= orders tasks of one device; it is not supported in a host body"
            )
        context.dispatch(block, None, args, None, (fn.__code__, 0))
        return _Opened(None, _kept(outs, scope, block.name))
    if context.level == "kernel" or kind == "orchestration":
        if where.deps is not None:
            raise InvalidOperationError(
                f"pl.at: deps= is not supported in a {context.level} at {where.level}"
            )
        found = block.run(None, (args, block.bind(args)[1]))
        return _Opened(None, {name: found[name] for name in outs if name in found})
    if graph:
        number = context.submit(block, args, where.deps or ())
        return _Opened(TaskId(number, block.name), _kept(outs, scope, block.name))
    number = context.tasks
    found = context.run_kernel(block, None, args, keep=outs)
    return _Opened(TaskId(number, block.name), {name: found[name] for name in outs if name in found})


def _kept(outs: _Names, scope: dict[str, Any], block: str) -> dict[str, Any]:
    """Names that a block assigns, as the code after it sees them: tensors stay what they are."""
    return {
        name: _Unavailable(name, block)
        for name in outs
        if not isinstance(scope.get(name), (HostTensor, WindowView, Tensor))
    }
