"""The class form: ``@pl.program`` classes with ``@pl.function`` methods."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, overload

from a2a3sim.errors import ParserSyntaxError
from a2a3sim.language.host.binding import bind_arguments
from a2a3sim.language.host.functions import Function
from a2a3sim.language.types import FunctionType as Kind
from a2a3sim.language.types import Level, Role

__all__ = ["Function", "Program", "bind_arguments", "function", "program"]


class _Method:
    """``self.fn`` inside a program's bodies."""

    def __init__(self, function: Function, owner: Program) -> None:
        self.function = function
        self.owner = owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function.call(self.owner, args, kwargs)

    def __repr__(self) -> str:
        return repr(self.function)


class Program:
    """What ``@pl.program`` makes of a class: an object with its functions, ready for ``ir.compile``."""

    def __init__(self, name: str, functions: dict[str, Function], attributes: dict[str, Any]) -> None:
        self.name = name
        self.functions = functions
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        functions = self.__dict__.get("functions", {})
        if name in functions:
            return _Method(functions[name], self)
        raise AttributeError(
            f"program {self.__dict__.get('name')} has no function {name!r}: {', '.join(functions)}"
        )

    @property
    def entries(self) -> list[Function]:
        """Where a call may start: the host entry, else every orchestration that no other function calls.

        Raises:
            ParserSyntaxError: there is none, or more than one host entry.
        """
        functions = self.functions.values()
        called = {id(g) for f in functions for g in f.callees()}
        hosts = [f for f in functions if f.kind == "host"]
        if len(hosts) > 1:
            hosts = [f for f in hosts if id(f) not in called]
        if len(hosts) > 1:
            raise ParserSyntaxError(
                f"program {self.name} must have one host entry (level=HOST, role=Orchestrator), found "
                f"{len(hosts)}"
            )
        if hosts:
            return hosts
        found = [f for f in functions if f.kind == "orchestration" and id(f) not in called]
        found = found or [f for f in functions if f.declared == "opaque" and id(f) not in called]
        if not found:
            raise ParserSyntaxError(
                f"program {self.name} must have a host entry (level=HOST, role=Orchestrator) or an "
                "orchestration, "
                f"found only {', '.join(map(repr, functions))}"
            )
        return found

    def __repr__(self) -> str:
        return f"<program {self.name}: {', '.join(map(repr, self.functions.values()))}>"


class _Declared:
    """A method with its ``@pl.function`` settings until ``@pl.program`` collects it."""

    def __init__(self, fn: FunctionType, kind: str) -> None:
        self.fn = fn
        self.kind = kind


def _takes_self(declared: _Declared) -> bool:
    """A SubWorker function has no ``self``; one that has it is understood too."""
    code = declared.fn.__code__
    return declared.kind != "subworker" or code.co_varnames[: code.co_argcount][:1] == ("self",)


def function(
    func: Any = None,
    *,
    type: Kind = Kind.Opaque,
    level: Level | None = None,
    role: Role | None = None,
    attrs: Any = None,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external_source: Any = None,
) -> Any:
    """Declare a method of a program: host entry, orchestration, kernel or sub-worker.

    Args:
        type: ``InCore`` for a kernel, ``Orchestration`` for what runs per device.
        level, role: ``HOST`` with ``Orchestrator`` or ``SubWorker``; ``CHIP`` with ``Orchestrator``.

    Raises:
        ParserSyntaxError: a combination that means nothing here.
    """
    if external_source is not None:
        raise ParserSyntaxError(
            "pl.function: external_source is not supported; write the kernel in the language"
        )

    def declare(fn: FunctionType) -> _Declared:
        kind: str | None
        if level is Level.HOST:
            kind = None if role is None else {Role.Orchestrator: "host", Role.SubWorker: "subworker"}[role]
        elif type is Kind.InCore:
            kind = "kernel"
        elif type is Kind.Orchestration or role is Role.Orchestrator:
            kind = "orchestration"
        elif type is Kind.Opaque:
            kind = "opaque"
        else:
            kind = None
        if kind is None:
            raise ParserSyntaxError(f"pl.function: {fn.__name__} has type {type}, level {level}, role {role}")
        return _Declared(fn, kind)

    return declare if func is None else declare(func)


@overload
def program(cls: type, *, strict_ssa: bool = False) -> Program: ...
@overload
def program(cls: None = None, *, strict_ssa: bool = False) -> Callable[[type], Program]: ...
def program(cls: type | None = None, *, strict_ssa: bool = False) -> Program | Callable[[type], Program]:
    """Make a program of a class whose methods are declared with ``@pl.function``."""

    def make(cls: type) -> Program:
        functions: dict[str, Function] = {}
        attributes: dict[str, Any] = {}
        for name, value in vars(cls).items():
            if isinstance(value, _Declared):
                functions[name] = Function(value.fn, value.kind, method=_takes_self(value))
            elif isinstance(value, Function):
                functions[name] = value
            elif not name.startswith("__"):
                attributes[name] = value
        for member in functions.values():
            member.siblings = functions
        if not functions:
            raise ParserSyntaxError(f"program {cls.__name__} has no function declared with @pl.function")
        attributes["__doc__"] = cls.__doc__
        return Program(cls.__name__, functions, attributes)

    return make if cls is None else make(cls)
