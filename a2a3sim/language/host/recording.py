"""The host body, recorded: which kernels go to which devices on which windows.

A host body runs once, before anything is simulated: launching each dispatch when the loop reaches it would
deadlock (rank 0 would wait for ranks that have not been launched), and which ranks share a window is known
only after the last dispatch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any, Literal

import numpy as np

from a2a3sim.errors import InternalError, InvalidOperationError, ParserSyntaxError, ParserTypeError
from a2a3sim.language.context import current
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.host.collective_task import Collective, domains_of
from a2a3sim.language.host.tasks import Callee, HostTask, check_sub_worker_arguments
from a2a3sim.language.host_handles import HostBuffer, HostTensor, WindowBuffer, WindowView
from a2a3sim.language.layout import Layout, row_major
from a2a3sim.language.types import DataType
from a2a3sim.models.operation import Site

__all__ = ["Dispatch", "HostContext", "Recording", "host_context"]


@dataclass(slots=True)
class Dispatch:
    """One function on one device, as the host body asked for it."""

    index: int
    function: Callee
    owner: object  # the program object that is `self` in the class form, or None
    args: tuple[Any, ...]
    device: int
    blocks: int = 1
    site: Site | None = None


@dataclass(slots=True)
class Recording:
    """What a host body asked for, in order.

    Attributes:
        tasks: dispatches (and host tasks) in program order; collectives until the domains are inferred.
        result: what the body returned.
    """

    world: int
    buffers: list[WindowBuffer] = field(default_factory=list)
    tasks: list[Dispatch | HostTask | Collective] = field(default_factory=list)
    result: object = None

    def infer_domains(self) -> None:
        """Give each window the devices of all dispatches that take a view of it.

        Raises:
            InternalError: a window that is never viewed or never dispatched.
        """
        devices: dict[WindowBuffer, dict[int, None]] = {b: {} for b in self.buffers}
        for task in self.tasks:
            if isinstance(task, Dispatch):
                for arg in task.args:
                    if isinstance(arg, WindowView):
                        devices[arg.buffer][task.device] = None
        domains = domains_of([t for t in self.tasks if isinstance(t, Collective)], devices)
        for buffer, found in devices.items():
            if not buffer.viewed:
                raise InternalError(
                    f"window buffer {buffer.name} is allocated but never viewed by pld.window"
                )
            if not found:
                raise InternalError(
                    f"window buffer {buffer.name} is never passed to a dispatch, so no rank would have it"
                )
            buffer.devices = tuple(sorted(found))
        if domains:
            self._expand(domains)

    def _expand(self, domains: list[tuple[int, ...]]) -> None:
        """Where a collective stands, put its dispatch on each device of its domain; number all tasks anew."""
        tasks: list[Dispatch | HostTask | Collective] = []
        remaining = iter(domains)
        for task in self.tasks:
            if isinstance(task, Collective):
                domain = next(remaining)
                function, args, blocks = task.plan(len(domain))
                tasks += [Dispatch(0, function, None, args, d, blocks, task.site) for d in domain]
            else:
                tasks.append(task)
        for index, task in enumerate(tasks):
            if not isinstance(task, Collective):
                task.index = index
        self.tasks = tasks


class HostContext:
    """A host body while it is recorded.

    Args:
        world: number of ranks.
        sub_workers: how many host processes run SubWorker functions.
        overrides: bodies by name that a worker puts in the place of SubWorker functions'.
        torch: the caller's tensors are torch's.
    """

    level: Literal["host"] = "host"

    def __init__(
        self,
        world: int,
        sub_workers: int = 0,
        overrides: Mapping[str, Callable[..., object]] | None = None,
        torch: bool = False,
    ) -> None:
        self.recording = Recording(world)
        self.sub_workers = sub_workers
        self.overrides = overrides or {}
        self.torch = torch
        self._allocated: dict[
            tuple[int, int], tuple[FrameType, WindowBuffer]
        ] = {}  # by call site and running body
        self.next_device = 0  # of a dispatch without device=, round robin
        self._names: dict[str, int] = {}
        self._sites: set[Site] = set()

    def first_time(self, site: Site) -> bool:
        """Whether this call site has not been met before; the second time it stands in a loop."""
        met = site in self._sites
        self._sites.add(site)
        return not met

    def name(self, wanted: str | None) -> str:
        """A name for a buffer that no other has."""
        wanted = wanted or "window"
        count = self._names.get(wanted, 0)
        self._names[wanted] = count + 1
        return wanted if count == 0 else f"{wanted}#{count}"

    def allocate(self, nbytes: int, name: str | None, frame: FrameType | None = None) -> WindowBuffer:
        """A window buffer; a statement in a loop (``frame`` given) makes one, however often it runs.

        Raises:
            InvalidOperationError: the statement asks for another size than before.
        """
        if frame is not None:
            key = (id(frame), frame.f_lasti)
            if key in self._allocated:
                _, buffer = self._allocated[key]
                if buffer.nbytes != nbytes:
                    raise InvalidOperationError(
                        f"pld.alloc_window_buffer: {buffer.name} is one window; in a loop its size must stay "
                        f"{buffer.nbytes} B, got {nbytes} B"
                    )
                return buffer
            buffer = self.allocate(nbytes, name)
            self._allocated[key] = (frame, buffer)  # the frame is kept so that its id stays its own
            return buffer
        buffer = WindowBuffer(len(self.recording.buffers), self.name(name), nbytes)
        self.recording.buffers.append(buffer)
        return buffer

    def call(self, function: Any, owner: object, args: Sequence[Any], device: Any, site: Site) -> Any:
        """A function of the program is called from the host body.

        Raises:
            ParserTypeError: a kernel, which only an orchestration can call.
        """
        if function.kind == "host":
            return function.run(owner, function.bind(args))
        if function.kind == "inline":
            return function.run(owner, function.bind(args))
        if function.declared == "subworker":
            return self._sub_work(function, owner, args, device, site)
        # An opaque function or one with a plain @pl.jit may turn out to be a kernel; the device can start it.
        if function.kind != "orchestration" and function.declared != "opaque":
            raise ParserTypeError(
                f"the host body calls {function.name}, a {function.kind}; it can dispatch orchestrations only"
                + ("" if device is None else ", and device= belongs to those")
            )
        self.dispatch(function, owner, args, device, site)
        return function.returned(args)

    def _sub_work(self, function: Any, owner: object, args: Sequence[Any], device: Any, site: Site) -> None:
        if device is not None:
            raise ParserTypeError(
                f"device= belongs to orchestrations, {function.name} is a sub-worker on the host"
            )
        if not self.sub_workers:
            raise InvalidOperationError(
                f"the host body calls the sub-worker {function.name}: num_sub_workers must be at least "
                "1, got 0"
            )
        check_sub_worker_arguments(function, args)
        tasks = self.recording.tasks
        own = partial(function.fn, owner) if function.method else function.fn
        body = self.overrides.get(function.name, own)
        tasks.append(HostTask(len(tasks), function, tuple(args), body, site))

    def dispatch(self, function: Callee, owner: object, args: Sequence[Any], device: Any, site: Site) -> None:
        """Record a kernel for one device.

        Raises:
            ParserTypeError: ``device`` is no integer.
            InvalidOperationError: no such device, or an argument that a device cannot take.
        """
        world = self.recording.world
        if device is None:
            device, self.next_device = self.next_device, (self.next_device + 1) % world
        else:
            try:
                device = dim_value(device)
            except InvalidOperationError:
                raise ParserTypeError(
                    f"device= must be a rank number or the variable of a pl.range loop, got {device!r}"
                ) from None
            if not 0 <= device < world:
                raise InvalidOperationError(
                    f"device={device} of {function.name}, but the program runs on ranks 0..{world - 1}"
                )
        function.check_arguments(args)
        for arg in args:
            if isinstance(arg, HostTensor) and arg.buffer.resident not in (None, device):
                raise InvalidOperationError(
                    f"{function.name} runs on rank {device}, but its argument {arg.name} is a tensor on rank "
                    f"{arg.buffer.resident}"
                )
        tasks = self.recording.tasks
        tasks.append(Dispatch(len(tasks), function, owner, tuple(args), device, site=site))

    def check_readable(self, tensor: HostTensor) -> None:
        """InvalidOperationError if a task writes the tensor: the body runs before all of its tasks."""
        for task in self.recording.tasks:
            if isinstance(task, Collective):
                continue
            for other, _, writes in task.function.accesses(task.args):
                if writes and isinstance(other, HostTensor) and other.buffer is tensor.buffer:
                    raise InvalidOperationError(
                        f"the host body reads an element of {tensor.name}, which {task.function.name} "
                        "writes, but it "
                        "runs before its tasks: let a sub-worker or an orchestration read it"
                    )

    def created(self, name: str, shape: tuple[int, ...], dtype: DataType) -> HostTensor:
        """A host intermediate (`pl.create_tensor`), zero-filled."""
        buffer = HostBuffer(self.name(name), np.zeros(shape, dtype.numpy), created=True)
        buffer.torch = self.torch
        return HostTensor(buffer, Layout(buffer.name, shape, dtype, 0, row_major(shape, dtype.itemsize)))


def host_context(what: str) -> HostContext:
    """The host body that is being recorded.

    Raises:
        ParserSyntaxError: anywhere else.
    """
    context = current()
    if not isinstance(context, HostContext):
        where = "outside of a program" if context is None else f"in a {context.level} body"
        raise ParserSyntaxError(f"{what} stands {where}; it belongs into the host body (level=HOST)")
    return context
