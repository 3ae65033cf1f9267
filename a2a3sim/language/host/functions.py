"""One function of a program: what it declares, and what a call of it does in each context.

Called in a host body it is recorded as a dispatch, called in an orchestration a kernel runs on the device's
cores, called in a kernel it is plain code.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from sys import _getframe
from types import FunctionType, ModuleType
from typing import Any

from a2a3sim.errors import InternalError, InvalidOperationError, ParserSyntaxError, ParserTypeError
from a2a3sim.language.annotations import read_signature
from a2a3sim.language.context import current
from a2a3sim.language.dynamic import Bindings, bound
from a2a3sim.language.host.binding import bind_arguments
from a2a3sim.language.host.outline import outlined
from a2a3sim.language.host.rules import check_host_body
from a2a3sim.language.host_handles import HostTensor, WindowView
from a2a3sim.language.source import names_in, resolve, scope_of

__all__ = ["Function"]

# What only an orchestration contains.
_ORCHESTRATES = frozenset({"at", "spmd", "manual_scope"})

_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Function:
    """One function of a program.

    Attributes:
        declared: what its decorator says: ``host``, ``orchestration``, ``kernel``, ``subworker``, ``inline``
            or ``opaque``.
        parameters: in order, without ``self``.
        returns: declared results.
        jit: it belongs to the function form, where a bare window parameter counts as InOut.

    Raises:
        ParserSyntaxError: a generator or coroutine.
    """

    def __init__(self, fn: FunctionType, declared: str, method: bool, jit: bool = False) -> None:
        if fn.__code__.co_flags & _SUSPENDS:
            raise ParserSyntaxError(
                f"{fn.__name__} must be a plain function, got one with yield or async: calling it would "
                "run nothing"
            )
        self.fn = fn
        self.declared = declared
        self.method = method
        self.jit = jit
        self.name = fn.__name__
        self.siblings: dict[str, Function] = {}  # functions of the same class
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn
        self.parameters, self.returns = read_signature(fn, method, bare_window_is_inout=jit)
        self._body: FunctionType | None = None
        self._kind: str | None = None
        if declared == "host":
            check_host_body(fn)

    @property
    def kind(self) -> str:
        """``host``, ``orchestration``, ``kernel``, ``subworker`` or ``inline``.

        An opaque function, and one with a plain ``@pl.jit``, is an orchestration if it calls kernels or
        opens blocks, and otherwise a kernel.
        """
        if self._kind is None:
            self._kind = self.declared
            if self.declared == "opaque":
                self._kind = "orchestration" if self.orchestrates() else "kernel"
        return self._kind

    def callees(self) -> list[Function]:
        """The functions of the program that its body names."""
        fn = self.fn
        names = names_in(fn.__code__)
        found = {id(f): f for n, f in self.siblings.items() if n in names and f is not self}
        scope, modules = scope_of(fn), []
        for name in names:
            value = scope.get(name)
            if isinstance(value, Function):
                found[id(value)] = value
            elif isinstance(value, ModuleType):
                modules.append(value)
        for module in modules:
            for name in names:
                value = vars(module).get(name)
                if isinstance(value, Function):
                    found[id(value)] = value
        return sorted(found.values(), key=lambda f: f.name)

    def _callee(self, expression: ast.expr, scope: dict[str, Any]) -> Function | None:
        """The function of the program that an expression of its body names."""
        if isinstance(expression, ast.Attribute) and ast.unparse(expression.value) == "self":
            return self.siblings.get(expression.attr)
        found = resolve(expression, scope)
        return found if isinstance(found, Function) else None

    def orchestrates(self) -> bool:
        """Whether it calls kernels or opens blocks, directly or through inline functions."""
        if names_in(self.fn.__code__) & _ORCHESTRATES:
            return True
        return any(
            f.orchestrates() if f.declared == "inline" else f.declared not in ("host", "subworker")
            for f in self.callees()
        )

    # ---- calls ------------------------------------------------------------------------------------

    def call(self, owner: object, args: tuple[Any, ...], kwargs: dict[str, Any], depth: int = 2) -> Any:
        """Do what the current context asks for.

        Args:
            depth: of the user's frame, for the site of a dispatch.

        Raises:
            ParserSyntaxError: outside of a program.
            ParserTypeError: ``device=`` outside of a host body.
        """
        context = current()
        device = kwargs.pop("device", None)
        if kwargs:
            args = self._positional(args, kwargs)
        if context is None:
            raise ParserSyntaxError(
                f"{self.name} is a function of a program: compile the program (ir.compile) and call the "
                "result"
            )
        if context.level == "host":
            frame = _getframe(depth)
            return context.call(self, owner, args, device, (frame.f_code, frame.f_lasti))
        if device is not None:
            raise ParserTypeError(
                f"device= belongs to calls in a host body, not to {self.name} in a {context.level}"
            )
        kind = self.kind
        if kind in ("host", "subworker"):
            raise ParserTypeError(f"a {context.level} cannot call the {kind} function {self.name}")
        if kind == "kernel" and context.level == "orchestration":
            return context.run_kernel(self, owner, args)
        return self.run(owner, bind_arguments(self, args))

    def bind(self, args: Sequence[Any]) -> tuple[Sequence[Any], Bindings]:
        """See `bind_arguments`."""
        return bind_arguments(self, args)

    def run(self, owner: Any, bound_args: tuple[Sequence[Any], Bindings]) -> Any:
        """Run the body with arguments from `bind_arguments`."""
        args, bindings = bound_args
        body = self._body
        if body is None:
            body = self._body = outlined(self.fn, self._callee)
        with bound(bindings):
            return body(owner, *args) if self.method else body(*args)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        names = [p.name for p in self.parameters]
        for name in kwargs:
            if name not in names:
                raise InvalidOperationError(
                    f"{self.name} has no parameter {name!r}; it takes {', '.join(names)}"
                )
            if name in names[: len(args)]:
                raise InvalidOperationError(f"{self.name}: argument {name} is given twice")
        rest = []
        for parameter in self.parameters[len(args) :]:
            if parameter.name in kwargs:
                rest.append(kwargs[parameter.name])
            elif parameter.default is not inspect.Parameter.empty:
                rest.append(parameter.default)
            else:
                raise InvalidOperationError(f"{self.name}: argument {parameter.name} is missing")
        return (*args, *rest)

    # ---- dispatches -------------------------------------------------------------------------------

    def check_arguments(self, args: Sequence[Any]) -> None:
        """Number and kinds of a dispatch's arguments.

        Raises:
            InvalidOperationError: wrong number, or a value no device can take.
            InternalError: a tensor after a scalar.
        """
        required = sum(p.default is inspect.Parameter.empty for p in self.parameters)
        if not required <= len(args) <= len(self.parameters):
            raise InvalidOperationError(
                f"{self.name} takes {len(self.parameters)} arguments "
                f"({', '.join(p.name for p in self.parameters)}), got {len(args)}"
            )
        scalar_seen = None
        for arg, parameter in zip(args, self.parameters, strict=False):
            if isinstance(arg, (HostTensor, WindowView)):
                if scalar_seen is not None:
                    raise InternalError(
                        f"{self.name}: cannot add tensor after scalar: {parameter.name} follows "
                        f"{scalar_seen}; "
                        "put the tensors first"
                    )
            elif isinstance(arg, (int, float)) or hasattr(arg, "__index__"):
                scalar_seen = parameter.name
            else:
                raise InvalidOperationError(
                    f"{self.name}: argument {parameter.name} must be a tensor, a window or a number, "
                    f"got {arg!r}"
                )

    def accesses(self, args: Sequence[Any]) -> list[tuple[Any, bool, bool]]:
        """(argument, reads, writes) of each tensor argument, by the declared directions."""
        found = []
        for arg, parameter in zip(args, self.parameters, strict=False):
            if hasattr(arg, "layout"):
                direction = parameter.direction
                found.append((arg, direction != "out", direction != "in"))
        return found

    def returned(self, args: Sequence[Any]) -> Any:
        """What a dispatch stands for in the host body: the tensors that the function writes."""
        if not self.returns:
            return None
        pairs = [(a, p.direction) for a, p in zip(args, self.parameters, strict=False)]
        outs = [a for a, direction in pairs if direction == "out"]
        written = [a for a, direction in pairs if direction != "in"]
        wanted = len(self.returns)
        found = outs if len(outs) == wanted else written if len(written) == wanted else outs or written
        if wanted == 1:
            return found[0] if found else None
        return tuple(found[:wanted])

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"
