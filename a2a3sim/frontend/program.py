"""Programs and their functions: ``@pl.program`` classes and ``@pl.jit`` functions.

A function does what its context asks for: called in a host body it is recorded as a dispatch, called in an
orchestration a kernel runs on the device's cores, called in a kernel it is plain code.
"""

from __future__ import annotations

import inspect
from sys import _getframe
from typing import NamedTuple, get_args, get_origin

from a2a3sim.frontend.arguments import HostTensor
from a2a3sim.errors import InvalidOperationError, ParserSyntaxError, ParserTypeError
from a2a3sim.frontend.context import current
from a2a3sim.frontend.dynamic import bound, dim_value, unify
from a2a3sim.frontend.handles import Annotation, DistributedTensor, Layout, Tensor, Tile, row_major
from a2a3sim.frontend.types import FunctionType, Level, Role
from a2a3sim.frontend.recording import WindowView

__all__ = ["Function", "Parameter", "Program", "bind_arguments", "function", "program"]


class Parameter(NamedTuple):
    """A parameter of a function and its declared type (None where it is not annotated)."""

    name: str
    type: Annotation | None
    default: object = inspect.Parameter.empty


class Function:
    """One function of a program.

    Attributes:
        kind: ``host``, ``orchestration``, ``kernel`` or ``subworker``.
        returns: whether a return annotation stands on it.
        jit: it belongs to the function form, where a bare window parameter counts as InOut.
    """

    def __init__(self, fn, kind: str, method: bool, jit: bool = False) -> None:
        self.fn = fn
        self.kind = kind
        self.method = method
        self.jit = jit
        self.name = fn.__name__
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn
        signature = inspect.signature(fn)
        names = list(signature.parameters)
        if method:
            names = names[1:]
        self.parameters = [self._parameter(signature.parameters[n]) for n in names]
        returned = signature.return_annotation
        if isinstance(returned, str):
            returned = _evaluate(returned, fn)
        self.returns = returned not in (inspect.Signature.empty, None)
        self.tuple_returned = len(get_args(returned)) if get_origin(returned) is tuple else 0

    def _parameter(self, parameter: inspect.Parameter) -> Parameter:
        annotation = parameter.annotation
        if isinstance(annotation, str):
            annotation = _evaluate(annotation, self.fn)
        if isinstance(annotation, type) and issubclass(annotation, Tensor):
            kind = "distributed" if issubclass(annotation, DistributedTensor) else "tensor"
            annotation = Annotation(kind, None, None)
        if not isinstance(annotation, Annotation):
            annotation = None
        elif annotation.kind == "distributed" and annotation.direction is None and self.jit:
            annotation = annotation._replace(direction="inout")
        return Parameter(parameter.name, annotation, parameter.default)

    def check_arguments(self, args) -> None:
        """Number and kinds of a dispatch's arguments.

        Raises:
            InvalidOperationError: wrong number, a tensor after a scalar, or a value no device can take.
        """
        if len(args) > len(self.parameters) or len(args) < self._required():
            raise InvalidOperationError(
                f"{self.name} takes {len(self.parameters)} arguments "
                f"({', '.join(p.name for p in self.parameters)}), got {len(args)}"
            )
        scalar_seen = None
        for arg, parameter in zip(args, self.parameters, strict=False):
            if isinstance(arg, (HostTensor, WindowView)):
                if scalar_seen is not None:
                    raise InvalidOperationError(
                        f"{self.name}: cannot add tensor after scalar: {parameter.name} follows {scalar_seen}; "
                        "put the tensors first"
                    )
            elif isinstance(arg, (int, float)) or hasattr(arg, "__index__"):
                scalar_seen = parameter.name
            else:
                raise InvalidOperationError(
                    f"{self.name}: argument {parameter.name} must be a tensor, a window or a number, got {arg!r}"
                )

    def _required(self) -> int:
        return sum(p.default is inspect.Parameter.empty for p in self.parameters)

    def call(self, owner, args, kwargs, depth: int = 2):
        """Do what the current context asks for."""
        context = current()
        device = kwargs.pop("device", None)
        if kwargs:
            args = self._positional(args, kwargs)
        if context is None:
            raise ParserSyntaxError(
                f"{self.name} is a function of a program: compile the program (ir.compile) and call the result"
            )
        if context.level == "host":
            frame = _getframe(depth)
            return context.call(self, owner, args, device, (frame.f_code, frame.f_lasti))
        if device is not None:
            raise ParserTypeError(f"device= belongs to calls in a host body, not to {self.name} in a {context.level}")
        if context.level == "orchestration" and self.kind == "kernel":
            return context.run_kernel(self, owner, args)
        return self.run(owner, bind_arguments(self, args))

    def bind(self, args):
        """See `bind_arguments`."""
        return bind_arguments(self, args)

    def returned(self, args):
        """What a dispatch stands for in the host body: the tensors that the function writes."""
        if not self.returns:
            return None
        written = [
            a for a, p in zip(args, self.parameters, strict=False) if p.type is not None and p.type.direction
        ]
        outs = [
            a for a, p in zip(args, self.parameters, strict=False) if p.type is not None and p.type.direction == "out"
        ]
        if self.tuple_returned:
            return tuple(written[: self.tuple_returned]) if len(outs) != self.tuple_returned else tuple(outs)
        return (outs or written or [None])[0]

    def _positional(self, args, kwargs) -> tuple:
        names = [p.name for p in self.parameters]
        unknown = [k for k in kwargs if k not in names]
        if unknown:
            raise InvalidOperationError(f"{self.name} has no parameter {unknown[0]!r}; it takes {', '.join(names)}")
        rest = []
        for parameter in self.parameters[len(args) :]:
            if parameter.name in kwargs:
                rest.append(kwargs[parameter.name])
            elif parameter.default is not inspect.Parameter.empty:
                rest.append(parameter.default)
            else:
                raise InvalidOperationError(f"{self.name}: argument {parameter.name} is missing")
        return (*args, *rest)

    def run(self, owner, bound_args):
        """Run the body with arguments from `bind_arguments`."""
        args, bindings = bound_args
        with bound(bindings):
            return self.fn(owner, *args) if self.method else self.fn(*args)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


