"""Arguments meet declarations: shapes bind dynamic dimensions, windows take the declared extents."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.annotations import Parameter
from a2a3sim.language.dynamic import Bindings, dim_value, unify
from a2a3sim.language.handles import Annotation, DistributedTensor, Tensor, Tile
from a2a3sim.language.host_handles import HostTensor, WindowView
from a2a3sim.language.kernel.device_int import DeviceInt, device_int
from a2a3sim.language.layout import Layout, row_major

__all__ = ["Declaration", "bind_arguments"]

_TENSORS = (Tensor, HostTensor, WindowView)


class Declaration(Protocol):
    """What is declared of a function (`a2a3sim.language.host.functions.Function`)."""

    name: str
    declared: str
    parameters: list[Parameter]


def bind_arguments(function: Declaration, args: Sequence[Any]) -> tuple[list[Any], Bindings]:
    """Arguments as the function declares them, and its dynamic dimensions.

    Raises:
        InvalidOperationError: an argument does not fit its declaration.
    """
    parameters = function.parameters
    if len(args) != len(parameters):
        missing = parameters[len(args) :]
        if len(args) > len(parameters) or any(p.default is inspect.Parameter.empty for p in missing):
            raise InvalidOperationError(f"{function.name} takes {len(parameters)} arguments, got {len(args)}")
        args = (*args, *(p.default for p in missing))
    bindings: Bindings = {}
    for arg, parameter in zip(args, parameters, strict=True):
        declared = parameter.type
        if declared is None or declared.dims is None or not isinstance(arg, _TENSORS):
            continue
        shape = arg.layout.shape
        if len(shape) == len(declared.dims) or declared.kind == "tensor":
            problem = unify(declared.dims, shape, bindings)
            if problem:
                raise InvalidOperationError(
                    f"{function.name}: argument {parameter.name} has shape {list(shape)} where "
                    f"{_show(declared)} is declared: {problem}"
                )
    on_device = function.declared != "host"
    return [
        _fit(function, p, a, bindings, on_device) for p, a in zip(parameters, args, strict=True)
    ], bindings


def _show(declared: Annotation) -> str:
    return f"[{', '.join(map(str, declared.dims or ()))}] {declared.dtype!r}"


def _scalar(where: str, declared: Annotation, value: Any, on_device: bool) -> Any:
    if isinstance(value, (*_TENSORS, Tile)):
        raise InvalidOperationError(f"{where} must be a scalar {declared.dtype!r}, got {value!r}")
    dtype = declared.dtype
    if dtype is None or dtype.floating or dtype.name == "bool":
        return value
    number = dim_value(value)
    return device_int(number) if on_device else number


def _fit(function: Declaration, parameter: Parameter, arg: Any, bindings: Bindings, on_device: bool) -> Any:
    declared = parameter.type
    if declared is None:
        return device_int(arg) if on_device and type(arg) is int else arg
    where = f"{function.name}: argument {parameter.name}"
    if declared.kind == "scalar":
        return arg if type(arg) is DeviceInt else _scalar(where, declared, arg, on_device)
    if declared.kind == "tile":
        return arg
    if declared.kind == "distributed":
        if not isinstance(arg, (DistributedTensor, WindowView)):
            raise InvalidOperationError(f"{where} must be a window (pld.window), got {arg!r}")
    elif not isinstance(arg, _TENSORS):
        raise InvalidOperationError(f"{where} must be a tensor, got {arg!r}")
    if declared.dtype is not None and declared.dtype is not arg.layout.dtype:
        raise InvalidOperationError(f"{where} is declared {declared.dtype!r}, got {arg!r}")
    if declared.dims is None:
        return arg
    dims = tuple(d.value(bindings) if hasattr(d, "names") else dim_value(d) for d in declared.dims)
    dynamic = tuple(axis for axis, d in enumerate(declared.dims) if hasattr(d, "names"))
    if arg.layout.shape == dims:
        return _declared_dynamic(arg, dynamic)
    if declared.kind == "distributed":
        if not isinstance(arg, DistributedTensor):
            return arg
        return _declared_dynamic(_review(where, declared, arg, dims), dynamic)
    raise InvalidOperationError(
        f"{where} has shape {list(arg.layout.shape)} where {_show(declared)} is declared"
    )


def _declared_dynamic(arg: Any, axes: tuple[int, ...]) -> Any:
    """A device's tensor as a function sees it that declares some extents with `pl.dynamic`."""
    if isinstance(arg, Tensor) and arg.dynamic != axes:
        arg = arg.viewed(arg.layout)
        arg.dynamic = axes
    return arg


def _review(
    where: str, declared: Annotation, arg: DistributedTensor, dims: tuple[int, ...]
) -> DistributedTensor:
    """The window seen with the extents that the callee declares, from the view's first element on."""
    layout = arg.layout
    itemsize = layout.dtype.itemsize
    if layout.strides != row_major(layout.shape, itemsize):
        raise InvalidOperationError(
            f"{where} is declared {_show(declared)}, but {layout.name} {list(layout.shape)} is a view "
            "with gaps, "
            "which cannot take other extents"
        )
    needed = itemsize
    for d in dims:
        needed *= d
    if needed > arg.memory.nbytes - layout.base:
        raise InvalidOperationError(
            f"{where} is declared {_show(declared)}, {needed} B, but the window {layout.name} has "
            f"{arg.memory.nbytes - layout.base} B"
        )
    return arg.viewed(Layout(layout.name, dims, layout.dtype, layout.base, row_major(dims, itemsize)))
