"""Timelines of shipped collectives or of a user's own program, several runs on one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from a2a3sim import ConfigError, RunConfig
from a2a3sim.experiments.perf import algorithms_of
from a2a3sim.experiments.runner import Point, run_point
from a2a3sim.kernels import CATALOGUE
from a2a3sim.reports import TimelineRun
from a2a3sim.units import format_time, nearest, parse_time

__all__ = ["is_script", "run_kernels", "run_program", "shown_ranks", "window_of", "zoom_text"]


def is_script(what: str) -> bool:
    """Whether a timeline is asked of a script rather than of a shipped collective.

    Raises:
        ConfigError: neither.
    """
    if what in CATALOGUE:
        return False
    if what.endswith(".py") or Path(what).is_file():
        if not Path(what).is_file():
            raise ConfigError(f"there is no script {what!r}")
        return True
    known = ", ".join(CATALOGUE)
    raise ConfigError(
        f"KERNEL must be a script or a saved trace that exists, or one of {known}, got {what!r}{nearest(what, CATALOGUE)}"
    )


def run_kernels(
    collective: str,
    algorithms: Sequence[str],
    nbytes: int,
    labels: Sequence[int],
    dtype: str,
    cores: int | None,
    config: RunConfig,
) -> list[TimelineRun]:
    """One run per algorithm, in the order in which they are named."""
    runs = []
    for name in algorithms_of(collective, algorithms):
        outcome = run_point(Point(name, len(labels), nbytes, collective, dtype, cores, config, labels))
        runs.append(TimelineRun(outcome.trace, outcome.result, name))
    return runs


def run_program(script: str, args: Sequence[str], forced: Mapping[str, Any]) -> tuple[list[TimelineRun], int]:
    """Every run that a script makes, and the script's own exit status."""
    from a2a3sim.pypto import run_script
    from a2a3sim.run import Session, session

    runs: list[TimelineRun] = []

    def observe(_program, result, trace) -> None:
        title = f"{result.program} #{len(runs) + 1}" if runs else result.program
        runs.append(TimelineRun(trace, result, title))

    with session(Session(forced, [observe])):
        status = run_script(script, list(args))
    return runs, status


def window_of(first: str | None, last: str | None, runs: Sequence[TimelineRun]) -> tuple[int, int] | None:
    """The stretch of time to show, in ps from the first kernel's start; None for all.

    Raises:
        ConfigError: it is empty or begins after the last run has ended.
    """
    if first is None and last is None:
        return None
    end = max(run.result.kernel_ps for run in runs)
    low = parse_time(first) if first is not None else 0
    high = parse_time(last) if last is not None else end
    if low >= end:
        longest = format_time(end)
        raise ConfigError(f"--from must be before the end of the longest run, {longest}, got {first!r}")
    if high <= low:
        raise ConfigError(f"--to must be after --from, got {format_time(low)} to {format_time(high)}")
    return low, high


def shown_ranks(ranks: Sequence[int] | None, runs: Sequence[TimelineRun]) -> Sequence[int] | None:
    """The ranks to show, checked.

    Raises:
        ConfigError: one that no run has.
    """
    if ranks is None:
        return None
    most = min(run.result.ranks for run in runs)
    for rank in ranks:
        if rank >= most:
            raise ConfigError(f"--ranks: there is no rank {rank}, ranks are 0..{most - 1}")
    return ranks


def zoom_text(window: tuple[int, int] | None, ranks: Sequence[int] | None) -> str:
    """What of the runs is shown, for the title."""
    parts = []
    if window is not None:
        parts.append(f"{format_time(window[0])} to {format_time(window[1])}")
    if ranks is not None:
        ordered = sorted(ranks)
        whole = ordered == list(range(ordered[0], ordered[-1] + 1)) and len(ordered) > 2
        listed = f"{ordered[0]} to {ordered[-1]}" if whole else ", ".join(map(str, ordered))
        parts.append(f"rank{'s' if len(ordered) > 1 else ''} {listed}")
    return f" ({'; '.join(parts)})" if parts else ""