def _evaluate(text: str, fn):
    """A string annotation (``from __future__ import annotations``) in the function's own scope."""
    closure = inspect.getclosurevars(fn)
    scope = {**fn.__globals__, **closure.nonlocals}
    try:
        return eval(text, scope)
    except NameError:
        return None


def bind_arguments(function: Function, args) -> tuple[list, dict[str, int]]:
    """Arguments as the function declares them (windows re-viewed), and its dynamic dimensions.

    Raises:
        InvalidOperationError: an argument does not fit its declaration.
    """
    bindings: dict[str, int] = {}
    if len(args) != len(function.parameters):
        if len(args) < function._required() or len(args) > len(function.parameters):
            raise InvalidOperationError(
                f"{function.name} takes {len(function.parameters)} arguments, got {len(args)}"
            )
        args = (*args, *(p.default for p in function.parameters[len(args) :]))
    for arg, parameter in zip(args, function.parameters, strict=True):
        declared = parameter.type
        if declared is None or declared.dims is None or not isinstance(arg, (Tensor, HostTensor, WindowView)):
            continue
        shape = arg.layout.shape
        if len(shape) == len(declared.dims) or declared.kind == "tensor":
            problem = unify(declared.dims, shape, bindings)
            if problem:
                raise InvalidOperationError(
                    f"{function.name}: argument {parameter.name} has shape {list(shape)} where "
                    f"{_show(declared)} is declared: {problem}"
                )
    return [
        _fit(function, p, a, bindings) for p, a in zip(function.parameters, args, strict=True)
    ], bindings


def _show(declared: Annotation) -> str:
    return f"[{', '.join(map(str, declared.dims))}] {declared.dtype!r}"


def _fit(function: Function, parameter: Parameter, arg, bindings):
    declared = parameter.type
    if declared is None:
        return arg
    where = f"{function.name}: argument {parameter.name}"
    if declared.kind == "scalar":
        if isinstance(arg, (Tensor, HostTensor, WindowView, Tile)):
            raise InvalidOperationError(f"{where} must be a scalar {declared.dtype!r}, got {arg!r}")
        return arg if declared.dtype is not None and declared.dtype.floating else dim_value(arg)
    if declared.kind == "tile":
        return arg
    if declared.kind == "distributed":
        if not isinstance(arg, (DistributedTensor, WindowView)):
            raise InvalidOperationError(f"{where} must be a window (pld.window), got {arg!r}")
    elif not isinstance(arg, (Tensor, HostTensor, WindowView)):
        raise InvalidOperationError(f"{where} must be a tensor, got {arg!r}")
    if declared.dtype is not None and declared.dtype is not arg.layout.dtype:
        raise InvalidOperationError(f"{where} is declared {declared.dtype!r}, got {arg!r}")
    if declared.dims is None:
        return arg
    dims = tuple(d.value(bindings) if hasattr(d, "names") else dim_value(d) for d in declared.dims)
    layout = arg.layout
    if layout.shape == dims:
        return arg
    if declared.kind == "distributed" and isinstance(arg, DistributedTensor):
        # The callee's annotation re-views the window.
        needed = layout.dtype.itemsize
        for d in dims:
            needed *= d
        if needed > arg.memory.nbytes - layout.base:
            raise InvalidOperationError(
                f"{where} is declared {_show(declared)}, {needed} B, but the window {layout.name} has "
                f"{arg.memory.nbytes - layout.base} B"
            )
        strides = row_major(dims, layout.dtype.itemsize)
        return arg.relaid(Layout(layout.name, dims, layout.dtype, layout.base, strides))
    if declared.kind == "distributed":
        return arg
    raise InvalidOperationError(f"{where} has shape {list(layout.shape)} where {_show(declared)} is declared")


