"""What collectives make of their inputs: which elements of which ranks stand in each element of a result.

A law is a candidate for what a program was meant to do. `candidates` lists those that fit the shapes; `usual`
is what most elements of a result obey, seen from the rank that holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from a2a3sim.checks.contributions import MIXED, NONE, Contributions
from a2a3sim.checks.slices import Slice

__all__ = ["IN_PLACE", "Law", "Result", "agreement", "candidates", "hashed", "usual"]


IN_PLACE = "reduce-scatter in place"

_NAMED = 4  # slices named one by one


@dataclass
class Result:
    """One argument that a program wrote, by rank: ``[rank, element, source]``.

    Attributes:
        positions: element numbers in the argument, [rank, element].
        values: what stands there.
    """

    name: str
    ranks: list[int]
    shape: tuple[int, ...]
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
            positions=positions,
            counts=c.counts[positions],
            index=c.index[positions],
            constant=c.constant[positions],
            written=c.written[positions],
            fresh=c.fresh[positions],
            values=got[positions],
        )

    @property
    def size(self) -> int:
        """Elements of one rank."""
        return self.positions.shape[1]


@dataclass(frozen=True)
class Law:
    """Who should contribute what to each element of a result.

    Attributes:
        name: of the collective; empty for a law without one.
        words: what each rank holds, in a few words.
        counts, index: as those of a `Result`.
        holds: elements of which the law says something, [rank, element].
        offset: what stands beside the contributions, by rank.
    """

    name: str
    words: str
    counts: np.ndarray = field(repr=False)
    index: np.ndarray = field(repr=False)
    holds: np.ndarray = field(repr=False)
    offset: np.ndarray | None = field(default=None, repr=False)

    def scaled(self, factor: float) -> Law:
        """The same with all contributions multiplied: a mean instead of a sum."""
        return replace(
            self, words=f"{factor:.4g} times {self.words}", counts=self.counts * np.float32(factor)
        )


class _Maker:
    """Builds laws about one input tensor whose slices are alike."""

    def __init__(self, result: Result, sources: Sequence[Slice], name: str) -> None:
        self.result = result
        self.column = {s.rank: k for k, s in enumerate(sources) if s.name == name}
        self.sources = len(sources)
        self.needed = [s for s in sources if s.name == name]
        self.name = name

    def law(self, name: str, words: str, who, which, holds=None) -> Law:
        """``who(q, r)``: whether rank r contributes to rank q's elements; ``which(q, r)``: with which."""
        result = self.result
        shape = *result.positions.shape, self.sources
        counts, index = np.zeros(shape, np.float32), np.full(shape, NONE, np.int32)
        for a, q in enumerate(result.ranks):
            for r, k in self.column.items():
                there = np.broadcast_to(who(q, r), (result.size,))
                counts[a, :, k] = there
                index[a, :, k] = np.where(there, which(q, r), NONE)
        everywhere = np.ones(result.positions.shape, bool)
        return Law(name, words, counts, index, everywhere if holds is None else holds)

    def laws(self) -> Iterator[Law]:
        ranks, size, held = self.result.ranks, self.result.size, self.needed[0].size
        j, p = np.arange(size), len(ranks)
        place = {r: k for k, r in enumerate(ranks)}
        if size == held:
            yield self.law(
                "all-reduce", "the sum over all ranks, element by element", lambda q, r: True, lambda q, r: j
            )
        if size == held * p and p > 1:
            yield self.law(
                "all-gather",
                "rank r's slice in block r",
                lambda q, r: j // held == place[r],
                lambda q, r: j % held,
            )
        if size * p == held and p > 1:
            yield self.law(
                "reduce-scatter", "the sum over all ranks of the own block", lambda q, r: True,
                lambda q, r: place[q] * size + j,
            )  # fmt: skip
        if size != held:
            return
        if size % p == 0 and p > 1:
            block = size // p
            yield self.law(
                "all-to-all",
                "block q of rank r's slice in block r of rank q",
                lambda q, r: j // block == place[r],
                lambda q, r: place[q] * block + j % block,
            )
        own = np.zeros(self.result.positions.shape, bool)
        for k in range(p):
            own[k, k * (size // p) : (k + 1) * (size // p)] = True
        yield self.law(
            IN_PLACE, "the sum over all ranks in the own block", lambda q, r: True, lambda q, r: j, own
        )
        yield self.law("copy", "the own input", lambda q, r: r == q, lambda q, r: j)
        for root in ranks:
            yield self.law(
                f"broadcast of rank {root}",
                f"rank {root}'s slice",
                lambda q, r, root=root: r == root,
                lambda q, r: j,
            )
        for step in range(1, p):
            words = {1: "the left neighbour's slice", p - 1: "the right neighbour's slice"}.get(
                step, f"the slice of the rank {step} to the left"
            )
            yield self.law(
                f"shift by {step}",
                words,
                lambda q, r, step=step: place[r] == (place[q] - step) % p,
                lambda q, r: j,
            )


def candidates(result: Result, sources: Sequence[Slice]) -> Iterator[Law]:
    """The laws of the known collectives that the shapes allow, about each input tensor in turn."""
    for name in dict.fromkeys(s.name for s in sources):
        maker = _Maker(result, sources, name)
        alike = {s.shape for s in maker.needed}
        if len(alike) == 1 and [s.rank for s in maker.needed] == result.ranks:
            yield from maker.laws()


def usual(result: Result, sources: Sequence[Slice], among: np.ndarray) -> Law | None:
    """What most of the chosen elements obey: the same factors by distance of ranks and of elements; or None.

    Args:
        among: which elements are asked, [rank, element].
    """
    p = len(result.ranks)
    place = {r: k for k, r in enumerate(result.ranks)}
    if not among.any() or any(s.rank not in place or s.size != result.size for s in sources):
        return None
    # Columns by (tensor, distance of ranks): what an element looks like from its own rank.
    order = np.empty((p, len(sources)), int)
    names = list(dict.fromkeys(s.name for s in sources))
    for k, s in enumerate(sources):
        for q in range(p):
            order[q, names.index(s.name) * p + (place[s.rank] - q) % p] = k
    j = np.arange(result.size)[None, :, None]
    counts = np.take_along_axis(result.counts, order[:, None, :], axis=2)
    index = np.take_along_axis(result.index, order[:, None, :], axis=2)
    shift = np.where(index >= 0, index - j, 0)
    keys = hashed(counts, shift)
    _, first, number = np.unique(keys[among], return_index=True, return_counts=True)
    most = int(number.argmax())
    if 2 * number[most] <= number.sum():
        return None
    q, e = (axis[first[most]] for axis in np.nonzero(among))
    if (index[q, e] == MIXED).any():
        return None
    wanted = np.broadcast_to(counts[q, e], counts.shape)
    where = np.where(wanted != 0, j + shift[q, e], NONE)
    back = np.argsort(order, axis=1)[:, None, :]
    law_counts, law_index = np.take_along_axis(wanted, back, axis=2), np.take_along_axis(where, back, axis=2)
    sizes = np.array([s.size for s in sources])
    holds = ((law_index < sizes) & (law_index >= NONE)).all(axis=2)
    return Law("", _described(counts[q, e], names, p), law_counts, law_index.astype(np.int32), holds)


def _described(counts: np.ndarray, names: list[str], p: int) -> str:
    if np.count_nonzero(counts) > _NAMED:
        return f"factors of {np.count_nonzero(counts)} slices, the same by distance of ranks"
    parts = []
    for k in np.flatnonzero(counts):
        tensor, distance = names[k // p], int(k % p)
        who = {0: "own", 1: "right neighbour's", p - 1: "left neighbour's"}.get(
            distance, f"rank+{distance}'s"
        )
        factor = "" if counts[k] == 1 else f"{counts[k]:.4g}·"
        parts.append(f"{factor}{who} {tensor}")
    return " + ".join(parts).replace("+ -", "- ") or "nothing of the inputs"


def agreement(result: Result, law: Law) -> float:
    """How much of what a law asks for is there, and of what is there it asks for: 1 where all is right."""
    same = (
        (result.counts != 0) & np.isclose(result.counts, law.counts, rtol=1e-3) & (result.index == law.index)
    )
    either = (result.counts != 0) | (law.counts != 0)
    asked = law.holds
    with np.errstate(all="ignore"):
        share = np.where(either.any(axis=2), same.sum(axis=2) / either.sum(axis=2), 1.0)
    return float(np.where(result.written, share, 0.0)[asked].mean()) if asked.any() else 0.0


def hashed(counts: np.ndarray, index: np.ndarray) -> np.ndarray:
    """A number for each row of counts and element numbers; equal rows have equal ones."""
    generator = np.random.Generator(np.random.Philox(11))
    one, other = (
        generator.integers(1, 1 << 62, counts.shape[-1], np.uint64) | np.uint64(1) for _ in range(2)
    )
    scaled = np.rint(counts * 1024.0).astype(np.int64).view(np.uint64)
    where = np.where(counts != 0, index, NONE).astype(np.int64).view(np.uint64)
    with np.errstate(all="ignore"):
        return (scaled * one).sum(axis=-1, dtype=np.uint64) ^ (where * other).sum(axis=-1, dtype=np.uint64)
