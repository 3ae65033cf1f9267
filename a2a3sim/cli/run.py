"""``a2a3sim run SCRIPT.py [ARGS…]``: any PyPTO program, unmodified."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated

import typer

from a2a3sim.cli import options as o


@o.grouped
def command(
    script: Annotated[str, typer.Argument(help="The program; everything after it is its own.")],
    args: Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")] = None,
    witness: o.Witness = False,
    suppress: o.Suppress = None,
    timeline: Annotated[
        str | None, typer.Option("--timeline", help="Draw all runs into FILE.png or .svg.")
    ] = None,
    *,
    forced: o.ForcedSettings,
    output: o.OutputOptions,
) -> int:
    """Run a program and report on every run it makes (summaries on stderr).

    Exits with the script's own status if that is not 0, else with 1 if a run has findings or wrong
    numerics, else with 0. Simulator flags stand before SCRIPT.
    """
    from a2a3sim.cli.accepted import noted, read_suppressions, source_files
    from a2a3sim.cli.output import check_writable, note
    from a2a3sim.errors import A2A3Error, DeadlockError
    from a2a3sim.pypto import run_script
    from a2a3sim.reports.summary import summary_lines
    from a2a3sim.run.settings import Session, session

    if timeline is not None:
        check_writable(timeline)
    accepted = read_suppressions(suppress, script)
    runs, drawn, files = [], [], set()

    def observe(program, result, record) -> None:
        runs.append(result)
        files.update(source_files(record))
        if witness:
            from a2a3sim.experiments.witness import attach_witnesses

            attach_witnesses(program, result, record)
        for line in summary_lines(result):
            note(line)
        output.add(result.program, record, result)
        if timeline is not None:
            from a2a3sim.reports.timeline import TimelineRun

            drawn.append(
                TimelineRun(record, result, f"{result.program} #{len(runs)}" if len(runs) > 1 else "")
            )

    redirected = contextlib.nullcontext() if output.prints else contextlib.redirect_stdout(sys.stderr)
    status = 0
    with session(Session(forced, [observe], keep_calls=witness, suppressions=accepted)), redirected:
        try:
            status = run_script(script, args or [])
        except A2A3Error as error:
            told = runs and any(f.severity == "error" for f in runs[-1].findings)
            if not told:  # else its finding has been printed
                note(error.report if isinstance(error, DeadlockError) else f"a2a3sim: {error}")
            status = 1
    if forced.get("checks", True):
        for line in noted(accepted, files):
            note(line)
    if timeline is not None and drawn:
        from a2a3sim.reports.timeline import draw_timeline

        note(f"wrote {draw_timeline(drawn, timeline)}")
    output.write("run", runs)
    return status or int(output.failed(runs))