class _Method:
    """``self.fn`` inside a program's bodies."""

    def __init__(self, function: Function, owner: Program) -> None:
        self.function = function
        self.owner = owner

    def __call__(self, *args, **kwargs):
        return self.function.call(self.owner, args, kwargs)

    def __repr__(self) -> str:
        return repr(self.function)


class Program:
    """What ``@pl.program`` makes of a class: an object with its functions, ready for ``ir.compile``."""

    def __init__(self, name: str, functions: dict[str, Function], attributes: dict) -> None:
        self.name = name
        self.functions = functions
        self.__dict__.update(attributes)

    def __getattr__(self, name: str):
        functions = self.__dict__.get("functions", {})
        if name in functions:
            return _Method(functions[name], self)
        raise AttributeError(f"program {self.__dict__.get('name')} has no function {name!r}: {', '.join(functions)}")

    @property
    def host(self) -> Function:
        """The host entry.

        Raises:
            ParserSyntaxError: there is none, or more than one.
        """
        entries = [f for f in self.functions.values() if f.kind == "host"]
        if len(entries) != 1:
            raise ParserSyntaxError(
                f"program {self.name} must have one host entry (level=HOST, role=Orchestrator), found {len(entries)}"
            )
        return entries[0]

    def __repr__(self) -> str:
        return f"<program {self.name}: {', '.join(map(repr, self.functions.values()))}>"


class _Declared:
    """A method with its ``@pl.function`` settings until ``@pl.program`` collects it."""

    def __init__(self, fn, kind: str) -> None:
        self.fn = fn
        self.kind = kind


def function(
    func=None,
    *,
    type=FunctionType.Opaque,  # noqa: A002 - PyPTO's keyword
    level=None,
    role=None,
    attrs=None,
    auto_scope=True,
    strict_ssa=False,
    external_source=None,
):
    """Declare a method of a program: host entry, orchestration, kernel or sub-worker.

    Args:
        type: ``InCore`` for a kernel, ``Orchestration`` for what runs per device.
        level, role: ``HOST`` with ``Orchestrator`` or ``SubWorker``; ``CHIP`` with ``Orchestrator``.

    Raises:
        ParserSyntaxError: a combination that means nothing here.
    """
    if external_source is not None:
        raise ParserSyntaxError("pl.function: external_source is not supported; write the kernel in the language")

    def declare(fn):
        if level is Level.HOST:
            kind = {Role.Orchestrator: "host", Role.SubWorker: "subworker"}.get(role)
        elif type is FunctionType.InCore:
            kind = "kernel"
        elif type is FunctionType.Orchestration or role is Role.Orchestrator:
            kind = "orchestration"
        elif type is FunctionType.Opaque:
            kind = "kernel"
        else:
            kind = None
        if kind is None:
            raise ParserSyntaxError(f"pl.function: {fn.__name__} has type {type}, level {level}, role {role}")
        return _Declared(fn, kind)

    return declare if func is None else declare(func)


def program(cls=None, *, strict_ssa=False):
    """Make a program of a class whose methods are declared with ``@pl.function``."""

    def make(cls) -> Program:
        functions, attributes = {}, {}
        for name, value in vars(cls).items():
            if isinstance(value, _Declared):
                functions[name] = Function(value.fn, value.kind, method=value.kind != "subworker")
            elif isinstance(value, Function):
                functions[name] = value
            elif not name.startswith("__"):
                attributes[name] = value
        if not functions:
            raise ParserSyntaxError(f"program {cls.__name__} has no function declared with @pl.function")
        attributes["__doc__"] = cls.__doc__
        return Program(cls.__name__, functions, attributes)

    return make if cls is None else make(cls)
