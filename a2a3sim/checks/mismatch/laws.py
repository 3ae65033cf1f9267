"""What collectives make of their inputs: which elements of which ranks stand in each element of a result.

A law is a candidate for what a program was meant to do. `candidates` lists those that fit the shapes; `usual`
is what most elements of a result obey, seen from the rank that holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from a2a3sim.checks.mismatch.contributions import MIXED, NONE
from a2a3sim.checks.mismatch.results import Result
from a2a3sim.checks.mismatch.slices import Slice

__all__ = ["IN_PLACE", "Law", "agreement", "candidates", "hashed", "usual"]


IN_PLACE = "reduce-scatter in place"

_NAMED = 4  # slices named one by one


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
        self.column = {s.rank: k for k, s in enumerate(sources) if s.name == name and s.rank is not None}
        self.sources = len(sources)
        self.needed = [s for s in sources if s.name == name]
        self.name = name

    def law(
        self,
        name: str,
        words: str,
        who: Callable[[int, int, np.ndarray], np.ndarray | bool],
        which: Callable[[int, int, np.ndarray], np.ndarray],
        holds: Callable[[int, np.ndarray], np.ndarray] | None = None,
    ) -> Law:
        """A law by three questions about the elements ``j`` of rank q and the rank r.

        Args:
            who: whether r contributes to them.
            which: with which of its elements.
            holds: whether the law says something of them (q alone).
        """
        result = self.result
        j = result.elements
        shape = len(result.ranks), len(j), self.sources
        counts, index = np.zeros(shape, np.float32), np.full(shape, NONE, np.int32)
        held = np.ones(shape[:2], bool)
        for a, q in enumerate(result.ranks):
            if holds is not None:
                held[a] = holds(q, j)
            for r, k in self.column.items():
                there = np.broadcast_to(who(q, r, j), (len(j),))
                counts[a, :, k] = there
                index[a, :, k] = np.where(there, which(q, r, j), NONE)
        return Law(name, words, counts, index, held)

    def recipes(self) -> Iterator[Callable[[], Law]]:
        """What makes each law that the shapes allow."""
        ranks, size, held = self.result.ranks, self.result.size, self.needed[0].size
        p = len(ranks)
        place = {r: k for k, r in enumerate(ranks)}
        block = size // p
        law = partial(partial, self.law)
        if size == held:
            words = "the sum over all ranks, element by element"
            yield law("all-reduce", words, _always, _same)
        if size == held * p and p > 1:
            words = "rank r's slice in block r"
            yield law("all-gather", words, lambda q, r, j: j // held == place[r], lambda q, r, j: j % held)
        if size * p == held and p > 1:
            words = "the sum over all ranks of the own block"
            yield law("reduce-scatter", words, _always, lambda q, r, j: place[q] * size + j)
        if size != held:
            return
        if size % p == 0 and p > 1:
            words = "block q of rank r's slice in block r of rank q"
            yield law(
                "all-to-all",
                words,
                lambda q, r, j: j // block == place[r],
                lambda q, r, j: place[q] * block + j % block,
            )
        words = "the sum over all ranks in the own block"
        yield law(IN_PLACE, words, _always, _same, lambda q, j: j // max(block, 1) == place[q])
        yield law("copy", "the own input", lambda q, r, j: r == q, _same)
        for root in ranks:
            name, words = f"broadcast of rank {root}", f"rank {root}'s slice"
            yield law(name, words, lambda q, r, j, root=root: r == root, _same)
        sides = {1: "the left neighbour's slice", p - 1: "the right neighbour's slice"}
        for step in range(1, p):
            words = sides.get(step, f"the slice of the rank {step} to the left")
            yield law(
                f"shift by {step}",
                words,
                lambda q, r, j, step=step: place[r] == (place[q] - step) % p,
                _same,
            )


def _always(q: int, r: int, j: np.ndarray) -> bool:
    return True


def _same(q: int, r: int, j: np.ndarray) -> np.ndarray:
    return j


def candidates(result: Result, sources: Sequence[Slice]) -> Iterator[Callable[[], Law]]:
    """What makes the laws of the known collectives that the shapes allow, about each input tensor in turn."""
    for name in dict.fromkeys(s.name for s in sources):
        maker = _Maker(result, sources, name)
        alike = {s.shape for s in maker.needed}
        if len(alike) == 1 and [s.rank for s in maker.needed] == result.ranks:
            yield from maker.recipes()


def usual(result: Result, sources: Sequence[Slice], among: np.ndarray) -> Law | None:
    """What most of the chosen elements obey: the same factors by distance of ranks and of elements; or None.

    Args:
        among: which elements are asked, [rank, element].
    """
    p = len(result.ranks)
    place: dict[int | None, int] = {r: k for k, r in enumerate(result.ranks)}
    if not among.any() or any(s.rank not in place or s.size != result.size for s in sources):
        return None
    # Columns by (tensor, distance of ranks): what an element looks like from its own rank.
    order = np.empty((p, len(sources)), int)
    names = list(dict.fromkeys(s.name for s in sources))
    for k, s in enumerate(sources):
        for q in range(p):
            order[q, names.index(s.name) * p + (place[s.rank] - q) % p] = k
    j = result.elements[None, :, None]
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
    holds: np.ndarray = np.all((law_index < sizes) & (law_index >= NONE), axis=2)
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
        left, right = (
            (scaled * one).sum(axis=-1, dtype=np.uint64),
            (where * other).sum(axis=-1, dtype=np.uint64),
        )
        number: np.ndarray = left ^ right
        return number
