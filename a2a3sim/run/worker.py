"""A worker: devices kept for many calls, with their windows, tensors and clock living on between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from a2a3sim.config import RunConfig, check_backend
from a2a3sim.errors import A2A3Error, ConfigError, InvalidOperationError, SelectionError, WorkerError
from a2a3sim.language.host.arguments import is_torch
from a2a3sim.language.host.device_tensors import DeviceTensor, StackedDeviceTensor
from a2a3sim.run.call_arguments import CallArguments
from a2a3sim.run.calls import run_call
from a2a3sim.run.compiled import CompiledProgram
from a2a3sim.run.launch import Residence
from a2a3sim.run.worker_tensors import TensorOwner

if TYPE_CHECKING:
    from a2a3sim.result import RunResult
    from a2a3sim.trace.record import Trace

__all__ = ["DeviceTensor", "DistributedWorker", "Frame", "StackedDeviceTensor", "WorkerHandle"]

_IN_FLIGHT = 2  # submitted calls that the machine holds; one more waits for the oldest


class Frame:
    """A submitted call. The clock gets to it when somebody waits for it, or for a later one."""

    def __init__(self, worker: DistributedWorker, perform: Callable[[], None]) -> None:
        self._worker = worker
        self._perform = perform
        self._over = False
        self._error: Exception | None = None
        self.last_run: RunResult | None = None

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


class DistributedWorker(TensorOwner):
    """Devices that stay ready for calls of one or several programs.

    Args:
        compiled: a distributed program or several.
        config: what calls run with unless they say otherwise.
        persistent: windows live on between calls, and are zeroed before each unless
            ``reset_persistent_windows`` is False. Otherwise each call has fresh ones.
        callbacks, sub_worker_overrides: bodies to put in the place of SubWorker functions, by name.
        inherited_host_tensors: torch tensors that calls may use although they are not in shared memory.

    Attributes:
        last_run: `RunResult` of the last call, with times of the worker's clock; ``last_trace`` beside it.

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
        self.last_run: RunResult | None = None
        self.last_trace: Trace | None = None
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
        super().__init__()

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
                f"{what} is ambiguous: the worker has the programs {names}; use run(compiled, ...) or a "
                "handle"
            )
        return self._handles[0].compiled

    def _program(self, compiled) -> CompiledProgram:
        found = compiled.compiled if isinstance(compiled, WorkerHandle) else compiled
        if not any(found is p for p in self.programs):
            raise InvalidOperationError(
                f"{found!r} is not registered with this worker; it has "
                f"{', '.join(p.name for p in self.programs)}"
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
                    f"argument {parameter.name} of {program.name} must be in shared memory for a "
                    "worker's call: use "
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
            self._free_all()
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


def _tensor_from_continuous(value):
    """PyPTO rebuilds a tensor from its transport form here; arguments are passed as they are."""
    return value
