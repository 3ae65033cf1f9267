"""``a2a3sim run SCRIPT.py [ARGS…]``: any PyPTO program, unmodified."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated

import typer

from a2a3sim.cli import options as o

CONTEXT = {"allow_interspersed_args": False, "ignore_unknown_options": False}


def command(
    script: Annotated[str, typer.Argument(help="The program; everything after it is its own.")],
    args: Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")] = None,
    platform: Annotated[
        str | None, typer.Option("--platform", help="Machine; comes before what the script says.")
    ] = None,
    overrides: o.Overrides = None,
    place: o.Place = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Sample of skews and tie orders.")] = None,
    skew: o.Skew = None,
    fences: Annotated[str | None, typer.Option("--fences", help="statement, notify or explicit.")] = None,
    slow: o.Slow = None,
    jitter: o.Jitter = None,
    delay: o.Delay = None,
    poison: o.Poison = False,
    check: o.Check = True,
    fail_on: o.FailOn = "error",
    timing_only: o.TimingOnly = False,
    witness: o.Witness = False,
    suppress: o.Suppress = None,
    timeline: Annotated[
        str | None, typer.Option("--timeline", help="Draw all runs into FILE.png or .svg.")
    ] = None,
    trace: o.Trace = None,
    save_trace: o.SaveTrace = None,
    json: o.Json = None,
) -> int:
    """Run a program and report on every run it makes (summaries on stderr).

    Exits with the script's own status if that is not 0, else with 1 if a run has findings or wrong
    numerics, else with 0. Simulator flags stand before SCRIPT.
    """
    from a2a3sim.cli.accepted import noted, read_suppressions, source_files
    from a2a3sim.cli.output import check_writable, failed, note, print_report
    from a2a3sim.cli.saved import Saver
    from a2a3sim.errors import A2A3Error, DeadlockError
    from a2a3sim.pypto import run_script
    from a2a3sim.reports.summary import summary_lines
    from a2a3sim.run.settings import Session, session

    failed([], fail_on)
    for path in (timeline, trace, json):
        if path not in (None, "-"):
            check_writable(path)
    if trace is not None:
        from a2a3sim.reports.chrome import check_trace_path

        check_trace_path(trace)
    saver = Saver(save_trace)
    forced = o.forced_settings(
        platform, overrides, place, seed, skew, fences, slow, poison, check, timing_only, jitter, delay
    )
    accepted = read_suppressions(suppress, script)
    runs, drawn, traced, files = [], [], [], set()

    def observe(program, result, record) -> None:
        runs.append(result)
        files.update(source_files(record))
        if witness:
            from a2a3sim.experiments.witness import attach_witnesses

            attach_witnesses(program, result, record)
        for line in summary_lines(result):
            note(line)
        saver.save(record, result)
        if trace is not None:
            traced.append((result.program, record, result))
        if timeline is not None:
            from a2a3sim.reports.timeline import TimelineRun

            drawn.append(
                TimelineRun(record, result, f"{result.program} #{len(runs)}" if len(runs) > 1 else "")
            )

    redirected = contextlib.redirect_stdout(sys.stderr) if json == "-" else contextlib.nullcontext()
    status = 0
    with session(Session(forced, [observe], keep_calls=witness, suppressions=accepted)), redirected:
        try:
            status = run_script(script, args or [])
        except A2A3Error as error:
            told = runs and any(f.severity == "error" for f in runs[-1].findings)
            if not told:  # else its finding has been printed
                note(error.report if isinstance(error, DeadlockError) else f"a2a3sim: {error}")
            status = 1
    if check:
        for line in noted(accepted, files):
            note(line)
    if timeline is not None and drawn:
        from a2a3sim.reports.timeline import draw_timeline

        note(f"wrote {draw_timeline(drawn, timeline)}")
    if trace is not None and traced:
        from a2a3sim.reports.chrome import write_trace

        note(f"wrote {write_trace(trace, traced)}")
    if json is not None:
        print_report(json, "run", runs)
    return status or int(failed(runs, fail_on))
