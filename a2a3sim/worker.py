"""A worker: devices kept for many calls, with their windows, tensors and clock living on between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace

from a2a3sim.call_arguments import CallArguments
from a2a3sim.calls import run_call
from a2a3sim.compiled import CompiledProgram
from a2a3sim.config import RunConfig, check_backend
from a2a3sim.errors import A2A3Error, ConfigError, InvalidOperationError, SelectionError, WorkerError
from a2a3sim.frontend.arguments import as_array, is_torch
from a2a3sim.frontend.device_tensors import DeviceTensor, StackedDeviceTensor
from a2a3sim.frontend.types import as_dtype
from a2a3sim.launch import Residence

__all__ = ["DeviceTensor", "DistributedWorker", "Frame", "StackedDeviceTensor", "WorkerHandle"]

_IN_FLIGHT = 2  # submitted calls that the machine holds; one more waits for the oldest


class Frame:
    """A submitted call. The clock gets to it when somebody waits for it, or for a later one."""

    def __init__(self, worker: DistributedWorker, perform: Callable[[], None]) -> None:
        self._worker = worker
        self._perform = perform
        self._over = False
        self._error: Exception | None = None
        self.last_run = None

    def done(self) -> bool:
        """Whether the call is over."""
        return self._over

    def wait(self, timeout: float | None = None) -> bool:
        """Let the machine get to the end of this call; True, since simulated time needs no patience."""
        self._worker._advance(self)
        return True

    def result(self, timeout: float | None = None) -> None:
        """Wait for the call; raises what it raised. Calls of a worker are in place, so there is no value."""
        self.wait(timeout)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._perform()
        except Exception as error:
            self._error = error
        self._over = True
        self.last_run = self._worker.last_run


class WorkerHandle:
    """A program registered with a worker; calling it runs the program there.

    Attributes:
        compiled: the program.
        closed: its worker, or the handle, has been closed.
    """

    def __init__(self, worker: DistributedWorker, compiled: CompiledProgram) -> None:
        self._worker = worker
        self._closed = False
        self.compiled = compiled

    @property
    def closed(self) -> bool:
        """Whether it can no longer be called."""
        return self._closed or self._worker.closed

    def __call__(self, *args, config: RunConfig | None = None) -> None:
        if self._closed:
            raise WorkerError("the handle was called after close")
        self._worker.run(self.compiled, *args, config=config)

    def submit(self, *args, config: RunConfig | None = None) -> Frame:
        """As `DistributedWorker.submit`."""
        if self._closed:
            raise WorkerError("submit of the handle was called after close")
        return self._worker.submit(self.compiled, *args, config=config)

    def close(self) -> None:
        """Give the program up."""
        if not self.closed:
            self._worker._forget(self)
        self._closed = True


class DistributedWorker:
    """Devices that stay ready for calls of one or several programs.

    Args:
        compiled: a distributed program or several.
        config: what calls run with unless they say otherwise.
        persistent: windows live on between calls, and are zeroed before each unless
            ``reset_persistent_windows`` is False. Otherwise each call has fresh ones.
        callbacks, sub_worker_overrides: bodies to put in the place of SubWorker functions, by name.
        inherited_host_tensors: torch tensors that calls may use although they are not in shared memory.

    Attributes:
        last_run: `RunResult` of the last call; its times go on with the worker's clock. ``last_trace`` beside it.

    Raises:
        InvalidOperationError: no programs, other objects, or names that are not sub-workers.
        ConfigError: programs for different devices.
    """

    def __init__(
        self,
        compiled,
        config: RunConfig | None = None,
        *,
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks: Mapping[str, Callable] | None = None,
        sub_worker_overrides: Mapping[str, Callable] | None = None,
        startup_timeout_s: float | None = None,
        inherited_host_tensors: Iterable | None = None,
    ) -> None:
        programs = [compiled] if isinstance(compiled, CompiledProgram) else list(compiled)
        if not programs:
            raise InvalidOperationError("a worker needs at least one compiled program, got none")
        self.closed = False
        self.last_run = None
        self.last_trace = None
        self._config = config
        self._handles: list[WorkerHandle] = []
        for program in programs:
            self.register(program)
        self._overrides = {**(callbacks or {}), **(sub_worker_overrides or {})}
        self._check_overrides()
        self._residence = Residence(persistent, reset_persistent_windows is not False)
        self._inherited = list(inherited_host_tensors or ())
        self._frames: deque[Frame] = deque()
        self._failed: str | None = None
        self._owned_tensors: dict[int, DeviceTensor] = {}
        self._w = SimpleNamespace(_next_alloc_id=0)

    # ---- programs ---------------------------------------------------------------------------------

    @property
    def programs(self) -> list[CompiledProgram]:
        """The registered programs."""
        return [h.compiled for h in self._handles]

    def register(self, compiled: CompiledProgram) -> WorkerHandle:
        """Make a program callable on this worker."""
        self._check_open("register")
        if not isinstance(compiled, CompiledProgram):
            raise InvalidOperationError(f"a worker takes compiled programs, got {compiled!r}")
        for handle in self._handles:
            if handle.compiled is compiled:
                return handle
        mine, other = compiled.devices(self._config or RunConfig())[0], self._labels()
        if other is not None and mine != other:
            raise ConfigError(f"programs of one worker must use the same devices, got {other} and {mine}")
        handle = WorkerHandle(self, compiled)
        self._handles.append(handle)
        return handle

    def _labels(self) -> list[int] | None:
        return self._handles[0].compiled.devices(self._config or RunConfig())[0] if self._handles else None

    def _forget(self, handle: WorkerHandle) -> None:
        self._handles = [h for h in self._handles if h is not handle]

    def _check_overrides(self) -> None:
        known = [
            f.name
            for program in self.programs
            for f in getattr(program.owner, "functions", {}).values()
            if f.declared == "subworker"
        ]
        unknown = [name for name in self._overrides if name not in known]
        if unknown:
            raise InvalidOperationError(
                f"callbacks: {', '.join(unknown)} are not sub-workers; the programs have "
                f"{', '.join(known) if known else 'none'}"
            )

    # ---- calls ------------------------------------------------------------------------------------

    def __call__(self, *args, config: RunConfig | None = None) -> None:
        """Run the only program, in place on all its arguments.

        Raises:
            SelectionError: several programs are registered.
        """
        self._check_open("call")
        self.run(self._only("a call"), *args, config=config)

    def run(self, compiled, *args, config: RunConfig | None = None) -> None:
        """Run one of the registered programs; calls submitted before are finished first."""
        self._check_open("run")
        perform = self._prepared(self._program(compiled), args, config)
        self._advance(None)
        self._residence.joined = True
        perform()

    def submit(self, *args, config: RunConfig | None = None) -> Frame:
        """Queue a call and go on; with two calls in flight it first waits for the older.

        Args:
            args: the program's arguments, with a registered program in front where there are several.
        """
        self._check_open("submit")
        if args and isinstance(args[0], (CompiledProgram, WorkerHandle)):
            program, args = self._program(args[0]), args[1:]
        else:
            program = self._only("submit")
        perform = self._prepared(program, args, config)
        while len(self._frames) >= _IN_FLIGHT:
            self._next()
        joined = not self._frames

        def run() -> None:
            self._residence.joined = joined
            perform()

        frame = Frame(self, run)
        self._frames.append(frame)
        return frame

    def _only(self, what: str) -> CompiledProgram:
        if len(self._handles) != 1:
            names = ", ".join(p.name for p in self.programs) or "none"
            raise SelectionError(
                f"{what} is ambiguous: the worker has the programs {names}; use run(compiled, ...) or a handle"
            )
        return self._handles[0].compiled

    def _program(self, compiled) -> CompiledProgram:
        found = compiled.compiled if isinstance(compiled, WorkerHandle) else compiled
        if not any(found is p for p in self.programs):
            raise InvalidOperationError(
                f"{found!r} is not registered with this worker; it has {', '.join(p.name for p in self.programs)}"
            )
        return found

    def _prepared(self, program: CompiledProgram, args, config: RunConfig | None) -> Callable[[], None]:
        """Check a call's arguments now; returns what performs it."""
        config = config or self._config or RunConfig(platform=program.platform)
        check_backend(config.platform)
        labels, _ = program.devices(config)
        if labels != self._labels():
            raise ConfigError(f"a worker's devices stay {self._labels()}, a call cannot use {labels}")
        entry = program.entry
        arguments = CallArguments(program.name, entry, args, program.scalars, in_place=True, on_devices=True)
        for value, parameter in zip(arguments.given, entry.parameters, strict=True):
            if is_torch(value) and not (value.is_shared() or self._is_inherited(value)):
                raise InvalidOperationError(
                    f"argument {parameter.name} of {program.name} must be in shared memory for a worker's call: use "
                    "tensor.share_memory_()"
                )

        def perform() -> None:
            if self._failed is not None:
                raise WorkerError(f"the worker cannot go on after an earlier call failed: {self._failed}")
            try:
                run_call(program, entry, arguments, config, None, self._residence, self._overrides)
            except A2A3Error as error:
                self._failed = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise
            finally:
                self.last_run, self.last_trace = program.last_run, program.last_trace

        return perform

    def _is_inherited(self, tensor) -> bool:
        storage = tensor.untyped_storage().data_ptr()
        return any(is_torch(t) and t.untyped_storage().data_ptr() == storage for t in self._inherited)

    def _next(self) -> None:
        self._frames.popleft()._run()

    def _advance(self, frame: Frame | None) -> None:
        """Run submitted calls up to one of them, or all."""
        while self._frames and (frame is None or not frame.done()):
            self._next()

    # ---- tensors on devices -----------------------------------------------------------------------

    def alloc_tensor(self, shape, dtype, *, init=None, worker_id: int = 0) -> DeviceTensor:
        """A tensor in the memory of one device, zero or a copy of ``init``.

        Args:
            dtype: of torch, numpy or the language.
            worker_id: rank of the device.

        Raises:
            InvalidOperationError: no such rank, or ``init`` does not fit.
        """
        self._check_open("alloc_tensor")
        ranks = len(self._labels() or ())
        if not 0 <= worker_id < ranks:
            raise InvalidOperationError(f"worker_id must be a rank in [0, {ranks}), got {worker_id!r}")
        number = self._w._next_alloc_id
        tensor = DeviceTensor(number, shape, as_dtype(dtype), worker_id)
        if init is not None:
            _copy(tensor.array, as_array(init, "init"), "init")
        self._w._next_alloc_id = number + 1
        self._owned_tensors[id(tensor)] = tensor
        return tensor

    def free_tensor(self, tensor: DeviceTensor) -> None:
        """Give a device tensor back.

        Raises:
            InvalidOperationError: it is not this worker's, or freed already.
        """
        self._check_open("free_tensor")
        if self._owned_tensors.pop(id(tensor), None) is None:
            raise InvalidOperationError(f"{tensor!r} is no tensor of this worker, or it has been freed")
        tensor.freed = True

    def alloc_stacked_tensor(self, host, worker_ids: Iterable[int] | None = None) -> StackedDeviceTensor:
        """``host[k]`` on the k-th of ``worker_ids`` (default: rank k)."""
        self._check_open("alloc_stacked_tensor")
        array = as_array(host, "host")
        ids = list(range(array.shape[0]) if worker_ids is None else worker_ids)
        if array.ndim < 2 or array.shape[0] != len(ids):
            raise InvalidOperationError(
                f"host must have one leading index for each of the ranks {ids}, got shape {list(array.shape)}"
            )
        shards = [
            self.alloc_tensor(part.shape, array.dtype, init=part, worker_id=k) for part, k in zip(array, ids, strict=True)
        ]
        return StackedDeviceTensor(shards)

    def copy_stacked_from(self, host, stacked: StackedDeviceTensor) -> None:
        """Copy all shards back to a host array (the arguments may also stand the other way round)."""
        self._check_open("copy_stacked_from")
        if isinstance(host, StackedDeviceTensor):
            host, stacked = stacked, host
        array = as_array(host, "host")
        if array.shape != stacked.shape:
            raise InvalidOperationError(f"host must have shape {list(stacked.shape)}, got {list(array.shape)}")
        for k, shard in enumerate(stacked.shards):
            _copy(array[k], shard.array, "the shard")

    def free_stacked_tensor(self, stacked: StackedDeviceTensor) -> None:
        """Give all shards back."""
        for shard in stacked.shards:
            self.free_tensor(shard)

    def copy_to(self, tensor: DeviceTensor, host) -> None:
        """Copy a host array to a device tensor."""
        self._check_open("copy_to")
        if isinstance(host, DeviceTensor):
            tensor, host = host, tensor
        self._advance(None)
        _copy(self._owned(tensor).array, as_array(host, "host"), "host")

    def copy_from(self, host, tensor: DeviceTensor) -> None:
        """Copy a device tensor to a host array."""
        self._check_open("copy_from")
        if isinstance(host, DeviceTensor):
            tensor, host = host, tensor
        self._advance(None)
        _copy(as_array(host, "host"), self._owned(tensor).array, "the device tensor")

    def _owned(self, tensor) -> DeviceTensor:
        if id(tensor) not in self._owned_tensors:
            raise InvalidOperationError(f"{tensor!r} is no tensor of this worker, or it has been freed")
        return tensor

    def release_inherited_host_tensor_refs(self) -> None:
        """Forget the tensors given as ``inherited_host_tensors``."""
        self._inherited = []

    # ---- the end ----------------------------------------------------------------------------------

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise WorkerError(f"{what} of the worker was called after close")

    def close(self) -> None:
        """Finish the calls in flight and give everything back; closing twice is no error."""
        if self.closed:
            return
        try:
            self._advance(None)
        finally:
            self.closed = True
            for tensor in self._owned_tensors.values():
                tensor.freed = True
            self._owned_tensors.clear()
            self._residence.windows.clear()
            self._inherited = []

    def __enter__(self) -> DistributedWorker:
        self._check_open("enter")
        return self

    def __exit__(self, kind, _error, _traceback) -> None:
        if kind is not None:
            self._frames.clear()
        self.close()

    def __repr__(self) -> str:
        return f"<worker of {', '.join(p.name for p in self.programs)}{', closed' if self.closed else ''}>"


def _copy(target, source, what: str) -> None:
    if target.shape != source.shape or target.dtype != source.dtype:
        raise InvalidOperationError(
            f"{what} must have shape {list(target.shape)} and dtype {target.dtype}, got {list(source.shape)} {source.dtype}"
        )
    target[...] = source


def _tensor_from_continuous(value):
    """PyPTO rebuilds a tensor from its transport form here; arguments are passed as they are."""
    return value
