"""A compiled program: called with tensors, it records its host body, simulates it and keeps the result."""

from __future__ import annotations

import os
import time
from pathlib import Path

from a2a3sim.frontend.arguments import as_array, host_tensors
from a2a3sim.config import DistributedConfig, RunConfig, check_backend
from a2a3sim.engine import current_kernel
from a2a3sim.errors import A2A3Error, DeadlockError, InvalidOperationError
from a2a3sim.frontend.context import enter, leave
from a2a3sim.launch import Launch
from a2a3sim.numerics import compare
from a2a3sim.frontend.program import Function, Program, bind_arguments
from a2a3sim.frontend.recording import HostContext, Recording
from a2a3sim.settings import Settings, current_session, resolve

__all__ = ["DistributedCompiledProgram", "compile_program", "simulate"]


def record(entry: Function, owner, tensors: list, world: int) -> Recording:
    """Run a host body once and return what it asked for, with inferred domains."""
    context = HostContext(world)
    token = enter(context)
    try:
        context.recording.result = entry.run(owner, bind_arguments(entry, tensors))
    finally:
        leave(token)
    recording = context.recording
    recording.infer_domains()
    return recording


def simulate(recording: Recording, settings: Settings):
    """Run a recording on its machine.

    Returns:
        (launch, parked, error): the launch with its trace and engine, the threads of control that wait for
        ever, and the error that ended the run, if any.
    """
    launch = Launch(recording, settings.platform, settings.topology(), settings, settings.placement)
    try:
        return launch, launch.run(), None
    except A2A3Error as error:
        return launch, [], error


