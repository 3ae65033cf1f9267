"""``a2a3sim diff A B``."""

from pathlib import Path
from typing import Annotated

import typer

from a2a3sim.cli.options import Json


def command(
    first: Annotated[str, typer.Argument(help="A report or result written by --json, or a saved trace.")],
    second: Annotated[str, typer.Argument(help="Another one.")],
    json: Json = None,
) -> int:
    """What differs between two results: times, bytes, findings, parameters. Exits with 1 if anything does."""
    from a2a3sim.cli.output import print_report, show
    from a2a3sim.errors import ConfigError
    from a2a3sim.reports.diff import diff, render_diff
    from a2a3sim.result import Report
    from a2a3sim.trace.store import read_result, saved

    def runs_of(path: str) -> list:
        if saved(path):
            return [read_result(path)]
        try:
            return Report.from_json(Path(path).read_text()).runs
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{path} must be JSON in UTF-8 or a saved trace") from None

    a, b = runs_of(first), runs_of(second)
    if len(a) != len(b):
        raise ConfigError(f"{first} holds {len(a)} runs, {second} holds {len(b)}: nothing to compare them by")
    rows = []
    for k, (one, other) in enumerate(zip(a, b, strict=True)):
        changes = diff(one, other)
        rows += [{"run": k, **change._asdict()} for change in changes]
        if json != "-":
            title = f"run {k + 1} of {len(a)}: {one.algorithm or one.program}" if len(a) > 1 else ""
            show(*([title] if title else []), render_diff(changes))
    if json is not None:
        print_report(json, "diff", [], rows)
    return 1 if rows else 0
