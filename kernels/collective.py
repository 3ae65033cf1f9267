"""What a shipped kernel states about itself, beside its code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from a2a3sim.kernels.partition import ALIGNMENT
from a2a3sim.language import DataType, Program

__all__ = ["Collective", "Job", "Transfer"]


@dataclass(frozen=True)
class Job:
    """One collective to run.

    Args:
        ranks: P.
        count: elements per rank that the algorithm's N counts (all-reduce: the slice of one rank).
        dtype: element type.
        cores: cores per device that share the work.
        tile_bytes: largest tile, None for one tile per piece of work.
    """

    ranks: int
    count: int
    dtype: DataType
    cores: int = 1
    tile_bytes: int | None = None

    @property
    def nbytes(self) -> int:
        """N, bytes per rank."""
        return self.count * self.dtype.itemsize

    @property
    def tile(self) -> int | None:
        """Largest tile in elements, whole 32-byte granules."""
        if self.tile_bytes is None:
            return None
        return max(ALIGNMENT, self.tile_bytes // ALIGNMENT * ALIGNMENT) // self.dtype.itemsize


class Transfer(NamedTuple):
    """Payload that one rank moves from or to another's memory."""

    rank: int  # whose core issues it
    peer: int
    nbytes: int
    write: bool = False


@dataclass(frozen=True)
class Collective:
    """A collective algorithm: a program in the kernel language and its closed forms.

    Attributes:
        collective, name: as on the command line (``allreduce``, ``two_phase``).
        title: one line for people.
        build: the program for a job.
        shapes: (input shape, output shape) of one rank for a job.
        reference: what each rank must hold, in numpy, in the kernel's own order of additions; takes the
            inputs of all ranks.
        transfers: every remote transfer of the algorithm, summed per pair.
        formula: remote bytes per rank as people write it, for chunks of equal size.
        rounds, barriers: longest chain of dependent remote transfers; barriers per rank.
        latencies: one-way latencies on the shortest chain from start to end.
        ideal_ps: exact duration on ``ideal`` (link rate in B/s, latency in ps), None where it has no closed form.
        restriction: why a job cannot run, or None.
        inplace: names of arguments that are both input and output.
    """

    collective: str
    name: str
    title: str
    build: Callable[[Job], Program]
    shapes: Callable[[Job], tuple[tuple[int, ...], tuple[int, ...]]]
    reference: Callable[[Job, Sequence[np.ndarray]], list[np.ndarray]]
    transfers: Callable[[Job], list[Transfer]]
    formula: str
    rounds: Callable[[Job], int]
    barriers: Callable[[Job], int]
    latencies: Callable[[Job], int]
    ideal_ps: Callable[[Job, int, int], int] | None = None
    restriction: Callable[[Job], str | None] = lambda job: None

    def remote_bytes(self, job: Job) -> list[int]:
        """Remote bytes that each rank moves."""
        moved = [0] * job.ranks
        for transfer in self.transfers(job):
            moved[transfer.rank] += transfer.nbytes
        return moved
