"""The performance table: one collective over sizes, several algorithms side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from a2a3sim import ConfigError, RunConfig, load_platform
from a2a3sim.experiments.conventions import algbw, busbw, convention, element, payload, size_of, type_name
from a2a3sim.experiments.runner import Outcome, Point, job_for, run_point
from a2a3sim.experiments.sweep_executors import executor
from a2a3sim.kernels import CATALOGUE, find
from a2a3sim.models import build_topology
from a2a3sim.reports import PerfRow
from a2a3sim.units import format_size

__all__ = ["MOST_SIZES", "algorithms_of", "perf_row", "plan", "run_perf", "sizes_between"]

MOST_SIZES = 1000


def algorithms_of(collective: str, names: Sequence[str]) -> list[str]:
    """The algorithms of a collective; ``all`` stands for every one.

    Raises:
        ConfigError: an unknown collective or algorithm, with the nearest name.
    """
    convention(collective)
    if list(names) == ["all"]:
        return list(CATALOGUE.get(collective, ()))
    for name in names:
        find(collective, name)
    return list(names)


def sizes_between(first: int, last: int, factor: int | None = None, step: int | None = None) -> list[int]:
    """Sizes from ``first`` to ``last``, times ``factor`` or plus ``step``; a factor of 1 or step of 0 gives one size.

    Raises:
        ConfigError: the bounds are the wrong way round, or there would be too many.
    """
    if first <= 0:
        raise ConfigError(f"-b must be above 0, got {first} B")
    if last < first:
        raise ConfigError(f"-e must not be below -b {format_size(first)}, got {format_size(last)}")
    if step is None and (factor is None or factor < 1):
        raise ConfigError(f"-f must be at least 1, got {factor}")
    if (step is None and factor == 1) or step == 0:
        return [first]
    sizes, size = [], first
    while size <= last:
        sizes.append(size)
        if len(sizes) > MOST_SIZES:
            raise ConfigError(
                f"-b, -e and the step must give at most {MOST_SIZES} sizes: take a larger -i, or -f 2"
            )
        size = size + step if step else size * factor  # type: ignore[operator]  # without a step there is one
    return sizes


def plan(
    collective: str,
    algorithms: Sequence[str],
    sizes: Sequence[int],
    labels: Sequence[int],
    dtype: str,
    cores: int | None,
    config: RunConfig,
    everything: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> list[Point]:
    """Every point of the table, size by size, checked before anything runs.

    Args:
        everything: leave out what an algorithm cannot do, and ``say`` so, instead of raising.

    Raises:
        ConfigError: what cannot be run, and why; nothing is left to run.
    """
    kind = element(dtype)
    platform = load_platform(config.machine or "a2", dict(config.platform_overrides))
    place = config.place
    build_topology(platform, max(place) + 1 if place else max(len(labels), 1))
    points: list[Point] = []
    skipped: dict[str, None] = {}
    for size in sizes:
        for algorithm in algorithms:
            form = find(collective, algorithm)
            nbytes = payload(form, size, len(labels), kind)
            if not nbytes:
                skipped[
                    f"{format_size(size)} is less than one {kind.name} for each of {len(labels)} ranks"
                ] = None
                continue
            point = Point(algorithm, len(labels), nbytes, collective, kind.name, cores, config, labels)
            try:
                job_for(point, platform)
            except ConfigError as error:
                if not everything:
                    raise
                skipped[f"left out: {error}"] = None
                continue
            points.append(point)
    if not points:
        raise ConfigError(f"nothing to run: {next(iter(skipped), 'no size')}")
    for text in skipped:
        say(text)
    return points


def perf_row(outcome: Outcome, collective: str) -> PerfRow:
    """A finished point in the units of the table."""
    result, job = outcome.result, outcome.job
    size = size_of(outcome.form, job)
    columns = convention(collective)
    return PerfRow(
        collective=collective,
        algorithm=outcome.form.name,
        ranks=job.ranks,
        cores=job.cores,
        size=size,
        count=columns.count(size, job.ranks, job.dtype.itemsize),
        type=type_name(job.dtype.name),
        redop=columns.redop,
        root=columns.root,
        time_ps=result.kernel_ps,
        algbw=algbw(size, result.kernel_ps),
        busbw=busbw(collective, job.ranks, size, result.kernel_ps),
        wrong=None if result.numerics is None else result.numerics.wrong,
        bound_ps=result.bound_ps,
        result=result,
    )


def run_perf(points: Sequence[Point], jobs: int = 1) -> Iterator[tuple[PerfRow, Outcome | None]]:
    """Run the points and yield them in order; the caller drops each outcome's trace as early as it can.

    With several ``jobs`` they run in processes of their own, and no outcome comes back.
    """
    if jobs == 1:
        for point in points:
            outcome = run_point(point)
            yield perf_row(outcome, point.collective), outcome
        return
    with executor(jobs) as (pool, _):
        for future in [pool.submit(_row, point) for point in points]:
            yield future.result(), None


def _row(point: Point) -> PerfRow:
    return perf_row(run_point(point), point.collective)
