"""A call of a compiled program that can be made again: with other inputs, or on another schedule.

A repetition works on copies of the arguments; no result or observer hears of it.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from a2a3sim.errors import A2A3Error, DeadlockError
from a2a3sim.language.host.recording import Dispatch, Recording
from a2a3sim.language.host_handles import HostBuffer, HostTensor
from a2a3sim.language.layout import Layout
from a2a3sim.run.launch import Launch
from a2a3sim.run.settings import Settings

__all__ = ["Again", "Argument", "Call"]

_KEPT_BYTES = 1 << 28  # of arguments; more is not kept beside the caller's own


@dataclass(frozen=True)
class Argument:
    """One tensor of a call: its values when the call began, and which part each rank was handed.

    Attributes:
        direction: ``in``, ``out`` or ``inout``.
        before: what it held.
        parts: (rank, layout) of each view that a dispatch took, in order.
    """

    name: str
    direction: str
    layout: Layout
    buffer: HostBuffer = field(repr=False)
    before: np.ndarray = field(repr=False)
    parts: list[tuple[int, Layout]] = field(repr=False)

    def array(self) -> np.ndarray:
        """A view of what it holds now: after the call what that left, until the caller changes it."""
        return HostTensor(self.buffer, self.layout).numpy()


@dataclass(frozen=True)
class Again:
    """A repetition: what the program left in each argument that it may write, and how it went."""

    outputs: dict[str, np.ndarray]
    launch: Launch
    error: A2A3Error | None


class Call:
    """One call, as `a2a3sim.run.calls.run_call` makes it.

    Args:
        arguments: `a2a3sim.run.call_arguments.CallArguments`.
        record: makes the recording of the host body anew.
        residence: of the worker that makes the call, or None.

    Attributes:
        obstacle: why it cannot be made again, or empty.
        golden: what it was to be compared with.
        operations: how many it took.
        provenance: what `a2a3sim.checks.mismatch.provenance` has found out about it.
    """

    def __init__(
        self,
        name: str,
        arguments,
        record: Callable[[], Recording],
        settings: Settings,
        residence=None,
        golden=None,
    ):
        self.name = name
        self.settings = settings
        self.golden = golden
        self.obstacle = ""
        self.operations = 0
        self.provenance: Any = None
        self._record = record
        self._arguments: list[Argument] = []
        self._tensors = [(p, h) for p, h in arguments.tensors()]
        self._buffers = list({id(h.buffer): h.buffer for _, h in self._tensors}.values())
        self._before: list[np.ndarray] = []
        if settings.timing_only:
            self.obstacle = "a timing-only run moves no bytes"
        elif residence is not None and residence.persistent and not residence.reset:
            self.obstacle = "its windows hold what earlier calls of the worker left there"
        elif sum(b.nbytes for b in self._buffers) > _KEPT_BYTES:
            self.obstacle = f"its arguments exceed {_KEPT_BYTES >> 20} MiB"
        else:
            self._before = [b.array.copy() for b in self._buffers]

    def over(self, launch: Launch) -> None:
        """The call has ended: note which rank was handed what."""
        tasks = [task for task in launch.recording.tasks if isinstance(task, Dispatch)]
        self.operations = sum(len(lane.operations) for lane in launch.trace.lanes)
        if len(tasks) < len(launch.recording.tasks):
            self.obstacle = (
                self.obstacle or "it runs functions on the host, which a repetition would run again"
            )
        if self.obstacle:
            return
        parts: dict[int, list[tuple[int, Layout]]] = {}
        for task in tasks:
            for arg in task.args:
                if isinstance(arg, HostTensor):
                    parts.setdefault(id(arg.buffer), []).append((task.device, arg.layout))
        held = dict(zip(map(id, self._buffers), self._before, strict=True))
        for parameter, handle in self._tensors:
            layout = handle.layout
            before = np.ndarray(
                layout.shape,
                layout.dtype.numpy,
                held[id(handle.buffer)].reshape(-1).view(np.uint8),
                layout.base,
                layout.strides,
            )
            self._arguments.append(
                Argument(
                    parameter.name,
                    parameter.direction,
                    layout,
                    handle.buffer,
                    before,
                    parts.get(id(handle.buffer), []),
                )
            )

    @property
    def arguments(self) -> list[Argument]:
        """The tensors of the call, in the order of its parameters; empty if it cannot be made again."""
        return self._arguments

    def again(self, inputs: Mapping[str, np.ndarray] | None = None, watch=None, **changes) -> Again:
        """Make the call once more, from what its arguments held when it began.

        Args:
            inputs: other values for some arguments, by name.
            watch: see `a2a3sim.run.launch.Launch`.
            changes: fields of `a2a3sim.run.settings.Settings` to change.
        """
        kept = [b.array for b in self._buffers]
        settings = replace(self.settings, **changes)
        error: A2A3Error | None = None
        try:
            for buffer, before in zip(self._buffers, self._before, strict=True):
                buffer.array = before.copy()
            for argument in self._arguments:
                if inputs and argument.name in inputs:
                    argument.array()[...] = inputs[argument.name]
            with contextlib.redirect_stdout(io.StringIO()):  # what the program prints has been printed
                launch = Launch(
                    self._record(),
                    settings.platform,
                    settings.topology(),
                    settings,
                    settings.placement,
                    watch=watch,
                )
                try:
                    if launch.run():
                        error = DeadlockError("deadlock")
                except A2A3Error as raised:
                    error = raised
            outputs = {a.name: a.array().copy() for a in self._arguments if a.direction != "in"}
        finally:
            for buffer, array in zip(self._buffers, kept, strict=True):
                buffer.array = array
        return Again(outputs, launch, error)
