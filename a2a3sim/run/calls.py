"""One call of a compiled program: its host body is recorded, the recording simulated, the run judged."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

from a2a3sim.collector import collector_paused
from a2a3sim.config import RunConfig
from a2a3sim.engine import current_kernel
from a2a3sim.errors import A2A3Error, DeadlockError, FindingsWarning
from a2a3sim.language.context import enter, leave
from a2a3sim.language.host.functions import Function
from a2a3sim.language.host.recording import HostContext, Recording
from a2a3sim.locate import located
from a2a3sim.run.call_arguments import CallArguments
from a2a3sim.run.launch import POISON, Launch, Residence
from a2a3sim.run.numerics import compare
from a2a3sim.run.rerun import Call
from a2a3sim.run.settings import Settings, current_session, resolve

__all__ = ["record", "run_call"]


def record(
    entry: Function,
    owner,
    tensors: list,
    world: int,
    sub_workers: int = 0,
    overrides=None,
    torch: bool = False,
) -> Recording:
    """Run a host body once and return what it asked for, with inferred domains.

    Args:
        entry: the host body; an orchestration is dispatched to the only rank.
    """
    context = HostContext(world, sub_workers, overrides, torch)
    token = enter(context)
    try:
        if entry.kind == "host":
            context.recording.result = entry.run(owner, entry.bind(tensors))
        else:
            context.dispatch(entry, owner, tensors, 0, (entry.fn.__code__, 0))
            context.recording.result = entry.returned(tensors)
    except A2A3Error as error:
        located(error)
        raise
    finally:
        leave(token)
    recording = context.recording
    recording.infer_domains()
    return recording


def run_call(
    program,
    entry: Function,
    arguments: CallArguments,
    config: RunConfig,
    golden=None,
    residence: Residence | None = None,
    overrides: Mapping[str, Callable] | None = None,
):
    """Make one run of a program; its result is then at ``program.last_run``.

    Args:
        golden: what the Out and InOut arguments must be afterwards.
        residence: of the worker that makes the call.
        overrides: bodies of SubWorker functions by name.

    Returns:
        What the caller gets: None in place, else the arrays that the body returned.

    Raises:
        A2A3Error: what the program or its configuration did wrong.
    """
    if current_kernel() is not None:
        raise A2A3Error(f"{program.name} cannot be run from inside a kernel: call it from the host")
    labels, sub_workers = program.devices(config)
    current = current_session()
    fabrics = program.fabrics if current is None else current.fabrics
    settings = replace(resolve(config, len(labels)), fabrics=fabrics)
    if settings.poison and not settings.timing_only:
        arguments.poison(POISON)

    def recorded() -> Recording:
        return record(
            entry, program.owner, arguments.handles, len(labels), sub_workers, overrides, arguments.torch
        )

    call = None
    if golden is not None or (current is not None and current.keep_calls):
        call = Call(program.name, arguments, recorded, settings, residence, golden)
    started = time.perf_counter()
    recording = recorded()
    launch = Launch(
        recording,
        settings.platform,
        settings.topology(),
        settings,
        settings.placement,
        residence,
        id(program),
    )
    held = {id(h.buffer) for p, h in arguments.tensors() if p.direction != "out"}
    launch.watch_outputs([h.buffer for p, h in arguments.tensors() if id(h.buffer) not in held])
    parked, error = [], None
    with collector_paused():
        try:
            parked = launch.run()
        except A2A3Error as caught:
            error = caught
        arguments.write_back()
        if call is not None:
            call.over(launch)
        _conclude(program, launch, settings, labels, arguments, golden, parked, error, started, call)
    return arguments.result(recording.result)


def _conclude(
    program, launch: Launch, settings: Settings, labels, arguments, golden, parked, error, started, call
) -> None:
    """Findings, result, observers; raises what ended the run."""
    from a2a3sim.checks import Suppressions, check_run, deadlock_finding, explain_mismatch, verdict_on
    from a2a3sim.trace.measures import RunInfo, measure
    from a2a3sim.trace.sharing import share_equal

    findings = []
    if parked:
        finding, report = deadlock_finding(launch, parked)
        findings.append(finding)
        error = DeadlockError(report, report)
    findings += check_run(launch, settings, error, arguments, golden)
    launch.errors.clear()  # their tracebacks hold the launch
    numerics = None
    if golden is not None and error is None and not settings.timing_only:
        numerics = compare(golden, arguments.written(), settings.rtol, settings.atol)
    current = current_session()
    explains = settings.checks and (current is None or current.explains)
    if numerics is not None and not numerics.ok and explains:
        numerics, more = explain_mismatch(numerics, call, launch.trace, findings)
        findings += more
    if findings:
        accepted = current.suppressions if current is not None else None
        findings = (accepted or Suppressions()).apply(findings)
    facts = program.facts
    info = RunInfo(
        program=program.name,
        algorithm=facts.get("algorithm"),
        platform=settings.platform.name,
        platform_hash=settings.platform.hash,
        overrides=settings.stated(),
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
        launched_ps=launch.origin,
        bound_ps=facts["bound"](settings.platform) if "bound" in facts else None,
        findings=findings,
        verdict=verdict_on(launch.trace, findings) if settings.checks and error is None else None,
        numerics=numerics,
        wall_s=time.perf_counter() - started,
        events=launch.engine.events,
        switches=launch.engine.switches,
    )
    program.last_trace = launch.trace if settings.keep_trace else None
    if settings.keep_trace:
        share_equal(launch.trace.lanes)
    program.last_run = measure(launch.trace, info)
    if current is not None:
        program.last_call = call if current.keep_calls else None
        for observe in current.observers:
            observe(program, program.last_run, launch.trace)
    elif error is None:
        _warn(program.last_run)
    if error is not None:
        raise error


def _warn(result) -> None:
    """Under plain Python nobody prints the findings: say that there are some, at the line of the call."""
    found = sorted({f.kind for f in result.findings if f.severity == "error"})
    if result.numerics is not None and not result.numerics.ok:
        found.append("wrong numerics")
    if found:
        warnings.warn(
            f"{result.program}: {', '.join(found)}; `a2a3sim run SCRIPT` tells more, last_run.findings has it all",
            FindingsWarning,
            stacklevel=5,
        )
