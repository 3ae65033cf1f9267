"""A script under many schedules: launch skews, link delays, slow ranks and tie orders, fixed by seeds."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from a2a3sim import A2A3Error, ConfigError, RunConfig, RunResult
from a2a3sim.experiments.sweep_executors import executor
from a2a3sim.language.types import as_dtype
from a2a3sim.result import Finding
from a2a3sim.run import TOLERANCES, Session, session

__all__ = ["Observed", "Schedule", "Stress", "finding_key", "schedule_of", "stress_script"]

_SKEWS = (0, 0.25, 1.0, 4.0)  # widths of the launch skew, in times of the run; 0 is the platform's own
_JITTERS = (1, 2, 4, 8)  # most by which links' latencies are stretched
_SLOW = (2, 5, 20)  # by how much one rank is slower, in half of the schedules
_KEPT_BYTES = 1 << 26  # results of the first run that the others are compared with


@dataclass(frozen=True)
class Schedule:
    """One way in which a run may go.

    Attributes:
        settings: RunConfig fields, the seed among them.
    """

    seed: int
    settings: dict[str, Any] = field(hash=False)

    @property
    def flags(self) -> list[str]:
        """The flags of `a2a3sim run` that reproduce it."""
        return RunConfig.flags(self.settings)


def schedule_of(seed: int, kernel_ps: int, ranks: int, fixed: Mapping[str, Any] = {}) -> Schedule:
    """The schedule of a seed: 0 is the platform's own, the others stretch what a machine may stretch.

    Args:
        kernel_ps: how long the run takes by itself.
        fixed: fields that the user has fixed; they are not explored.
    """
    settings: dict[str, Any] = {"seed": seed}
    if seed == 0:
        return Schedule(seed, settings)
    draw = np.random.Generator(np.random.Philox(key=np.array([seed, 0x5CED], np.uint64)))
    skew, jitter = _SKEWS[draw.integers(len(_SKEWS))], _JITTERS[draw.integers(len(_JITTERS))]
    rank, slow, some = int(draw.integers(ranks)), _SLOW[draw.integers(len(_SLOW))], bool(draw.integers(2))
    if skew and "skew" not in fixed:
        settings["skew"] = f"{max(round(skew * kernel_ps / 1000), 1)}ns"
    if jitter > 1 and "jitter" not in fixed:
        settings["jitter"] = f"{jitter}x"
    if some and "slow" not in fixed:
        settings["slow"] = {rank: f"{slow}x"}
    return Schedule(seed, settings)


@dataclass
class Observed:
    """What a script did under one schedule.

    Attributes:
        wrong: in words, what is wrong with its result; empty if nothing is.
        findings: by `finding_key`.
    """

    schedule: Schedule
    status: int
    names: list[str] = field(default_factory=list)
    times_ps: list[int] = field(default_factory=list)
    wrong: str = ""
    findings: dict[tuple, Finding] = field(default_factory=dict)

    def as_row(self, command: str) -> dict[str, Any]:
        """The row of the JSON report."""
        settings = self.schedule.settings
        return {
            "seed": self.schedule.seed,
            "skew": settings.get("skew"),
            "jitter": settings.get("jitter"),
            "slow": {str(rank): factor for rank, factor in settings.get("slow", {}).items()},
            "status": self.status,
            "kernel_ps": self.times_ps,
            "ok": not self.wrong,
            "wrong": self.wrong or None,
            "findings": sorted({f"{f.severity} {f.kind}" for f in self.findings.values()}),
            "command": command,
        }


def finding_key(finding: Finding) -> tuple:
    """What tells findings apart, whatever the schedule: kind, severity and lines; not RAW against WAR."""
    lines = tuple(sorted({(s.file, s.line) for s in finding.sites}))
    where = finding.where if isinstance(finding.where, dict) else {}
    return finding.kind, finding.severity, lines, str(where.get("memory")), finding.suppressed


@dataclass
class Stress:
    """All schedules of one script, the one of seed 0 first if it is among them.

    Attributes:
        runs: the results of the first run of the script, on the machine's own schedule.
        base: that run's schedule and outcome.
    """

    base: Observed
    runs: list[RunResult]
    observed: list[Observed]

    @property
    def wrong(self) -> list[Observed]:
        """Schedules with a wrong result, or that did not end."""
        return [o for o in self.observed if o.wrong]

    def findings(self) -> dict[tuple, tuple[Finding, int]]:
        """Every finding of any schedule, and under how many it was found."""
        found: dict[tuple, tuple[Finding, int]] = {}
        for o in self.observed:
            for key, finding in o.findings.items():
                first, count = found.get(key, (finding, 0))
                found[key] = first, count + 1
        return found

    def times(self) -> Iterator[tuple[str, list[int]]]:
        """Times of each run that the script makes, over the schedules in which it makes as many as first."""
        whole = [
            o
            for o in self.observed
            if len(o.times_ps) == len(self.base.times_ps) and not o.wrong.startswith("ends")
        ]
        for k, name in enumerate(self.base.names):
            values = [o.times_ps[k] for o in whole]
            if values:
                yield (f"{name} #{k + 1}" if len(self.base.names) > 1 else name), values


def stress_script(
    script: str,
    args: Sequence[str],
    forced: Mapping[str, Any],
    seeds: Sequence[int],
    jobs: int = 1,
    suppressions=None,
    progress: Callable[[int, int], None] | None = None,
    look: Callable | None = None,
) -> Stress:
    """Run a script under the schedules of some seeds.

    Args:
        forced: RunConfig fields that the user has fixed.
        jobs: processes.
        suppressions: which findings are accepted.
        progress: called with how many schedules are done, of how many.
        look: called with (program, result, trace) for each run of the first schedule.

    Raises:
        ConfigError: the script runs no program.
    """
    own = {k: v for k, v in forced.items() if k != "seed"}
    runs: list[RunResult] = []
    first: list[dict] = []

    def observe(program, result, trace) -> None:
        if look is not None:
            look(program, result, trace)
        runs.append(result)
        first.append(_left(program.last_call))

    with tempfile.TemporaryDirectory() as scratch, _own_build_directory(scratch):
        base = _explore(script, args, own, Schedule(0, {"seed": 0}), suppressions, observe=observe)
        if not runs:
            if base.status == 2:
                return Stress(base, [], [base])
            raise ConfigError(f"{script} ran no compiled program: there is nothing to stress")
        kept = Path(scratch) / "first.pickle"
        kept.write_bytes(pickle.dumps(first))
        kernel_ps, ranks = max(run.kernel_ps for run in runs), min(run.ranks for run in runs)
        observed = {0: base} if 0 in seeds else {}
        left = [seed for seed in seeds if seed not in observed]
        with executor(min(jobs, max(len(left), 1))) as (pool, _):
            waiting = [
                pool.submit(
                    _explore,
                    script,
                    list(args),
                    own,
                    schedule_of(seed, kernel_ps, ranks, own),
                    suppressions,
                    str(kept),
                )
                for seed in left
            ]
            for future in as_completed(waiting):
                one = future.result()
                observed[one.schedule.seed] = one
                if progress is not None:
                    progress(len(observed), len(seeds))
    return Stress(base, runs, [observed[seed] for seed in seeds])


@contextlib.contextmanager
def _own_build_directory(scratch: str) -> Iterator[None]:
    """Compilations of all schedules go where they are thrown away."""
    before = os.environ.get("PYPTO_PROG_BUILD_DIR")
    os.environ["PYPTO_PROG_BUILD_DIR"] = str(Path(scratch) / "build")
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYPTO_PROG_BUILD_DIR"]
        else:
            os.environ["PYPTO_PROG_BUILD_DIR"] = before


def _explore(
    script: str,
    args: Sequence[str],
    own: Mapping[str, Any],
    schedule: Schedule,
    suppressions=None,
    kept: str | None = None,
    observe: Callable | None = None,
) -> Observed:
    """Run the script under one schedule; ``kept`` names the file with the results of the first run."""
    from a2a3sim.pypto import run_script

    seen = Observed(schedule, 0)
    first = _first(kept) if kept is not None else []
    problems: list[str] = []

    def note(program, result, trace) -> None:
        number = len(seen.names)
        seen.names.append(result.program)
        seen.times_ps.append(result.kernel_ps)
        seen.findings |= {finding_key(f): f for f in result.findings}
        if result.numerics is not None and not result.numerics.ok:
            problems.append(result.numerics.explanation.partition("; ")[0])
        elif result.numerics is None and number < len(first):
            problems.extend(_differences(first[number], _left(program.last_call)))
        if observe is not None:
            observe(program, result, trace)

    out, err = io.StringIO(), io.StringIO()
    forced = {**own, **schedule.settings}
    imposed = Session(forced, [note], keep_calls=True, suppressions=suppressions, explains=kept is None)
    with session(imposed), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            seen.status = run_script(script, list(args))
        except ConfigError:
            raise
        except A2A3Error as error:
            seen.status = 1
            problems.insert(0, f"ends with {str(error).partition(chr(10))[0]}")
    if seen.status and not problems:
        last = [line for line in (*err.getvalue().splitlines(), *out.getvalue().splitlines()) if line.strip()]
        problems.append(f"the script exits with {seen.status}" + (f": {last[0]}" if last else ""))
    seen.wrong = "; ".join(problems)
    return seen


def _left(call) -> dict[str, Any]:
    """What a call left, and a number for what it was given; empty where that is not to be had."""
    if call is None or call.obstacle or not call.arguments:
        return {}
    outputs = {a.name: a.array().copy() for a in call.arguments if a.direction != "in"}
    if sum(array.nbytes for array in outputs.values()) > _KEPT_BYTES:
        return {}
    given = [crc32(np.ascontiguousarray(a.before).tobytes()) for a in call.arguments]
    return {"given": given, "outputs": outputs}


@lru_cache(maxsize=1)
def _first(kept: str) -> list[dict]:
    return pickle.loads(Path(kept).read_bytes())


def _differences(first: dict, now: dict) -> Iterator[str]:
    """Results that differ from the first schedule's although the inputs are the same, beyond rounding."""
    if not first or not now or first["given"] != now["given"]:
        return
    for name, was in first["outputs"].items():
        got = now["outputs"][name]
        if was.tobytes() == got.tobytes():
            continue
        tolerance = TOLERANCES.get(as_dtype(was.dtype).name, 0.0)
        a, b = got.astype(np.float64), was.astype(np.float64)
        with np.errstate(all="ignore"):
            bad = ~(np.abs(a - b) <= tolerance * (1 + np.abs(b))) & ~(a == b) & ~(np.isnan(a) & np.isnan(b))
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            yield (
                f"{name}: {int(bad.sum())} of {bad.size} elements differ from those on the machine's own "
                f"schedule, first at {list(at)}: {got[at]} != {was[at]}"
            )
