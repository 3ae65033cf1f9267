"""``a2a3sim stress SCRIPT.py [ARGS…]``: the same program under many schedules."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from a2a3sim.cli import options as o
from a2a3sim.config import RunConfig

_WRONG_SHOWN = 5  # with what reproduces them
_SEEDS_SHOWN = 20

_SETTINGS = o.forced_settings("seed", "delay")


@o.grouped
def command(
    script: Annotated[str, typer.Argument(help="The program; everything after it is its own.")],
    args: Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="How many schedules.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="The first one; 0 is the machine's own.")] = 0,
    jobs: o.Jobs = None,
    witness: o.Witness = False,
    suppress: o.Suppress = None,
    *,
    forced: Annotated[dict[str, Any], _SETTINGS],
    output: o.OutputOptions,
) -> int:
    """Run a program under many schedules: times, wrong results and what reproduces them, the findings' fate.

    A seed fixes a schedule: the launch skew, by how much each link is slower, which rank is slower, and the
    order of what happens at the same instant. What --skew, --jitter or --slow fix is not explored. A finding
    that no schedule turns into damage is still a finding. Exits with 1 for a wrong result or a finding.
    """
    from a2a3sim.cli.accepted import noted, read_suppressions, source_files
    from a2a3sim.cli.output import note
    from a2a3sim.errors import ConfigError
    from a2a3sim.experiments.stress import stress_script
    from a2a3sim.experiments.sweep_executors import usable_cores

    for flag, value in (("--seeds", seeds), ("-j", jobs)):
        if value is not None and value < 1:
            raise ConfigError(f"{flag} must be at least 1, got {value}")
    if seed < 0:
        raise ConfigError(f"--seed must be at least 0, got {seed}")
    accepted = read_suppressions(suppress, script)
    files: set[str] = set()

    def look(program, result, record) -> None:
        files.update(source_files(record))
        output.add(result.program, record, result)
        if witness:
            from a2a3sim.experiments.witness import attach_witnesses

            attach_witnesses(program, result, record)

    done = stress_script(
        script,
        args or [],
        forced,
        range(seed, seed + seeds),
        usable_cores() if jobs is None else jobs,
        accepted,
        _progress if sys.stderr.isatty() else None,
        look,
    )
    if not done.runs:
        note(done.base.wrong)
        return done.base.status
    # Without --check and --timing-only: who reproduces a wrong result wants to see it and its findings.
    own = {name: value for name, value in forced.items() if name not in ("checks", "timing_only")}
    flags = RunConfig.flags(own)

    def reproduces(observed) -> str:
        return shlex.join(["a2a3sim", "run", *flags, *observed.schedule.flags, script, *(args or [])])

    if output.prints:
        print("\n".join(_report(done, reproduces, [script, *(args or [])])))
    if forced.get("checks", True):
        for line in noted(accepted, files):
            note(line)
    output.write("stress", done.runs, [one.as_row(reproduces(one)) for one in done.observed])
    severe = ("error",) if output.fail_on == "error" else ("error", "warning")
    found = any(f.severity in severe and f.suppressed is None for f, _ in done.findings().values())
    return 1 if done.wrong or found else 0


def _progress(done: int, of: int) -> None:
    print(f"\r{done} of {of} schedules", end="" if done < of else "\r\033[K", file=sys.stderr, flush=True)


def _report(done, reproduces, words: list[str]) -> Iterator[str]:
    from a2a3sim.reports.findings import finding_lines
    from a2a3sim.reports.heading import header
    from a2a3sim.reports.spread import spread_lines
    from a2a3sim.units import format_time

    number = len(done.observed)
    yield f"{shlex.join(words)} under {number} schedule{'s' if number > 1 else ''}"
    yield header(done.runs[0], number)
    for name, times in done.times():
        first, bars = spread_lines(times, format_time)
        yield f"time of {name}: {first}"
        yield f"  {bars}"
    wrong = done.wrong
    yield f"wrong results: {len(wrong)} of {number}" if wrong else "wrong results: none"
    for one in wrong[:_WRONG_SHOWN]:
        yield f"  seed {one.schedule.seed}: {one.wrong}"
        yield f"    {reproduces(one)}"
    if len(wrong) > _WRONG_SHOWN:
        others = ", ".join(str(one.schedule.seed) for one in wrong[_WRONG_SHOWN:][:_SEEDS_SHOWN])
        yield f"  and {len(wrong) - _WRONG_SHOWN} more, seeds {others}"
    told = [f for f, _ in done.findings().values()]
    by_key = {_key(f): f for run in done.runs for f in run.findings}
    yield "findings:" if told else "findings: none"
    for finding, count in done.findings().values():
        shown = by_key.get(_key(finding), finding)  # the first run's, with its witness
        yield from (f"  {line}" for line in finding_lines([shown]))
        if finding.counts:
            yield f"      {_fate(shown, count, number, wrong)}"
    yield f"verdict: {_verdict(told, wrong, number)}"


def _key(finding):
    from a2a3sim.experiments.stress import finding_key

    return finding_key(finding)


def _fate(finding, count: int, number: int, wrong) -> str:
    """What became of a finding under the schedules that were explored."""
    found = f"found under {'every schedule' if count == number else f'{count} of {number} schedules'}"
    if finding.witness is not None and finding.witness.shown:
        return f"{found}; confirmed by its witness"
    if wrong:
        first = wrong[0].schedule.seed
        return f"{found}; results were wrong under {len(wrong)} of {number}, first under seed {first}"
    return f"{found}; none of the {number} turned it into damage: it is still a finding"


def _verdict(findings, wrong, number: int) -> str:
    under = f"{number} schedule{'s' if number > 1 else ''}"
    serious = [f for f in findings if f.counts]
    if wrong:
        return f"wrong under {len(wrong)} of {under}"
    if serious:
        return (
            f"right under all {under}, but not safe: {len(serious)} finding{'s' if len(serious) > 1 else ''}"
        )
    return f"clean under {under}"
