"""``a2a3sim explain SCRIPT.py [ARGS…]``: the story of each run in words."""

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
    *,
    forced: o.ForcedSettings,
    output: o.OutputOptions,
) -> int:
    """Say what each phase did, who waited for whom, what the time went to, what is wrong, and why.

    Where a result can be traced back, the program is run again on tagged inputs, so that each element of the
    result is known as contributions of ranks. Simulator flags stand before SCRIPT. Exits as `run` does.
    """
    from a2a3sim.cli.accepted import noted, read_suppressions, source_files
    from a2a3sim.cli.output import note
    from a2a3sim.errors import DeadlockError
    from a2a3sim.experiments.explain import explain_script
    from a2a3sim.reports.story import story_lines

    accepted = read_suppressions(suppress, script)
    with contextlib.redirect_stdout(sys.stderr):
        done = explain_script(script, args or [], forced, accepted, witness)
    if not done.stories:
        note(f"{script} ran no compiled program: there is nothing to explain")
    if output.prints:
        for number, story in enumerate(done.stories):
            if number:
                print()
            print("\n".join(story_lines(story)))
    if done.error is not None:
        error = done.error
        note(error.report if isinstance(error, DeadlockError) else f"a2a3sim: {error}")
    if forced.get("checks", True):
        for line in noted(accepted, {file for story in done.stories for file in source_files(story.trace)}):
            note(line)
    for story in done.stories:
        output.add(story.result.program, story.trace, story.result)
    output.write("explain", done.runs, [story.as_dict() for story in done.stories])
    return done.status or int(output.failed(done.runs))
