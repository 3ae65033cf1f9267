"""The points of a sweep: laid out, checked before the first one runs, and cut into pieces for workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from a2a3sim import ConfigError, load_platform
from a2a3sim.experiments.conventions import element
from a2a3sim.experiments.runner import Point, check_memory, job_for
from a2a3sim.experiments.sweep import Sweep
from a2a3sim.experiments.sweep_axes import MOST_POINTS, setting_axes
from a2a3sim.kernels import Job, find
from a2a3sim.models import build_topology
from a2a3sim.units import format_size

__all__ = ["Plan", "describe"]

_TILE = 16384  # bytes: for the estimate of a point's work where tiles have no limit
_CHUNK = 64  # points at most
_WORK = 50_000  # operations at most, about a second
_LEAST = 2_000  # operations, so that handing out takes little of the time


@dataclass(frozen=True)
class Plan:
    """The points of a sweep, checked: ``points[i]`` is row i.

    Attributes:
        values: per point its place on the axes.
        work: per point about how many operations it takes, for balance and remaining time.
        left_out: why points that an algorithm cannot do are missing, with their number.
    """

    sweep: Sweep
    values: list[tuple]
    work: list[int]
    left_out: dict[str, int]

    def __len__(self) -> int:
        return len(self.values)

    def point(self, number: int) -> Point:
        """The point of a row."""
        (collective, algorithm), platform, texts, dtype, ranks, size, cores, *own = self.values[number]
        config = self.sweep.config
        config = replace(
            config,
            machine=platform,
            platform_overrides={
                **config.platform_overrides,
                **dict(zip(self.sweep.keys, texts, strict=True)),
            },
            **dict(zip(self.sweep.varied, own, strict=True)),
        )
        return Point(algorithm, ranks, size, collective, dtype, cores, config)

    def chunks(self, numbers: list[int], workers: int) -> list[list[int]]:
        """Rows in pieces for the workers: large enough to be cheap to hand out, the longest work first."""
        if not numbers:
            return []
        total = sum(self.work[n] for n in numbers)
        most = max(_LEAST, min(_WORK, total // (16 * workers)))
        chunks: list[list[int]] = []
        load = 0
        for number in numbers:
            work = self.work[number]
            if not chunks or load + work > most or len(chunks[-1]) == _CHUNK:
                chunks.append([])
                load = 0
            chunks[-1].append(number)
            load += work
        return sorted(chunks, key=lambda chunk: -sum(self.work[n] for n in chunk))

    @classmethod
    def of(cls, sweep: Sweep) -> Plan:
        """Lay a sweep out and check all of it.

        Raises:
            ConfigError: too many points, none, or one that cannot be run.
        """
        kernels = list(sweep.kernels())
        axes = (
            sweep.platforms, *(values for _, values in sweep.overrides), sweep.dtypes, sweep.ranks, sweep.sizes,
            sweep.cores, *sweep.varied.values(),
        )  # fmt: skip
        count = len(kernels) * prod(len(axis) for axis in axes)
        if count > MOST_POINTS:
            raise ConfigError(
                f"the sweep has {count} points, more than {MOST_POINTS}: take larger steps, or several sweeps"
            )
        _check_settings(sweep)
        values: list[tuple] = []
        work: list[int] = []
        left_out: dict[str, int] = {}
        last = list(product(*sweep.varied.values()))
        jobs = _Jobs(sweep)
        for kernel in kernels:
            for platform in sweep.platforms:
                for texts in product(*(texts for _, texts in sweep.overrides)):
                    for dtype, ranks, size, cores in product(
                        sweep.dtypes, sweep.ranks, sweep.sizes, sweep.cores
                    ):
                        cost, problem = jobs.check(kernel, platform, texts, dtype, ranks, size, cores)
                        if problem:
                            left_out[problem] = left_out.get(problem, 0) + len(last)
                            continue
                        here = (kernel, platform, texts, dtype, ranks, size, cores)
                        values += [(*here, *rest) for rest in last]
                        work += [cost] * len(last)
        if not values:
            raise ConfigError(f"the sweep has no points: {next(iter(left_out), 'an axis is empty')}")
        return cls(sweep, values, work, left_out)


class _Jobs:
    """Checks points, and remembers what many of them share."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self._platforms: dict[tuple, Any] = {}
        self._built: set[tuple] = set()
        self._moved: dict[tuple, float] = {}

    def check(self, kernel, platform_name, texts, dtype, ranks, size, cores) -> tuple[int, str | None]:
        """About how many operations the point takes, or why its algorithm cannot do it.

        Raises:
            ConfigError: nobody could do it.
        """
        platform = self._platform(platform_name, texts)
        self._fits(platform, platform_name, texts, ranks)
        form = find(*kernel)
        kind = element(dtype)
        point = Point(kernel[1], ranks, size, kernel[0], dtype, cores)
        if ranks < 2 or size <= 0 or size % kind.itemsize or (cores is not None and cores < 1):
            job_for(point, platform)  # says what is wrong
        several = platform.kernel.cores if cores is None else cores
        job = Job(ranks, size // kind.itemsize, kind, several, platform.kernel.tile)
        problem = form.restriction(job)
        if problem:
            return 0, f"{kernel[0]} {kernel[1]}: {problem.rpartition(', got')[0] or problem}"
        job_for(point, platform)
        check_memory(form, job, platform)
        moved = self._per_payload(form, ranks) * size
        tiles = moved / min(job.tile_bytes or _TILE, _TILE)
        return int(ranks * (3 * tiles + job.cores * (4 * ranks + 8))), None

    def _platform(self, name: str, texts: tuple[str, ...]):
        found = self._platforms.get((name, texts))
        if found is None:
            overrides = {
                **self.sweep.config.platform_overrides,
                **dict(zip(self.sweep.keys, texts, strict=True)),
            }
            found = self._platforms[name, texts] = load_platform(name, overrides)
        return found

    def _fits(self, platform, name: str, texts, ranks: int) -> None:
        if (name, texts, ranks) in self._built:
            return
        place = self.sweep.config.place
        if place is not None and len(place) != ranks:
            raise ConfigError(f"--place must name one device for each of the {ranks} ranks, got {len(place)}")
        build_topology(platform, max(place) + 1 if place else max(ranks, 1))
        self._built.add((name, texts, ranks))

    def _per_payload(self, form, ranks: int) -> float:
        """Remote bytes of a rank ÷ N."""
        key = (form.collective, form.name, ranks)
        if key not in self._moved:
            probe = Job(ranks, 32 * ranks, element("fp32"))
            self._moved[key] = max(form.remote_bytes(probe), default=0) / probe.nbytes
        return self._moved[key]


def _check_settings(sweep: Sweep) -> None:
    platform = load_platform(sweep.platforms[0], dict(sweep.config.platform_overrides))
    for setting in setting_axes():
        for value in sweep.varied.get(setting.name, ()):
            replace(sweep.config, **{setting.name: value})
            setting.resolve(value, max(sweep.ranks), platform)


def describe(plan: Plan) -> str:
    """The extent of a sweep in one line."""
    sweep = plan.sweep
    sizes = f"{format_size(min(sweep.sizes))} to {format_size(max(sweep.sizes))}"
    return f"{len(plan)} points: ranks {min(sweep.ranks)} to {max(sweep.ranks)}, {sizes} per rank"
