"""The arguments of one call: how many, of what kind, and which arrays the program makes itself."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.annotations import Parameter
from a2a3sim.language.host.arguments import as_array, host_tensors, is_scalar, is_torch
from a2a3sim.language.host.device_tensors import DeviceTensor, StackedDeviceTensor
from a2a3sim.language.host.functions import Function
from a2a3sim.language.host_handles import HostTensor

__all__ = ["CallArguments"]


class CallArguments:
    """What a call was given, as its program's entry takes it.

    Args:
        scalars: values of scalar parameters that the call may leave away.
        in_place: all parameters must be given (a worker's call).
        on_devices: tensors that live on devices are allowed.

    Attributes:
        given: one value per parameter, the caller's own objects.
        handles: the same as the entry gets them.
        torch: some tensor is torch's.

    Raises:
        InvalidOperationError: wrong number or kinds.
    """

    def __init__(
        self, name: str, entry: Function, args, scalars=None, in_place=False, on_devices=False
    ) -> None:
        self.name = name
        self.entry = entry
        self.made: list[int] = []  # positions of arrays that the call makes
        self.given = self._complete(list(args), scalars or {}, in_place)
        self.torch = any(is_torch(a) for a in self.given)
        self.handles = self._handles(on_devices)

    def _complete(self, args: list, scalars: dict, in_place: bool) -> list:
        parameters = self.entry.parameters
        if len(args) == len(parameters):
            return args
        scalars = {
            **{p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty},
            **scalars,
        }
        open_ones = [p for p in parameters if p.name not in scalars]
        outs = [p for p in open_ones if p.direction == "out"]
        if len(args) == len(open_ones):
            outs = []
        elif in_place or not (self.entry.returns and outs and len(args) == len(open_ones) - len(outs)):
            raise InvalidOperationError(
                f"{self.name} takes {len(parameters)} arguments ({', '.join(p.name for p in parameters)}), "
                f"got {len(args)}"
            )
        given, filled = iter(args), []
        for position, p in enumerate(parameters):
            if p.name in scalars:
                filled.append(scalars[p.name])
            elif p in outs:
                self.made.append(position)
                filled.append(_fresh(p, args[0] if args else None))
            else:
                filled.append(next(given))
        return filled

    def _handles(self, on_devices: bool) -> list:
        arrays, names = [], []
        handles: list[Any] = []
        for value, parameter in zip(self.given, self.entry.parameters, strict=True):
            what = f"argument {parameter.name} of {self.name}"
            if isinstance(value, (DeviceTensor, StackedDeviceTensor)):
                if not on_devices:
                    raise InvalidOperationError(
                        f"{what} must be a numpy array or a torch CPU tensor; tensors on devices belong "
                        "to a worker"
                    )
                handles.append(value.handle())
            elif is_scalar(value):
                if parameter.tensor:
                    raise InvalidOperationError(
                        f"{what} must be a numpy array or a torch CPU tensor, got {value!r}"
                    )
                handles.append(value.item() if isinstance(value, np.generic) else value)
            else:
                arrays.append(as_array(value, what))
                names.append(parameter.name)
                handles.append(None)
        tensors = iter(host_tensors(arrays, names))
        handles = [next(tensors) if h is None else h for h in handles]
        for value, handle in zip(self.given, handles, strict=True):
            if is_torch(value):
                handle.buffer.torch = True
        return handles

    def tensors(self) -> Iterator[tuple[Parameter, HostTensor]]:
        """(parameter, host tensor) of each tensor argument."""
        for parameter, handle in zip(self.entry.parameters, self.handles, strict=True):
            if isinstance(handle, HostTensor):
                yield parameter, handle

    def poison(self, pattern: np.uint16) -> None:
        """Fill the Out arguments with something recognisable."""
        for parameter, handle in self.tensors():
            itemsize = handle.layout.dtype.itemsize
            if parameter.direction == "out" and itemsize > 1:
                handle.numpy()[...] = pattern.repeat(itemsize // 2).view(handle.layout.dtype.numpy)[0]

    def write_back(self) -> None:
        """Results reach the caller's arrays where copies of them were used."""
        for _, handle in self.tensors():
            handle.buffer.write_back()

    def written(self) -> dict[str, np.ndarray]:
        """The tensors that the program may have changed, by name."""
        return {p.name: h.numpy() for p, h in self.tensors() if p.direction != "in"}

    def result(self, returned):
        """What the call returns: None in place, else the arrays that the body returned.

        Args:
            returned: the body's result, of host tensors.
        """
        if not self.made:
            return None
        wanted = returned if isinstance(returned, tuple) else (returned,)
        found = []
        for tensor in wanted:
            same = [
                value
                for value, handle in zip(self.given, self.handles, strict=True)
                if isinstance(handle, HostTensor) and isinstance(tensor, HostTensor) and handle is tensor
            ]
            found += same[:1]
        if len(found) != len(wanted):
            found = [self.given[k] for k in self.made]
        return found[0] if len(found) == 1 else tuple(found)


def _fresh(parameter, like):
    """A zero array for an Out parameter that the caller left away, of the caller's own kind."""
    declared = parameter.type
    if declared.dims is None or any(hasattr(d, "names") for d in declared.dims):
        raise InvalidOperationError(
            f"cannot make {parameter.name}: its shape is not static; pass it as an argument instead"
        )
    shape = tuple(int(d) for d in declared.dims)
    if is_torch(like):
        torch = sys.modules["torch"]
        names = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
        return torch.zeros(shape, dtype=getattr(torch, names.get(declared.dtype.name, declared.dtype.name)))
    return np.zeros(shape, declared.dtype.numpy)
