"""Several all-reduces on the same input and machine: the cost card and the two pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from a2a3sim import RunConfig, RunResult
from a2a3sim.experiments.runner import Outcome, Point, run_point
from a2a3sim.kernels import Job, find
from a2a3sim.reports import (
    ClosedForm,
    cost_card,
    finding_lines,
    finding_title,
    links_line,
    typical,
    verdict_lines,
)
from a2a3sim.units import format_size

__all__ = ["Comparison", "draw"]

_RANKS = (2, 4, 8, 16)  # of the traffic picture
_WIDTH = 110


@dataclass(frozen=True)
class Comparison:
    """Algorithms side by side; each with one outcome per seed."""

    outcomes: dict[str, list[Outcome]]
    default_cores: bool = True

    @classmethod
    def run(
        cls,
        algorithms: Sequence[str],
        labels: Sequence[int],
        nbytes: int,
        dtype: str,
        cores: int | None,
        config: RunConfig,
        seeds: Sequence[int],
    ) -> Comparison:
        """Run every algorithm with every seed.

        Raises:
            ConfigError: what cannot be run, before anything has been.
        """
        for algorithm in algorithms:
            find("allreduce", algorithm)
        outcomes = {
            algorithm: [
                run_point(
                    Point(
                        algorithm,
                        len(labels),
                        nbytes,
                        dtype=dtype,
                        cores=cores,
                        config=config.with_(seed=seed),
                        labels=labels,
                    )
                )
                for seed in seeds
            ]
            for algorithm in algorithms
        }
        return cls(outcomes, cores is None)

    @property
    def runs(self) -> list[RunResult]:
        """Every result, algorithm by algorithm."""
        return [o.result for group in self.outcomes.values() for o in group]

    @property
    def typical(self) -> dict[str, Outcome]:
        """The outcome with the median time of each algorithm."""
        chosen = {}
        for name, group in self.outcomes.items():
            run = typical([o.result for o in group])
            chosen[name] = next(o for o in group if o.result is run)
        return chosen

    def report(self) -> Iterator:
        """What people read: the cost card and the findings."""
        first = next(iter(self.outcomes.values()))[0]
        job = first.job
        forms = {
            name: ClosedForm(group[0].form.formula, group[0].closed_form_bytes)
            for name, group in self.outcomes.items()
        }
        title = (
            f"all-reduce of {format_size(job.nbytes)} {job.dtype.name} on each of {job.ranks} ranks, "
            f"{job.cores} core{'s' if job.cores != 1 else ''} a device"
        )
        yield cost_card([[o.result for o in group] for group in self.outcomes.values()], forms, title)
        for name, outcome in self.typical.items():
            yield f"{name}: {links_line(outcome.result)}"
        if self.default_cores and job.cores != 1:
            yield "Cores: enough that the fabric is compared, not one core; --cores 1 shows a single one."
        yield from self._verdicts()
        yield "Bound: shortest latency chain + the largest, over capacities, of the bytes it must carry ÷ its rate."

    def _verdicts(self) -> Iterator:
        """Findings of each algorithm, of all seeds, and who is pronounced safe."""
        from rich.text import Text

        safe: dict[str, list[str]] = {}
        for name, group in self.outcomes.items():
            verdict, *others = {o.result.verdict for o in group}
            if verdict is not None and not others:
                safe.setdefault(verdict, []).append(name)
            told: dict[str, str] = {}
            for outcome in group:
                for finding in outcome.result.findings:
                    if (
                        finding.severity == "note"
                    ):  # nothing to repair in the shipped kernels: without their lines
                        words = f"{name}: {finding_title(finding)}: {finding.message}"
                        text = "\n".join(wrap(words, _WIDTH, subsequent_indent="    "))
                    else:
                        text = f"{name}: " + "\n".join(finding_lines([finding]))
                    told.setdefault(finding_title(finding), text)
            yield from map(Text, told.values())  # brackets in source lines are no markup
        for verdict, names in safe.items():
            yield Text("\n".join(verdict_lines(f"{', '.join(names)}: {verdict}")))


def draw(comparison: Comparison, folder: Path) -> list[Path]:
    """The timeline of all algorithms on one axis, and what they move over the number of ranks."""
    from a2a3sim.reports import TimelineRun, TrafficPoint, draw_timeline, draw_traffic, header, matrix_of

    chosen = comparison.typical
    job = next(iter(chosen.values())).job
    runs = [TimelineRun(o.trace, o.result, name) for name, o in chosen.items()]
    what = f"all-reduce of {format_size(job.nbytes)} {job.dtype.name} on {job.ranks} ranks"
    timeline = draw_timeline(runs, folder / "compare_timeline.png", what)
    points = []
    for name in chosen:
        for ranks in _RANKS:
            outcome = _bytes_on_ideal(name, ranks, job)
            if outcome is not None:
                points.append(TrafficPoint(name, ranks, outcome.result.max_remote_bytes))
    matrices = [matrix_of(o.result) for o in chosen.values()]
    head = header(next(iter(chosen.values())).result)
    traffic = draw_traffic(
        points, matrices, job.nbytes, folder / "compare_traffic.png", head, what, measured_on="ideal"
    )
    return [timeline, traffic]


def _bytes_on_ideal(algorithm: str, ranks: int, job: Job) -> Outcome | None:
    """Bytes do not depend on the machine, so the axis over ranks runs where any number of ranks is allowed."""
    form = find("allreduce", algorithm)
    if form.restriction(Job(ranks, job.count, job.dtype, 1)):
        return None
    config = RunConfig(machine="ideal", timing_only=True, checks=False)
    return run_point(Point(algorithm, ranks, job.nbytes, dtype=job.dtype.name, cores=1, config=config))
