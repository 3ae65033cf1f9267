"""``a2a3sim check-trace FILE``: the findings of a saved run, without simulating it again."""

from __future__ import annotations

from typing import Annotated

import typer

from a2a3sim.cli import options as o


def command(
    file: Annotated[str, typer.Argument(help="A trace written by --save-trace.")],
    fail_on: o.FailOn = "error",
    suppress: o.Suppress = None,
    json: o.Json = None,
) -> int:
    """Check a saved run and report on it as `run` does (on stderr); exits with 1 on findings or wrong numerics.

    What follows from the order of the recorded operations is found anew. Findings that rest on values or errors
    (mismatch, deadlock, uninitialised, …) stand as the run told them.
    """
    from a2a3sim.checks import check_again, follows_others
    from a2a3sim.cli.accepted import noted, read_suppressions, source_files
    from a2a3sim.cli.output import check_writable, failed, note, print_report
    from a2a3sim.reports.summary import summary_lines
    from a2a3sim.trace.record import Trace

    failed([], fail_on)
    if json not in (None, "-"):
        check_writable(json)
    accepted = read_suppressions(suppress)
    trace, result = Trace.load(file)
    result = check_again(trace, result)
    result = result.model_copy(update={"findings": accepted.apply(result.findings)})
    for line in summary_lines(result):
        note(line)
    if follows_others(trace):
        note(
            "a later call on windows that are kept: what earlier calls left is not in the file, so the findings are the run's"
        )
    for line in noted(accepted, source_files(trace)):
        note(line)
    if json is not None:
        print_report(json, "check-trace", [result])
    return int(failed([result], fail_on))
