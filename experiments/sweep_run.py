"""Running a sweep: points to an executor, rows to the journal, and at the end the output in one step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from a2a3sim import A2A3Error, ConfigError
from a2a3sim.experiments.sweep_executors import executor
from a2a3sim.experiments.sweep_journal import Journal, journal_path
from a2a3sim.experiments.sweep_output import check_output, write_rows
from a2a3sim.experiments.sweep_plan import Plan
from a2a3sim.experiments.sweep_rows import columns
from a2a3sim.experiments.sweep_worker import run_chunk

__all__ = ["Progress", "Ran", "run_sweep"]


class Progress(Protocol):
    """Who wants to know how far a sweep is."""

    def start(self, points: int, work: int, done_points: int, done_work: int) -> None: ...

    def advance(self, points: int, work: int) -> None: ...


@dataclass(frozen=True)
class Ran:
    """What a sweep took.

    Attributes:
        resumed: rows that an earlier run had left.
        wall_s: seconds from first to last point; ``busy_s`` of them simulating, summed over ``workers``.
    """

    path: Path
    rows: int
    resumed: int
    workers: int
    wall_s: float
    busy_s: float

    @property
    def share(self) -> float:
        """Part of the workers' time that was simulation, 0 to 1."""
        return self.busy_s / (self.wall_s * self.workers) if self.wall_s else 1.0


def run_sweep(
    plan: Plan,
    output: str | Path,
    *,
    jobs: int = 1,
    dask: str | None = None,
    restart: bool = False,
    progress: Progress | None = None,
) -> Ran:
    """Simulate what the journal does not hold yet, then write the output.

    The file is the same to the last byte whatever ``jobs``, ``dask``, and however often it was interrupted.

    Raises:
        ConfigError: the output cannot be written, or its journal belongs to another sweep.
        A2A3Error: a point failed; its rows before that are kept.
    """
    target = check_output(output)
    if jobs < 1:
        raise ConfigError(f"-j must be at least 1, got {jobs}")
    stated = plan.sweep.stated
    with Journal(journal_path(target), plan.sweep.about(), len(plan), restart) as journal:
        resumed = len(journal)
        todo = [number for number in range(len(plan)) if number not in journal]
        if progress is not None:
            done = sum(plan.work) - sum(plan.work[n] for n in todo)
            progress.start(len(plan), sum(plan.work), resumed, done)
        started, busy, workers = time.perf_counter(), 0.0, 1
        if todo:
            with executor(jobs, dask) as (pool, workers):
                for rows, seconds in _finished(plan, todo, stated, pool, workers, journal):
                    busy += seconds
                    if progress is not None:
                        progress.advance(len(rows), sum(plan.work[number] for number, _ in rows))
        wall = time.perf_counter() - started
        write_rows(target, columns(stated), journal.rows())
        journal.remove()
    return Ran(target, len(plan), resumed, workers, wall, busy)


def _finished(plan: Plan, todo, stated, pool, workers: int, journal: Journal) -> Iterator[tuple[list, float]]:
    """Rows as they come, in the journal already."""
    chunks = iter(plan.chunks(todo, workers))
    pending: set[Future] = set()
    try:
        while True:
            while len(pending) < (1 if workers == 1 else 2 * workers):
                chunk = next(chunks, None)
                if chunk is None:
                    break
                pending.add(
                    pool.submit(run_chunk, [(number, plan.point(number)) for number in chunk], stated)
                )
            if not pending:
                return
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                rows, seconds, failure = future.result()
                journal.add(rows)
                yield rows, seconds
                if failure is not None:
                    kind = ConfigError if failure.usage else A2A3Error
                    raise kind(f"{_named(plan, failure.number)}: {failure.message}")
    except BrokenExecutor:
        raise _lost(journal) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] == "distributed":
            raise _lost(journal) from None
        raise
    finally:
        for future in pending:
            future.cancel()


def _named(plan: Plan, number: int) -> str:
    point = plan.point(number)
    sets = "".join(f", {key}={value}" for key, value in point.config.platform_overrides.items())
    return (
        f"point {number + 1} of {len(plan)} ({point.collective} {point.algorithm} on {point.config.machine}, "
        f"{point.ranks} ranks, {point.nbytes} B {point.dtype}, seed {point.config.seed}{sets})"
    )


def _lost(journal: Journal) -> A2A3Error:
    return A2A3Error(
        f"a worker died, perhaps for lack of memory; {len(journal)} of {journal.total} rows are kept in {journal.path}: "
        f"the same command goes on from there (with a smaller -j, each point has more memory)"
    )
