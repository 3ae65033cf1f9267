"""Run one shipped collective on one machine and check its numbers: what every experiment is made of."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from a2a3sim import ConfigError, DistributedConfig, RunConfig, RunResult, ir, load_platform
from a2a3sim.kernels import Collective, Job, find
from a2a3sim.language import Program
from a2a3sim.language.types import as_dtype
from a2a3sim.models import Platform
from a2a3sim.result import Numerics
from a2a3sim.run import bound_ps, resolve
from a2a3sim.trace import Trace
from a2a3sim.units import format_size, nearest

MOVED = ("fp32", "fp16", "bf16", "int32", "int16", "int8")  # element types that collectives work on

__all__ = ["MOVED", "Outcome", "Point", "check_memory", "job_for", "make_inputs", "run_point"]


@dataclass(frozen=True)
class Point:
    """One run of a shipped collective.

    Args:
        nbytes: N, payload per rank in bytes, as `a2a3sim.kernels.collective.Job` counts it.
        cores: cores per device; None takes the platform's ``kernel.cores``.
        config: seed, skew, fences, overrides and the like.
        labels: device labels; None numbers them from 0.
    """

    algorithm: str
    ranks: int
    nbytes: int
    collective: str = "allreduce"
    dtype: str = "fp32"
    cores: int | None = None
    config: RunConfig = field(default_factory=RunConfig)
    labels: Sequence[int] | None = None


@dataclass(frozen=True)
class Outcome:
    """A finished point: its result, its trace, and the closed forms it is held against."""

    result: RunResult
    trace: Trace
    form: Collective
    job: Job
    arrays: tuple[np.ndarray, np.ndarray] | None = field(
        default=None, repr=False
    )  # inputs, outputs, if asked for

    @property
    def closed_form_bytes(self) -> int:
        """Remote bytes of the rank that must move most."""
        return max(self.form.remote_bytes(self.job))


def job_for(point: Point, platform: Platform) -> Job:
    """The job of a point on a platform.

    Raises:
        ConfigError: N is no whole number of elements, too few ranks, or the algorithm cannot do it.
    """
    if point.dtype not in MOVED:
        raise ConfigError(
            f"dtype must be one of {', '.join(MOVED)}, got {point.dtype!r}{nearest(point.dtype, MOVED)}"
        )
    dtype = as_dtype(point.dtype)
    if point.ranks < 2:
        raise ConfigError(f"a collective needs at least 2 devices, got {point.ranks}")
    if point.nbytes <= 0 or point.nbytes % dtype.itemsize:
        raise ConfigError(
            f"size must be a positive multiple of {dtype.itemsize} B ({dtype.name}), got {point.nbytes} B"
        )
    cores = platform.kernel.cores if point.cores is None else point.cores
    if cores < 1:
        raise ConfigError(f"cores must be at least 1, got {cores}")
    if platform.core.count is not None and cores > platform.core.count:
        raise ConfigError(f"cores must be at most {platform.core.count} on {platform.name}, got {cores}")
    job = Job(point.ranks, point.nbytes // dtype.itemsize, dtype, cores, platform.kernel.tile)
    problem = find(point.collective, point.algorithm).restriction(job)
    if problem:
        raise ConfigError(f"{point.collective} {point.algorithm}: {problem}")
    return job


def make_inputs(shape, dtype, ranks: int) -> np.ndarray:
    """The same input for every algorithm and machine: normal floats, or small integers, from a fixed generator."""
    generator = np.random.Generator(np.random.Philox(2026))
    if dtype.floating:
        return generator.standard_normal((ranks, *shape), np.float32).astype(dtype.numpy)
    return generator.integers(-9, 10, (ranks, *shape), np.int8).astype(dtype.numpy)


def run_point(
    point: Point, inputs: Callable[..., np.ndarray] = make_inputs, keep_arrays: bool = False
) -> Outcome:
    """Simulate a point; unless it is timing-only, compare bit for bit with numpy in the kernel's own order.

    Args:
        inputs: makes the inputs of all ranks from (shape of one rank, dtype, ranks).
        keep_arrays: keep inputs and outputs in the outcome.

    Raises:
        ConfigError: the point cannot be run.
    """
    form = find(point.collective, point.algorithm)
    config = point.config
    platform = load_platform(config.machine or "a2", dict(config.platform_overrides))
    job = job_for(point, platform)
    labels = list(point.labels) if point.labels is not None else list(range(point.ranks))
    settings = resolve(config.with_(machine=config.machine or "a2"), point.ranks)
    x_shape, y_shape = form.shapes(job)
    dtype = job.dtype
    check_memory(form, job, platform)
    x = (
        np.zeros((job.ranks, *x_shape), dtype.numpy)
        if config.timing_only
        else inputs(x_shape, dtype, job.ranks)
    )
    y = np.zeros((job.ranks, *y_shape), dtype.numpy)
    devices = DistributedConfig(device_ids=labels)
    program = ir.compile(_built(form.build, job), output_dir=_scratch().name, distributed_config=devices)
    program.facts = {
        "algorithm": point.algorithm,
        "bytes_per_rank": job.nbytes,
        "dtype": dtype.name,
        "bound": lambda _: bound_ps(
            form.transfers(job), form.latencies(job), platform, settings.topology(), settings.placement
        ),
    }
    program(x, y, config=config.with_(machine=config.machine or "a2", keep_trace=True))
    result, trace = program.last_run, program.last_trace
    assert result is not None and trace is not None  # the call is over
    if not config.timing_only:
        result = result.model_copy(update={"numerics": _numerics(form, job, x, y)})
    return Outcome(result, trace, form, job, (x, y) if keep_arrays else None)


@lru_cache(maxsize=16)
def _built(build: Callable[[Job], Program], job: Job) -> Program:
    """The program of a job; many points differ only in seed or machine."""
    return build(job)


@lru_cache(maxsize=1)
def _scratch() -> tempfile.TemporaryDirectory:
    """Where compilations may write; it goes with the process."""
    return tempfile.TemporaryDirectory(prefix="a2a3sim-")


def check_memory(form: Collective, job: Job, platform: Platform) -> None:
    """ConfigError if input, output and windows of one rank exceed its HBM (roughly: four slices)."""
    x_shape, y_shape = form.shapes(job)
    needed = 2 * (int(np.prod(x_shape)) + int(np.prod(y_shape))) * job.dtype.itemsize
    if platform.hbm.size is not None and needed > platform.hbm.size:
        raise ConfigError(
            f"size: {format_size(job.nbytes)} per rank needs about {format_size(needed)} of HBM, but a device of "
            f"{platform.name} has {format_size(platform.hbm.size)}"
        )


def _numerics(form: Collective, job: Job, x: np.ndarray, y: np.ndarray) -> Numerics:
    with np.errstate(all="ignore"):
        wanted = form.reference(job, list(x))
        exact = form.reference(job, list(x.astype(np.float64)))
    wrong, absolute, relative = 0, 0.0, 0.0
    for got, want, true in zip(y, wanted, exact, strict=True):
        word = np.dtype(f"u{job.dtype.itemsize}")
        want = np.ascontiguousarray(want).reshape(got.shape)
        wrong += int((got.view(word) != want.view(word)).sum())
        error = np.abs(got.astype(np.float64) - true.reshape(got.shape))
        absolute = max(absolute, float(error.max(initial=0.0)))
        scale = np.abs(true).max(initial=0.0)
        relative = max(relative, absolute / float(scale) if scale else 0.0)
    text = (
        "bit-equal to numpy in the kernel's own order"
        if wrong == 0
        else f"{wrong} elements differ from numpy"
    )
    return Numerics(
        ok=wrong == 0,
        wrong=wrong,
        max_abs_error=absolute,
        max_rel_error=relative,
        explanation=f"{text}; errors are against float64, relative to the largest element",
    )
