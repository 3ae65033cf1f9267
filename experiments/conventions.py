"""Sizes and bandwidths as nccl-tests define them, for every collective.

``size`` is the larger of what a rank puts in and what it gets out, in bytes. The algorithm bandwidth is
size ÷ time; the bus bandwidth scales it by what a perfect algorithm must move over one rank's port, so that it
can be held against the hardware's peak whatever the number of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from a2a3sim import ConfigError
from a2a3sim.experiments.runner import MOVED
from a2a3sim.kernels import Collective, Job
from a2a3sim.language.types import as_dtype
from a2a3sim.units import PS_PER_S, format_size, nearest

__all__ = [
    "CONVENTIONS", "Convention", "algbw", "busbw", "convention", "element", "payload", "size_of", "title_of",
    "type_name",
]  # fmt: skip

#: Element types as nccl-tests print them; what NCCL lacks keeps its own name.
_TYPES = {"fp32": "float", "fp16": "half", "bf16": "bfloat16"}


@dataclass(frozen=True)
class Convention:
    """One collective in nccl-tests.

    Attributes:
        blocks: the size is P blocks and ``count`` is the elements of one (else of the whole array).
        redop, root: what the columns of these names show.
    """

    blocks: bool
    redop: str
    root: int

    def count(self, size: int, ranks: int, itemsize: int) -> int:
        """The column ``count``, elements."""
        return size // itemsize // (ranks if self.blocks else 1)


CONVENTIONS = {
    "allreduce": Convention(blocks=False, redop="sum", root=-1),
    "allgather": Convention(blocks=True, redop="none", root=-1),
    "reduce_scatter": Convention(blocks=True, redop="sum", root=-1),
    "all_to_all": Convention(blocks=True, redop="none", root=-1),
    "broadcast": Convention(blocks=False, redop="none", root=0),
}


def convention(collective: str) -> Convention:
    """The convention of a collective.

    Raises:
        ConfigError: unknown, with the nearest name.
    """
    if collective not in CONVENTIONS:
        known = ", ".join(CONVENTIONS)
        raise ConfigError(
            f"collective must be one of {known}, got {collective!r}{nearest(collective, CONVENTIONS)}"
        )
    return CONVENTIONS[collective]


def _bus_factor(collective: str, ranks: int) -> Fraction:
    if collective == "allreduce":
        return Fraction(2 * (ranks - 1), ranks)
    return Fraction(1) if collective == "broadcast" else Fraction(ranks - 1, ranks)


def algbw(size: int, time_ps: int) -> float:
    """Algorithm bandwidth in bytes/s: size ÷ time."""
    return size * PS_PER_S / time_ps if time_ps else float("inf")


def busbw(collective: str, ranks: int, size: int, time_ps: int) -> float:
    """Bus bandwidth in bytes/s: all-reduce 2(P-1)/P, broadcast 1, all others (P-1)/P times `algbw`."""
    return float(_bus_factor(collective, ranks)) * algbw(size, time_ps)


def title_of(collective: str) -> str:
    """A collective as people write it: ``all-reduce``."""
    return {"allreduce": "all-reduce", "allgather": "all-gather"}.get(
        collective, collective.replace("_", "-")
    )


def type_name(dtype: str) -> str:
    """An element type as nccl-tests print it."""
    return _TYPES.get(dtype, dtype)


def size_of(form: Collective, job: Job) -> int:
    """The size of a job: the larger of one rank's input and output, bytes."""
    return max(_elements(shape) for shape in form.shapes(job)) * job.dtype.itemsize


def element(dtype: str):
    """An element type that collectives work on.

    Raises:
        ConfigError: any other, with the nearest name.
    """
    if dtype not in MOVED:
        raise ConfigError(f"dtype must be one of {', '.join(MOVED)}, got {dtype!r}{nearest(dtype, MOVED)}")
    return as_dtype(dtype)


def payload(form: Collective, size: int, ranks: int, dtype) -> int:
    """N of the largest job of at most ``size`` bytes (as nccl-tests round down to whole blocks), 0 if there is none."""
    blocks = ranks if convention(form.collective).blocks else 1
    whole = size // (blocks * dtype.itemsize) * blocks * dtype.itemsize
    probe = Job(ranks, 32 * ranks, dtype)
    per_payload = Fraction(size_of(form, probe), probe.nbytes)  # P where N is one block, else 1
    found = whole / per_payload
    if found.denominator != 1:
        raise ConfigError(f"size: {format_size(size)} is no whole payload of {form.collective} {form.name}")
    return found.numerator


def _elements(shape) -> int:
    product = 1
    for extent in shape:
        product *= extent
    return product
