"""``a2a3sim sweep``: every combination, as one table."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Annotated

import typer

from a2a3sim.cli import options as o

_AXES = "Axes (lists 2,4,8 and ranges 2:64:x2, 1KiB:1MiB:x4, 10GB/s:50GB/s:+10GB/s)"
_MOST_TRACED = 32
_WORTH_WORKERS = 50_000  # operations, about a second: below, starting processes takes longer than it saves


def _axis(flag: str, text: str, *more: str):
    return typer.Option(flag, *more, help=text, rich_help_panel=_AXES)


def command(
    file: Annotated[
        str | None, typer.Argument(help="A sweep file (TOML), or the name of a shipped one.")
    ] = None,
    collective: Annotated[str | None, _axis("--collective", "Default allreduce.")] = None,
    algorithms: Annotated[
        str | None, _axis("--algorithms", "Names, or all. Default mesh,two_phase.", "--algorithm")
    ] = None,
    ranks: Annotated[str | None, _axis("--ranks", "Numbers of ranks. Default 8.")] = None,
    size: Annotated[str | None, _axis("--size", "Payloads per rank, N. Default 1MiB.")] = None,
    dtype: Annotated[str | None, _axis("--dtype", "Element types. Default fp32.")] = None,
    cores: Annotated[
        str | None, _axis("--cores", "Cores per device. Default: the platform's kernel.cores.")
    ] = None,
    platform: Annotated[str | None, _axis("--platform", "Machines. Default a2.")] = None,
    overrides: Annotated[
        list[str] | None,
        _axis("--set", "A platform parameter: link.bandwidth=10GB/s:100GB/s:x2 (repeatable)."),
    ] = None,
    fences: Annotated[str | None, _axis("--fences", "statement, notify, explicit.")] = None,
    skew: Annotated[str | None, _axis("--skew", "Widths of the launch skew, or none.")] = None,
    seed: Annotated[str | None, _axis("--seed", "Seeds. Default 0.")] = None,
    seeds: Annotated[str | None, _axis("--seeds", "Seeds 0..K-1 instead.")] = None,
    place: o.Place = None,
    slow: o.Slow = None,
    poison: Annotated[
        bool | None, typer.Option("--poison/--no-poison", help="Fill fresh memory with NaN.")
    ] = None,
    check: Annotated[
        bool | None, typer.Option("--check/--no-check", help="Look for races. Default: do.")
    ] = None,
    timing_only: Annotated[
        bool | None,
        typer.Option("--timing-only/--no-timing-only", help="Times without moving bytes: much faster."),
    ] = None,
    fail_on: o.FailOn = "error",
    jobs: Annotated[int | None, typer.Option("-j", "--jobs", help="Processes. Default: one a core.")] = None,
    dask: Annotated[str | None, typer.Option("--dask", help="Address of a Dask scheduler to run on.")] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="FILE.csv or .parquet. Default sweep.csv.")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Forget what an interrupted sweep left.")
    ] = False,
    trace: o.Trace = None,
    json: o.Json = None,
) -> int:
    """Run every combination of the axes; one row each, in an order that depends on the axes alone.

    Killed at any moment, the same command goes on where it stopped: finished rows stand in FILE.journal until
    FILE is written in one step. FILE is the same to the last byte whatever -j, interruptions and --dask.
    `a2a3sim plot FILE` draws it.
    """
    from a2a3sim.cli.output import check_writable, failed, note, print_report, show
    from a2a3sim.errors import ConfigError
    from a2a3sim.experiments.sweep_executors import usable_cores
    from a2a3sim.experiments.sweep_file import TOGETHER, build_sweep, read_sweep_file
    from a2a3sim.experiments.sweep_output import check_output, read_rows
    from a2a3sim.experiments.sweep_plan import Plan, describe
    from a2a3sim.experiments.sweep_run import run_sweep
    from a2a3sim.experiments.sweep_summary import summary_table
    from a2a3sim.reports.chrome import check_trace_path

    failed([], fail_on)
    given = {
        "collective": collective, "algorithms": algorithms, "ranks": ranks, "size": size, "dtype": dtype,
        "cores": cores, "platform": platform, "fences": fences, "skew": skew, "seed": seed, "seeds": seeds,
        "place": place, "poison": poison, "check": check, "timing_only": timing_only, "output": output,
        "set": o.parse_pairs("--set", overrides) or None, "slow": o.parse_pairs("--slow", slow) or None,
    }  # fmt: skip
    if jobs is not None and jobs < 1:
        raise ConfigError(f"-j must be at least 1, got {jobs}")
    if seed is not None and seeds is not None:
        raise ConfigError("--seed and --seeds say the same thing: give one of them")
    values = read_sweep_file(file) if file is not None else {}
    for key, value in given.items():
        if value is None:
            continue
        if key in TOGETHER:
            values.pop(TOGETHER[key], None)
        values[key] = {**values.get(key, {}), **value} if isinstance(value, dict) else value
    target = values.pop("output", None) or "sweep.csv"
    plan = Plan.of(build_sweep(values))
    check_output(check_writable(target))
    for path in (json, trace):
        if path not in (None, "-"):
            check_writable(path)
    if trace is not None:
        check_trace_path(trace)
    if trace is not None and len(plan) > _MOST_TRACED:
        raise ConfigError(
            f"--trace: a trace holds at most {_MOST_TRACED} runs, the sweep has {len(plan)} points"
        )
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
    if trace is not None:
        _write_traces(plan, trace)
    if json != "-":
        table, more = summary_table(rows)
        show(table)
        if more:
            print(f"… and {more} more: a2a3sim plot {ran.path}")
    if json is not None:
        print_report(json, "sweep", [], rows)
    return 1 if any(_failed(row, fail_on) for row in rows) else 0


def _failed(row: dict, fail_on: str) -> bool:
    bad = row["findings.error"] + (row["findings.warning"] if fail_on == "warning" else 0)
    return bool(bad) or row["numerics.ok"] is False


def _write_traces(plan, path: str) -> None:
    """Runs are deterministic, so the traces of a few points are those of the sweep."""
    from a2a3sim.cli.output import note
    from a2a3sim.experiments.runner import run_point
    from a2a3sim.reports.chrome import write_trace

    runs = []
    for number in range(len(plan)):
        outcome = run_point(plan.point(number))
        runs.append((f"#{number} {outcome.form.name}", outcome.trace, outcome.result))
    note(f"wrote {write_trace(path, runs)}")


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
