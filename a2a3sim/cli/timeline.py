"""``a2a3sim timeline KERNEL|SCRIPT|FILE``: what every rank and pipe did when."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated

import typer

from a2a3sim.cli import options as o
from a2a3sim.config import RunConfig


@o.grouped
def command(
    kernel: Annotated[
        str,
        typer.Argument(
            help="A collective (allreduce, …), a script (its arguments follow --) or a saved trace."
        ),
    ],
    args: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the script, or more saved traces.")
    ] = None,
    algorithms: Annotated[
        str, typer.Option("--algorithms", "--algorithm", help="From the top, all on one axis; or all.")
    ] = "mesh,two_phase",
    devices: o.Devices = "0,1,2,3",
    size: Annotated[str, typer.Option("--size", help="Payload per rank, N.")] = "64KiB",
    dtype: o.Dtype = "fp32",
    cores: o.Cores = None,
    first: Annotated[str | None, typer.Option("--from", help="Show from this time on, e.g. 3us.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Show up to this time.")] = None,
    ranks: Annotated[str | None, typer.Option("--ranks", help="Show only these ranks: 0,1 or 0-3.")] = None,
    output: Annotated[str, typer.Option("-o", "--output", help="FILE.png or FILE.svg.")] = "timeline.png",
    *,
    forced: o.ForcedSettings,
    report: o.OutputOptions,
) -> int:
    """Draw lanes per rank and pipe, phases, waits and the notifies that ended them; several runs on one time axis.

    Above 16 ranks each has one strip. For a script every run it makes is drawn: flags stand before SCRIPT or
    after it, the script's own arguments after --. Saved traces are drawn as they are, each a run.
    """
    from a2a3sim.cli.output import check_writable, note
    from a2a3sim.cli.saved import load_runs
    from a2a3sim.errors import ConfigError
    from a2a3sim.experiments import timelines
    from a2a3sim.experiments.conventions import title_of
    from a2a3sim.reports.table import what_bound_it
    from a2a3sim.reports.timeline import TimelineRun, draw_timeline
    from a2a3sim.trace.store import saved
    from a2a3sim.units import format_size, format_time, parse_size

    if not output.lower().endswith((".png", ".svg")):
        raise ConfigError(f"-o must be a .png or .svg file, got {output!r}")
    check_writable(output)
    some = o.parse_devices(ranks) if ranks else None
    status = 0
    if saved(kernel):
        workload = {
            "-d": devices != "0,1,2,3", "--size": size != "64KiB", "--dtype": dtype != "fp32", "--cores": cores,
            "--algorithms": algorithms != "mesh,two_phase",
        }  # fmt: skip
        for flag in (*(flag for flag, given in workload.items() if given), *RunConfig.flags(forced)):
            raise ConfigError(f"{kernel} is a saved trace, which is not simulated again: leave {flag} away")
        runs = [
            TimelineRun(record, result, name) for name, record, result in load_runs([kernel, *(args or ())])
        ]
        title = kernel
    elif timelines.is_script(kernel):
        with contextlib.redirect_stdout(sys.stderr):
            runs, status = timelines.run_program(kernel, args or [], forced)
        if not runs:
            raise ConfigError(f"{kernel} ran no compiled program: there is nothing to draw")
        title = kernel
    else:
        if args:
            raise ConfigError(f"{kernel} takes no arguments, got {args[0]!r}: only a script does")
        names = o.parse_list("--algorithms", algorithms)
        labels, nbytes = o.parse_devices(devices), parse_size(size)
        config = RunConfig(machine="a2").with_(**forced)
        runs = timelines.run_kernels(kernel, names, nbytes, labels, dtype, cores, config)
        title = f"{title_of(kernel)} of {format_size(nbytes)} {runs[0].result.dtype} on {len(labels)} ranks"
    window = timelines.window_of(first, last, runs)
    shown = timelines.shown_ranks(some, runs)
    draw_timeline(runs, output, title + timelines.zoom_text(window, shown), window, shown)
    results = [run.result for run in runs]
    if report.prints:
        for run in runs:
            print(f"{run.name}: {format_time(run.result.kernel_ps)} · {what_bound_it(run.result)}")
    note(f"wrote {output}")
    for run in runs:
        report.add(run.name, run.trace, run.result)
    report.write("timeline", results)
    return status or int(report.failed(results))
