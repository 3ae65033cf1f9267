"""What runs on the host during a program: SubWorker functions, in order with the tensors that they use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.annotations import Parameter
from a2a3sim.language.dynamic import Bindings
from a2a3sim.language.host_handles import HostTensor
from a2a3sim.models.operation import Site

__all__ = ["Callee", "HostTask", "check_sub_worker_arguments", "host_view"]


class Callee(Protocol):
    """A function of a program (`a2a3sim.language.host.functions.Function`) or a block, as a task runs it."""

    name: str

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Its parameters, without ``self``."""

    @property
    def kind(self) -> str:
        """``orchestration``, ``kernel`` or ``subworker``."""

    def check_arguments(self, args: Sequence[Any]) -> None:
        """InvalidOperationError, InternalError: number or kinds of a dispatch's arguments."""

    def bind(self, args: Sequence[Any]) -> tuple[Sequence[Any], Bindings]:
        """Arguments as it declares them, and its dynamic dimensions."""

    def run(self, owner: Any, bound_args: tuple[Sequence[Any], Bindings]) -> Any:
        """Run the body."""

    def accesses(self, args: Sequence[Any]) -> list[tuple[Any, bool, bool]]:
        """(tensor, reads, writes) of each tensor argument."""


@dataclass(slots=True)
class HostTask:
    """A SubWorker function called by the host body.

    Attributes:
        function: the declared `a2a3sim.language.host.functions.Function`.
        body: what to call; the function's own code, or what a worker puts in its place.
    """

    index: int
    function: Callee
    args: tuple[Any, ...]
    body: Callable[..., object]
    site: Site | None = None

    def accesses(self) -> list[tuple[Any, bool, bool]]:
        """(tensor, reads, writes) by the declared directions."""
        return self.function.accesses(self.args)

    def run(self) -> None:
        """Run the body on views of the host's buffers."""
        self.body(*(host_view(a) if isinstance(a, HostTensor) else a for a in self.args))


def check_sub_worker_arguments(function: Callee, args: Sequence[Any]) -> None:
    """InvalidOperationError for a wrong number of arguments, or one that the host has no data of."""
    if len(args) != len(function.parameters):
        raise InvalidOperationError(
            f"{function.name} takes {len(function.parameters)} arguments "
            f"({', '.join(p.name for p in function.parameters)}), got {len(args)}"
        )
    for arg, parameter in zip(args, function.parameters, strict=True):
        if not isinstance(arg, (HostTensor, int, float)):
            raise InvalidOperationError(
                f"{function.name}: argument {parameter.name} of a sub-worker must be a host tensor or a "
                "number, "
                f"got {arg!r}"
            )


def host_view(tensor: HostTensor) -> Any:
    """A tensor's storage as the caller's own kind of array: torch where the caller uses torch, else numpy."""
    array = tensor.numpy()
    if not tensor.buffer.torch:
        return array
    torch = sys.modules["torch"]
    if tensor.dtype.name == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
