"""What the elements of a result are made of: which elements of which ranks, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from a2a3sim.checks.mismatch.slices import Slice

__all__ = ["MIXED", "NONE", "Contributions", "Provenance", "copied", "predict", "share"]

NONE, MIXED = -1, -2  # instead of an element's number: no contribution; several different elements


@dataclass
class Contributions:
    """One argument that the program wrote.

    Attributes:
        slices: its parts by rank.
        counts: how often each source contributes to each element, [element, source]; a factor where it is
            scaled.
        index: which element of the source, `NONE` or `MIXED`.
        constant: what stands there when all inputs are zero.
        written: whether anything was stored there at all.
        fresh: it depends on memory that nobody wrote.
        known: the counts explain what the program does with other inputs.
    """

    name: str
    slices: list[Slice]
    counts: np.ndarray = field(repr=False)
    index: np.ndarray = field(repr=False)
    constant: np.ndarray = field(repr=False)
    written: np.ndarray = field(repr=False)
    fresh: np.ndarray = field(repr=False)
    known: np.ndarray = field(repr=False)


@dataclass
class Provenance:
    """What the results of a call are made of.

    Attributes:
        sources: the slices of the inputs.
        outputs: by argument.
        combine: ``sum`` or ``maximum``.
        runs: repetitions that it took.
        obstacle: why nothing can be said, or empty.
    """

    sources: list[Slice] = field(default_factory=list)
    outputs: dict[str, Contributions] = field(default_factory=dict)
    combine: str = "sum"
    runs: int = 0
    obstacle: str = ""


def copied(found: dict[str, Contributions]) -> dict[str, Contributions]:
    return {
        name: replace(c, counts=c.counts.copy(), index=c.index.copy(), known=c.known.copy())
        for name, c in found.items()
    }


def share(found: dict[str, Contributions]) -> float:
    """How much of what was written is explained."""
    written = sum(int(c.written.sum()) for c in found.values())
    return sum(int(c.known.sum()) for c in found.values()) / written if written else 1.0


def predict(c: Contributions, values: Sequence[np.ndarray], combine: str = "sum") -> np.ndarray:
    """What stands in each element if the sources hold ``values``; NaN where unknown elements contribute."""
    result = c.constant.copy()
    for k, value in enumerate(values):
        index, counts = c.index[:, k], c.counts[:, k].astype(np.float64)
        held = np.asarray(value, np.float64)[np.maximum(index, 0)]
        part = np.where(index == MIXED, np.nan, np.where(index == NONE, 0, held * counts))
        result = np.maximum(result, part) if combine == "maximum" else result + part
    return result