class DistributedCompiledProgram:
    """A program bound to devices.

    Attributes:
        last_run: the `RunResult` of the last call, also of one that raised.
        last_trace: its trace.
        output_dir: the directory of this compilation.
    """

    def __init__(self, name: str, entry: Function, owner, platform: str, distributed, output_dir: Path) -> None:
        self.name = name
        self.entry = entry
        self.owner = owner
        self.platform = platform
        self.distributed_config = distributed or DistributedConfig()
        self.output_dir = output_dir
        self.last_run = None
        self.last_trace = None
        #: What a closed form knows about this program (`a2a3sim.kernels`): algorithm, bytes_per_rank, bound, dtype.
        self.facts: dict = {}

    def __call__(self, *args, config: RunConfig | None = None, golden=None):
        """Run the program on numpy arrays or torch CPU tensors, in place.

        Args:
            golden: an array, or a tuple in the order of the Out and InOut parameters; the comparison is in
                ``last_run.numerics``.

        Returns:
            None with all arguments given. With the Out arguments left away: the Out arrays, freshly made.

        Raises:
            InvalidOperationError: wrong number or kind of arguments.
            KernelError, DeadlockError: what the program did wrong.
            ConfigError: the machine or a setting is wrong.
        """
        if current_kernel() is not None:
            raise A2A3Error(f"{self.name} cannot be run from inside a kernel: call it from the host")
        config = config or RunConfig(platform=self.platform)
        distributed = config.distributed_config or self.distributed_config
        args, returned = self._arguments(args)
        names = [p.name for p in self.entry.parameters]
        arrays = [(k, as_array(a, f"argument {names[k]} of {self.name}")) for k, a in enumerate(args) if not _scalar(a)]
        tensors = iter(host_tensors([a for _, a in arrays], [names[k] for k, _ in arrays]))
        handles = [a if _scalar(a) else next(tensors) for a in args]
        labels = list(distributed.device_ids)
        settings = resolve(config, len(labels))
        self._poison(settings, handles)
        started = time.perf_counter()
        recording = record(self.entry, self.owner, handles, len(labels))
        launch, parked, error = simulate(recording, settings)
        for handle in handles:
            if not _scalar(handle):
                handle.buffer.write_back()
        self._conclude(launch, settings, labels, handles, golden, parked, error, started)
        if returned:
            return args[-1] if returned == 1 else tuple(args[-returned:])
        return None

    def _arguments(self, args):
        parameters = self.entry.parameters
        outs = [p for p in parameters if p.type is not None and p.type.direction == "out"]
        if len(args) == len(parameters):
            return list(args), 0
        if self.entry.returns and len(args) == len(parameters) - len(outs) and outs:
            given, filled = iter(args), []
            like = args[0] if args else None
            for p in parameters:
                filled.append(_fresh(p, like) if p in outs else next(given))
            return filled, len(outs)
        raise InvalidOperationError(
            f"{self.name} takes {len(parameters)} arguments ({', '.join(p.name for p in parameters)}), got {len(args)}"
        )

    def _poison(self, settings: Settings, handles) -> None:
        if not settings.poison or settings.timing_only:
            return
        from a2a3sim.launch import POISON

        for parameter, handle in zip(self.entry.parameters, handles, strict=True):
            if parameter.type is not None and parameter.type.direction == "out" and handle.layout.dtype.itemsize > 1:
                handle.numpy()[...] = POISON.repeat(handle.layout.dtype.itemsize // 2).view(handle.layout.dtype.numpy)[0]

    def _conclude(self, launch, settings, labels, handles, golden, parked, error, started) -> None:
        """Findings, result, observers; raises what ended the run."""
        from a2a3sim.checks.deadlock import deadlock_finding
        from a2a3sim.checks.run import check_run
        from a2a3sim.metrics import RunInfo, measure

        findings = []
        if parked:
            finding, report = deadlock_finding(launch, parked)
            findings.append(finding)
            error = DeadlockError(report, report)
        findings += check_run(launch, settings, error)
        numerics = None
        if golden is not None and error is None and not settings.timing_only:
            numerics = compare(golden, self._written(handles), settings.rtol, settings.atol)
        facts = self.facts
        info = RunInfo(
            program=self.name,
            algorithm=facts.get("algorithm"),
            platform=settings.platform.name,
            platform_hash=settings.platform.hash,
            overrides=settings.overrides,
            seed=settings.seed,
            skew_ps=settings.skew_ps,
            fences=settings.fences,
            timing_only=settings.timing_only,
            ranks=len(labels),
            device_labels=labels,
            placement=list(settings.placement),
            cores=max((d.cores for d in launch.trace.dispatches), default=1),
            dtype=facts.get("dtype"),
            bytes_per_rank=facts.get("bytes_per_rank"),
            bound_ps=facts["bound"](settings.platform) if "bound" in facts else None,
            findings=findings,
            numerics=numerics,
            wall_s=time.perf_counter() - started,
            events=launch.engine.events,
            switches=launch.engine.switches,
        )
        self.last_trace = launch.trace
        self.last_run = measure(launch.trace, info)
        current = current_session()
        if current is not None:
            for observe in current.observers:
                observe(self, self.last_run, self.last_trace)
        if error is not None:
            raise error

    def _written(self, handles) -> dict:
        return {
            p.name: h.numpy()
            for p, h in zip(self.entry.parameters, handles, strict=True)
            if p.type is not None and p.type.direction in ("out", "inout")
        }

    def __repr__(self) -> str:
        return f"<compiled program {self.name} on devices {list(self.distributed_config.device_ids)}>"


def _scalar(value) -> bool:
    return isinstance(value, (int, float, bool))


def _fresh(parameter, like):
    """A zero array for an Out parameter that the caller left away, of the caller's own kind."""
    import sys

    import numpy as np

    declared = parameter.type
    if declared.dims is None or any(hasattr(d, "names") for d in declared.dims):
        raise InvalidOperationError(
            f"cannot make {parameter.name}: its shape is not static; pass it as an argument instead"
        )
    shape = tuple(int(d) for d in declared.dims)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        names = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
        return torch.zeros(shape, dtype=getattr(torch, names.get(declared.dtype.name, declared.dtype.name)))
    return np.zeros(shape, declared.dtype.numpy)


def output_directory(name: str, output_dir=None) -> Path:
    """The directory of a compilation, created: ``$PYPTO_PROG_BUILD_DIR`` or ``build_output``, name and time."""
    if output_dir is not None:
        path = Path(output_dir)
    else:
        base = Path(os.environ.get("PYPTO_PROG_BUILD_DIR") or "build_output")
        stamp = time.strftime("%Y%m%d_%H%M%S")
        path = base / f"{name}_{stamp}"
        count = 1
        while path.exists():
            path = base / f"{name}_{stamp}_{count}"
            count += 1
    path.mkdir(parents=True, exist_ok=True)
    return path


def compile_program(
    program,
    output_dir=None,
    *,
    strategy=None,
    dump_passes=False,
    backend_type=None,
    skip_ptoas=False,
    profiling=False,
    platform=None,
    distributed_config=None,
    **options,
) -> DistributedCompiledProgram:
    """``ir.compile``: bind a program to devices.

    Options that steer the vendor's code generation are accepted and mean nothing here.

    Raises:
        InvalidOperationError: not a program.
        ConfigError: a platform that does not run here.
    """
    if not isinstance(program, Program):
        raise InvalidOperationError(f"ir.compile takes a program (a class with @pl.program), got {program!r}")
    platform = platform or "a2a3sim"
    check_backend(platform)
    directory = output_directory(program.name, output_dir)
    return DistributedCompiledProgram(program.name, program.host, program, platform, distributed_config, directory)
