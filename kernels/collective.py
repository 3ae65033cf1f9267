"""What a shipped kernel states about itself, beside its code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy.typing as npt

from a2a3sim.errors import ConfigError
from a2a3sim.kernels.partition import ALIGNMENT, Part, Piece, padded, split, stripes, tiles
from a2a3sim.language import DataType, Program

__all__ = [
    "SHAPES", "Collective", "Job", "Slice", "Slices", "Transfer", "all_pairs", "power_of_two", "transfer_ps", "uniform",
]  # fmt: skip

Slice: TypeAlias = npt.NDArray[Any]  # what one rank puts in, or gets out
Slices: TypeAlias = Sequence[Slice]  # by rank

#: (input shape, output shape) of one rank, by collective, for P ranks and ``count`` elements.
SHAPES: dict[str, Callable[[int, int], tuple[tuple[int, int], tuple[int, int]]]] = {
    "allreduce": lambda ranks, count: ((1, count), (1, count)),
    "allgather": lambda ranks, count: ((1, count), (ranks, count)),
    "reduce_scatter": lambda ranks, count: ((ranks, count), (1, count)),
    "broadcast": lambda ranks, count: ((1, count), (1, count)),
    "all_to_all": lambda ranks, count: ((ranks, count), (ranks, count)),
}


@dataclass(frozen=True)
class Job:
    """One collective to run.

    Args:
        ranks: P.
        count: elements of one row of N bytes. All-reduce and broadcast: what a rank puts in and gets out;
            all-gather: what a rank puts in (it gets P rows); reduce-scatter: what a rank gets out (it puts in
            P rows); all-to-all: the block for one peer (P rows in and out).
        dtype: element type.
        cores: cores per device that share the work; each takes a stripe of every chunk.
        tile_bytes: largest tile, None for one tile per piece of work. A kernel keeps at most five alive.
        group: ranks of a group in hierarchical algorithms; consecutive ranks form one.
        root: whose data a broadcast distributes.

    Raises:
        ConfigError: fewer than two ranks, nothing to do, or no such root.
    """

    ranks: int
    count: int
    dtype: DataType
    cores: int = 1
    tile_bytes: int | None = None
    group: int = 2  # the dies of a package
    root: int = 0

    def __post_init__(self) -> None:
        for name, least in (("ranks", 2), ("count", 1), ("cores", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not 0 <= self.root < self.ranks:
            raise ConfigError(f"root must be a rank from 0 to {self.ranks - 1}, got {self.root}")

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """N, bytes of one row."""
        return self.count * self.itemsize

    @property
    def row(self) -> int:
        """Elements of a row of N bytes in a window of several: whole 32-byte granules."""
        return padded(self.count, self.itemsize)

    @property
    def tile(self) -> int | None:
        """Largest tile in elements, whole 32-byte granules."""
        if self.tile_bytes is None:
            return None
        return max(ALIGNMENT, self.tile_bytes // ALIGNMENT * ALIGNMENT) // self.itemsize

    @property
    def staging(self) -> dict[str, Any]:
        """How a put cuts its copy: two staging tiles of the largest size, row by row."""
        return {"chunk_rows": 1, "chunk_cols": self.tile or self.count, "pipeline": True}

    def tiles(self, part: Part) -> list[Piece]:
        """A part of a row, tile by tile."""
        return tiles(part, self.tile, self.itemsize)

    def parts(self) -> list[Part]:
        """Each core's part of a row."""
        return split(self.count, self.cores, self.itemsize)

    def stripes(self) -> list[list[Part]]:
        """Each core's stripe of a row, cut into one chunk per rank."""
        return stripes(self.count, self.cores, self.ranks, self.itemsize)


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
        reference: what each rank must hold, in numpy, in the kernel's own order of additions; takes the
            inputs of all ranks.
        transfers: every remote transfer of the algorithm, summed per pair and step.
        formula: remote bytes per rank as people write it, for chunks of equal size.
        rounds: longest chain of remote transfers of which each needs the one before.
        barriers: runs of consecutive waits of the core that has most of them.
        latencies: one-way latencies on the longest chain of dependent signals, requests and data, without
            acknowledgements: no schedule and no fence mode is faster.
        ideal_ps: exact duration on ``ideal`` (link rate in B/s, latency in ps), None where it has no closed
            form (pieces of unequal size, or more than one tile per piece).
        restriction: why a job cannot run, or None.
    """

    collective: str
    name: str
    title: str
    build: Callable[[Job], Program]
    reference: Callable[[Job, Slices], list[Slice]]
    transfers: Callable[[Job], list[Transfer]]
    formula: str
    rounds: Callable[[Job], int]
    barriers: Callable[[Job], int]
    latencies: Callable[[Job], int]
    ideal_ps: Callable[[Job, int, int], int | None]
    restriction: Callable[[Job], str | None] = lambda job: None

    def shapes(self, job: Job) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(input shape, output shape) of one rank."""
        return SHAPES[self.collective](job.ranks, job.count)

    def remote_bytes(self, job: Job) -> list[int]:
        """Remote bytes that each rank moves."""
        moved = [0] * job.ranks
        for transfer in self.transfers(job):
            moved[transfer.rank] += transfer.nbytes
        return moved


def uniform(job: Job, work: Iterable[list[Part]]) -> int | None:
    """Bytes that all cores together move at once, if every move of every working core has the same size.

    Args:
        work: for each core the parts that it moves one after the other.
    """
    busy = [parts for parts in work if any(p.size for p in parts)]
    sizes = {p.size for parts in busy for p in parts}
    if len(sizes) != 1 or (job.tile is not None and max(sizes) > job.tile):
        return None
    return len(busy) * sizes.pop() * job.itemsize


def all_pairs(job: Job) -> list[Transfer]:
    """N bytes of every peer's for every rank."""
    ranks = range(job.ranks)
    return [Transfer(rank, peer, job.nbytes) for rank in ranks for peer in ranks if peer != rank]


def transfer_ps(nbytes: int, rate: int) -> int:
    """Bytes on a free link, ps."""
    return -(-nbytes * 10**12 // rate)


def power_of_two(job: Job) -> str | None:
    """The restriction of algorithms that pair ranks by the bits of their number."""
    if job.ranks & (job.ranks - 1) == 0:
        return None
    return f"the number of ranks must be a power of two, got {job.ranks}"
