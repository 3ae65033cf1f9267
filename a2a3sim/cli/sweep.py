"""``a2a3sim sweep``: every combination, as one table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Parameter
from typing import Annotated, Any

import typer

from a2a3sim.cli import options as o
from a2a3sim.config import RunConfig
from a2a3sim.experiments.sweep_axes import WORKLOAD

_AXES = "Axes (lists 2,4,8 and ranges 2:64:x2, 1KiB:1MiB:x4, 10GB/s:50GB/s:+10GB/s)"
_WORTH_WORKERS = 50_000  # operations, about a second: below, starting processes takes longer than it saves


def _flags() -> Iterator[Parameter]:
    """By key, as sweep files have them."""
    for axis in WORKLOAD:
        yield o.option(
            axis.key, str | None, None, f"--{axis.key}", *axis.flags, help=axis.help, rich_help_panel=_AXES
        )
    for s in RunConfig.settings():
        several = s.kind if s.kind == list[str] else str
        if s.flag and s.kernels and s.axis:
            yield o.option(s.key, several | None, None, s.flag, help=s.axis, rich_help_panel=_AXES)
        elif s.flag and s.kernels:
            yield o.flag_of(s, None, s.key, both=s.kind is bool)
    yield o.option("seeds", str | None, None, "--seeds", help="Seeds 0..K-1 instead.", rich_help_panel=_AXES)


def _values(given: dict[str, Any]) -> dict[str, Any]:
    pairs = {s.key: s.flag for s in RunConfig.settings() if s.kind == list[str]}
    values = {
        key: o.parse_pairs(pairs[key], value) if key in pairs else value for key, value in given.items()
    }
    return {key: value for key, value in values.items() if value is not None and value != {}}


@o.grouped
def command(
    file: Annotated[
        str | None, typer.Argument(help="A sweep file (TOML), or the name of a shipped one.")
    ] = None,
    jobs: o.Jobs = None,
    dask: Annotated[str | None, typer.Option("--dask", help="Address of a Dask scheduler to run on.")] = None,
    target: Annotated[
        str | None, typer.Option("-o", "--output", help="FILE.csv or .parquet. Default sweep.csv.")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Forget what an interrupted sweep left.")
    ] = False,
    *,
    given: Annotated[dict[str, Any], o.Group(_flags, _values)],
    output: o.OutputOptions,
) -> int:
    """Run every combination of the axes; one row each, in an order that depends on the axes alone.

    Killed at any moment, the same command goes on where it stopped: finished rows stand in FILE.journal until
    FILE is written in one step. FILE is the same to the last byte whatever -j, interruptions and --dask.
    `a2a3sim plot FILE` draws it.
    """
    from a2a3sim.cli.output import check_writable, note, show
    from a2a3sim.errors import ConfigError
    from a2a3sim.experiments.runner import run_point
    from a2a3sim.experiments.sweep_executors import usable_cores
    from a2a3sim.experiments.sweep_file import TOGETHER, build_sweep, read_sweep_file
    from a2a3sim.experiments.sweep_output import check_output, read_rows
    from a2a3sim.experiments.sweep_plan import Plan, describe
    from a2a3sim.experiments.sweep_run import run_sweep
    from a2a3sim.experiments.sweep_summary import summary_table

    if jobs is not None and jobs < 1:
        raise ConfigError(f"-j must be at least 1, got {jobs}")
    if "seed" in given and "seeds" in given:
        raise ConfigError("--seed and --seeds say the same thing: give one of them")
    values = read_sweep_file(file) if file is not None else {}
    for key, value in given.items():
        if key in TOGETHER:
            values.pop(TOGETHER[key], None)
        values[key] = {**values.get(key, {}), **value} if isinstance(value, dict) else value
    named = values.pop("output", None)
    target = target or named or "sweep.csv"
    plan = Plan.of(build_sweep(values))
    check_output(check_writable(target))
    output.check_number(len(plan), f"the sweep has {len(plan)} points")
    for reason, count in plan.left_out.items():
        note(f"left out {count} point{'s' if count != 1 else ''}: {reason}")
    note(describe(plan))
    with _progress() as progress:
        ran = run_sweep(
            plan,
            target,
            jobs=jobs or (usable_cores() if sum(plan.work) > _WORTH_WORKERS else 1),
            dask=dask,
            restart=restart,
            progress=progress,
        )
    before = f" ({ran.resumed} from before)" if ran.resumed else ""
    took = (
        f" in {ran.wall_s:.1f} s, {100 * ran.share:.1f} % of it simulating" if ran.rows > ran.resumed else ""
    )
    note(f"wrote {ran.path}: {ran.rows} rows{before}{took}")
    rows = read_rows(ran.path)
    for number in range(len(plan) if output.keeps_traces else 0):
        outcome = run_point(plan.point(number))  # again, and the same: runs are deterministic
        output.add(f"#{number} {outcome.form.name}", outcome.trace, outcome.result)
    if output.prints:
        table, more = summary_table(rows)
        show(table)
        if more:
            print(f"… and {more} more: a2a3sim plot {ran.path}")
    output.write("sweep", [], rows)
    return 1 if any(_failed(row, output.fail_on) for row in rows) else 0


def _failed(row: dict, fail_on: str) -> bool:
    bad = row["findings.error"] + (row["findings.warning"] if fail_on == "warning" else 0)
    return bool(bad) or row["numerics.ok"] is False


@contextmanager
def _progress():
    """A bar with the remaining time on a terminal's stderr, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    bar = Progress(
        BarColumn(bar_width=40),
        TextColumn("{task.fields[points]} of {task.fields[total_points]} points"),
        TimeElapsedColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        yield _Bar(bar)


class _Bar:
    def __init__(self, bar) -> None:
        self.bar = bar
        self.task = None
        self.points = 0

    def start(self, points: int, work: int, done_points: int, done_work: int) -> None:
        """Work counts, not points: a large point takes much longer than a small one."""
        self.points = done_points
        self.task = self.bar.add_task(
            "", total=work, completed=done_work, points=done_points, total_points=points
        )

    def advance(self, points: int, work: int) -> None:
        self.points += points
        self.bar.update(self.task, advance=work, points=self.points)
