"""What a function's signature declares: parameters, directions and results, also from text annotations."""

from __future__ import annotations

import inspect
import sys
from types import FrameType, FunctionType
from typing import Any, NamedTuple, get_args, get_origin

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.handles import Annotation, DistributedTensor, Tensor

__all__ = ["Parameter", "Signature", "read_signature"]


class Parameter(NamedTuple):
    """A parameter of a function and its declared type (None where it is not annotated)."""

    name: str
    type: Annotation | None
    default: object = inspect.Parameter.empty  # where it has none

    @property
    def direction(self) -> str:
        """``in``, ``out`` or ``inout``; no wrapper means In."""
        return (self.type.direction if self.type is not None else None) or "in"

    @property
    def tensor(self) -> bool:
        """It is declared to be a tensor or window."""
        return self.type is not None and self.type.kind in ("tensor", "distributed")


class Signature(NamedTuple):
    """What a function declares.

    Attributes:
        returns: declared results, empty without a return annotation.
    """

    parameters: list[Parameter]
    returns: tuple[Annotation | None, ...]


def _scope(fn: FunctionType) -> dict[str, Any]:
    """Names that a text annotation of ``fn`` may use: module, closure, and the bodies around the definition.

    A name that only stands in text annotations is in no closure, so the frames are asked.
    """
    scope = dict(fn.__globals__)
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals is not fn.__globals__:
        frame = frame.f_back
    while frame is not None and frame.f_globals is fn.__globals__ and frame.f_code.co_name != "<module>":
        frames.append(frame)
        frame = frame.f_back
    for around in reversed(frames):
        scope.update(around.f_locals)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return scope


def _annotation(value: object) -> Annotation | None:
    if isinstance(value, type) and issubclass(value, Tensor):
        value = Annotation("distributed" if issubclass(value, DistributedTensor) else "tensor", None, None)
    return value if isinstance(value, Annotation) else None


def read_signature(fn: FunctionType, method: bool, bare_window_is_inout: bool) -> Signature:
    """The parameters and results of a function.

    Args:
        method: its first parameter is ``self``.
        bare_window_is_inout: as in the function form; in the class form a bare window is an input.

    Raises:
        InvalidOperationError: a text annotation that means nothing.
    """
    signature = inspect.signature(fn)
    scope: dict[str, Any] = {}

    def evaluate(text: Any, what: str) -> Any:
        if not isinstance(text, str):
            return text
        if not scope:
            scope.update(_scope(fn))
        try:
            return eval(text, scope)
        except Exception as error:
            raise InvalidOperationError(
                f"{fn.__name__}: the annotation of {what}, {text!r}, cannot be evaluated: "
                f"{type(error).__name__}: {error}"
            ) from None

    parameters = []
    for name in list(signature.parameters)[1 if method else 0 :]:
        parameter = signature.parameters[name]
        declared = _annotation(evaluate(parameter.annotation, name))
        if bare_window_is_inout and declared is not None and declared.kind == "distributed":
            declared = declared._replace(direction=declared.direction or "inout")
        parameters.append(Parameter(name, declared, parameter.default))
    returned = evaluate(signature.return_annotation, "the result")
    returns: tuple[Annotation | None, ...] = ()
    if returned is inspect.Signature.empty or returned is None:
        pass
    elif get_origin(returned) is tuple:
        returns = tuple(_annotation(r) for r in get_args(returned))
    elif isinstance(returned, (tuple, list)):
        returns = tuple(_annotation(r) for r in returned)
    else:
        returns = (_annotation(returned),)
    return Signature(parameters, returns)
