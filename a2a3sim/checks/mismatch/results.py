"""One argument that a program wrote, rank by rank: what stands there and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from a2a3sim.checks.mismatch.contributions import Contributions

__all__ = ["Result"]


@dataclass
class Result:
    """One argument that a program wrote, by rank: ``[rank, element, source]``.

    Attributes:
        size: elements of one rank.
        elements: which of them are here.
        positions: their numbers in the argument, [rank, element].
        values: what stands there.
    """

    name: str
    ranks: list[int]
    shape: tuple[int, ...]
    size: int
    elements: np.ndarray = field(repr=False)
    positions: np.ndarray = field(repr=False)
    counts: np.ndarray = field(repr=False)
    index: np.ndarray = field(repr=False)
    constant: np.ndarray = field(repr=False)
    written: np.ndarray = field(repr=False)
    fresh: np.ndarray = field(repr=False)
    values: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, c: Contributions, got: np.ndarray) -> Result | None:
        """None where the ranks' slices are not alike.

        Args:
            got: what the argument holds, flat.
        """
        parts = c.slices
        if not parts or any(p.rank is None or p.shape != parts[0].shape for p in parts):
            return None
        positions = np.stack([p.positions for p in parts])
        return cls(
            name=c.name,
            ranks=[p.rank for p in parts if p.rank is not None],
            shape=parts[0].shape,
            size=parts[0].size,
            elements=np.arange(parts[0].size),
            positions=positions,
            counts=c.counts[positions],
            index=c.index[positions],
            constant=c.constant[positions],
            written=c.written[positions],
            fresh=c.fresh[positions],
            values=got[positions],
        )

    def thinned(self, most: int) -> Result:
        """The same with no more than so many elements of each rank, the first and the last among them."""
        if len(self.elements) <= most:
            return self
        some = np.unique(np.linspace(0, len(self.elements) - 1, most).astype(int))
        parts = ("positions", "counts", "index", "constant", "written", "fresh", "values")
        return replace(
            self, elements=self.elements[some], **{name: getattr(self, name)[:, some] for name in parts}
        )
