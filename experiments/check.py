"""Numerics of the shipped collectives against numpy, over ranks and element types.

The inputs of a run are of two kinds, alternating element by element:

* whole numbers so small that every sum of them is exact in the element type, whatever the order. There the
  result must equal the exact sum. Where even ±1 from every rank could leave the range, nothing is called exact.
* random ones. Floats must stay within `tolerance` of the float64 sum; integers, which wrap as numpy's do, are
  held against the reference alone.

And every element must equal, bit for bit, numpy's sum in the kernel's own order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from a2a3sim import ConfigError, RunConfig, RunResult
from a2a3sim.experiments.conventions import convention, element
from a2a3sim.experiments.runner import MOVED, Outcome, Point, job_for, run_point
from a2a3sim.kernels import find
from a2a3sim.models import build_topology, load_platform

__all__ = [
    "COUNT", "Checked", "amplitude", "check_point", "dtypes_of", "mixed_inputs", "plan",
    "tolerance",
]  # fmt: skip

#: Elements per rank where none are asked for: not a multiple of anything a kernel cuts by.
COUNT = 203

_EXACT = {"fp32": 2**24, "fp16": 2**11, "bf16": 2**8}  # whole numbers up to here are exact
_ROUND = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}  # unit round-off
_SEED = 2027


@dataclass(frozen=True)
class Checked:
    """The verdict on one run.

    Attributes:
        wrong: elements that differ from numpy in the kernel's own order.
        exact: whether the exact sums were met; None where sums may leave the exact range.
        error, allowed: largest error of the random floats against float64 relative to Σ|x|, and the tolerance;
            None for integers.
    """

    collective: str
    algorithm: str
    ranks: int
    dtype: str
    wrong: int
    exact: bool | None
    error: float | None
    allowed: float | None
    result: RunResult

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        within = self.error is None or self.allowed is None or self.error <= self.allowed
        return self.wrong == 0 and self.exact is not False and within

    def as_dict(self) -> dict:
        """The verdict as a row of a report."""
        names = ("collective", "algorithm", "ranks", "dtype", "wrong", "exact", "error", "allowed")
        return {name: getattr(self, name) for name in names} | {"ok": self.ok}


def amplitude(dtype, ranks: int, adds: bool = True) -> int:
    """The largest whole number so that any sum of one from every rank is exact in the type; 0 if there is none."""
    limit = _EXACT[dtype.name] if dtype.floating else int(np.iinfo(dtype.numpy).max)
    return min(limit // ranks if adds else limit, 1000)


def tolerance(dtype, ranks: int) -> float:
    """Bound on |error| ÷ Σ|x| of a sum of P terms in any order: (P-1)·u / (1 - (P-1)·u), u the unit round-off."""
    spent = (ranks - 1) * _ROUND[dtype.name]
    return spent / (1 - spent) if spent < 1 else float("inf")


def mixed_inputs(shape, dtype, ranks: int) -> np.ndarray:
    """Even elements: whole numbers with exact sums; odd ones: random. The same in every process."""
    generator = np.random.Generator(np.random.Philox(_SEED))
    if dtype.floating:
        values = generator.standard_normal((ranks, *shape), np.float32).astype(dtype.numpy)
    else:
        info = np.iinfo(dtype.numpy)
        values = generator.integers(info.min, info.max, (ranks, *shape), dtype.numpy, endpoint=True)
    most = max(amplitude(dtype, ranks), 1)
    whole = generator.integers(-most, most, (ranks, *shape), np.int32, endpoint=True).astype(dtype.numpy)
    values[..., 0::2] = whole[..., 0::2]
    return values


def plan(
    collective: str,
    algorithms: Sequence[str],
    ranks: Sequence[int],
    dtypes: Sequence[str],
    count: int | None,
    cores: int | None,
    config: RunConfig,
) -> tuple[list[Point], dict[str, int]]:
    """The runs, algorithm by algorithm, and why some combinations are left out.

    Raises:
        ConfigError: a combination that nobody can run, or nothing is left.
    """
    platform = load_platform(config.machine or "a2", dict(config.platform_overrides))
    build_topology(platform, max(ranks))
    points: list[Point] = []
    left_out: dict[str, int] = {}
    for algorithm in algorithms:
        form = find(collective, algorithm)
        for dtype in dtypes:
            size = element(dtype).itemsize
            for several in ranks:
                point = _first_fitting(form, several, dtype, size, count, cores, config, platform, left_out)
                if point is not None:
                    points.append(point)
    if not points:
        raise ConfigError(f"nothing to check: {next(iter(left_out), 'no algorithm')}")
    return points, left_out


def _first_fitting(form, ranks, dtype, size, count, cores, config, platform, left_out) -> Point | None:
    """A ragged number of elements if the algorithm takes it, else the next multiple of what it may be cut by."""
    problems = []
    for elements in (COUNT, 32 * ranks) if count is None else (count,):
        point = Point(form.name, ranks, elements * size, form.collective, dtype, cores, config)
        try:
            job_for(point, platform)
            return point
        except ConfigError as error:
            problems.append(error)
    problem = problems[0]
    if str(problem).startswith(f"{form.collective} {form.name}: "):
        reason = str(problem).rpartition(", got")[0] or str(problem)
        left_out[reason] = left_out.get(reason, 0) + 1
        return None
    raise problem


def check_point(point: Point) -> tuple[Checked, Outcome]:
    """Run one combination on mixed inputs and judge its output."""
    outcome = run_point(point, mixed_inputs, keep_arrays=True)
    form, job = outcome.form, outcome.job
    inputs, outputs = outcome.arrays  # type: ignore[misc]  # kept, as asked
    adds = convention(form.collective).redop == "sum"
    exact, error = None, None
    true = _reference(form, job, list(inputs.astype(np.float64 if job.dtype.floating else np.int64)))
    got = outputs.astype(np.float64 if job.dtype.floating else np.int64)
    if not adds:
        exact = bool(np.array_equal(got, true))
    elif amplitude(job.dtype, job.ranks) >= 1:
        even = _even(form, job, inputs)
        exact = bool((got[even] == true[even]).all())
    if job.dtype.floating:
        scale = _reference(form, job, list(np.abs(inputs.astype(np.float64))))
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = np.where(scale > 0, np.abs(got - true) / scale, np.where(got == true, 0.0, np.inf))
        error = float(np.nan_to_num(relative, nan=np.inf).max(initial=0.0))
    numerics = outcome.result.numerics
    assert numerics is not None  # the run had bytes
    verdict = Checked(
        collective=form.collective,
        algorithm=form.name,
        ranks=job.ranks,
        dtype=job.dtype.name,
        wrong=numerics.wrong,
        exact=exact,
        error=error,
        allowed=(tolerance(job.dtype, job.ranks) if adds else 0.0) if job.dtype.floating else None,
        result=outcome.result,
    )
    return verdict, outcome


def _reference(form, job, inputs) -> np.ndarray:
    with np.errstate(all="ignore"):
        parts = form.reference(job, inputs)
    shape = form.shapes(job)[1]
    return np.stack([np.ascontiguousarray(part).reshape(shape) for part in parts])


def _even(form, job, inputs) -> np.ndarray:
    """Which output elements are sums of the whole-numbered inputs: those that the marks of the inputs add up to."""
    marks = np.zeros(inputs.shape, np.int64)
    marks[..., 0::2] = 1
    return _reference(form, job, list(marks)) == _reference(form, job, list(np.ones(inputs.shape, np.int64)))


def dtypes_of(text: Sequence[str]) -> list[str]:
    """Element types; ``all`` stands for every one that collectives work on.

    Raises:
        ConfigError: an unknown type.
    """
    if list(text) == ["all"]:
        return list(MOVED)
    return [element(name).name for name in text]
