"""``a2a3sim diff A.json B.json``."""

from pathlib import Path
from typing import Annotated

import typer

from a2a3sim.cli.options import Json


def command(
    first: Annotated[str, typer.Argument(help="A report or result written by --json.")],
    second: Annotated[str, typer.Argument(help="Another one.")],
    json: Json = None,
) -> int:
    """What differs between two results: times, bytes, findings, parameters. Exits with 1 if anything does."""
    from a2a3sim.cli.output import print_report, show
    from a2a3sim.errors import ConfigError
    from a2a3sim.reports.diff import diff, render_diff
    from a2a3sim.result import Report

    reports = []
    for path in (first, second):
        try:
            reports.append(Report.from_json(Path(path).read_text()))
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    a, b = reports
    if len(a.runs) != len(b.runs):
        raise ConfigError(
            f"{first} holds {len(a.runs)} runs, {second} holds {len(b.runs)}: nothing to compare them by"
        )
    rows = []
    for k, (one, other) in enumerate(zip(a.runs, b.runs, strict=True)):
        changes = diff(one, other)
        rows += [{"run": k, **change._asdict()} for change in changes]
        if json != "-":
            title = f"run {k + 1} of {len(a.runs)}: {one.algorithm or one.program}" if len(a.runs) > 1 else ""
            show(*([title] if title else []), render_diff(changes))
    if json is not None:
        print_report(json, "diff", [], rows)
    return 1 if rows else 0
