"""``a2a3sim explain SCRIPT.py [ARGS…]``: the story of each run in words."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated

import typer

from a2a3sim.cli import options as o


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
    trace: o.Trace = None,
    json: o.Json = None,
) -> int:
    """Say what each phase did, who waited for whom, what the time went to, what is wrong, and why.

    Where a result can be traced back, the program is run again on tagged inputs, so that each element of the
    result is known as contributions of ranks. Simulator flags stand before SCRIPT. Exits as `run` does.
    """
    from a2a3sim.cli.accepted import noted, read_suppressions, source_files
    from a2a3sim.cli.output import check_writable, failed, note, print_report
    from a2a3sim.errors import DeadlockError
    from a2a3sim.experiments.explain import explain_script
    from a2a3sim.reports.chrome import check_trace_path, write_trace
    from a2a3sim.reports.story import story_lines

    failed([], fail_on)
    for path in (json, trace):
        if path not in (None, "-"):
            check_writable(path)
    if trace is not None:
        check_trace_path(trace)
    forced = o.forced_settings(
        platform, overrides, place, seed, skew, fences, slow, poison, check, timing_only, jitter, delay
    )
    accepted = read_suppressions(suppress, script)
    with contextlib.redirect_stdout(sys.stderr):
        done = explain_script(script, args or [], forced, accepted, witness)
    if not done.stories:
        note(f"{script} ran no compiled program: there is nothing to explain")
    if json != "-":
        for number, story in enumerate(done.stories):
            if number:
                print()
            print("\n".join(story_lines(story)))
    if done.error is not None:
        error = done.error
        note(error.report if isinstance(error, DeadlockError) else f"a2a3sim: {error}")
    if check:
        for line in noted(accepted, {file for story in done.stories for file in source_files(story.trace)}):
            note(line)
    if trace is not None and done.stories:
        runs = [(story.result.program, story.trace, story.result) for story in done.stories]
        note(f"wrote {write_trace(trace, runs)}")
    if json is not None:
        print_report(json, "explain", done.runs, [story.as_dict() for story in done.stories])
    return done.status or int(failed(done.runs, fail_on))
