"""Where a result is not what its law asks for, in words: what is missing, doubled, misplaced or unwritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from a2a3sim.checks.mismatch.contributions import MIXED
from a2a3sim.checks.mismatch.laws import Law, hashed
from a2a3sim.checks.mismatch.results import Result
from a2a3sim.checks.mismatch.slices import Slice
from a2a3sim.checks.wording import listed, ranks_text

__all__ = ["Deviation", "Places", "deviations", "differs", "folded", "own_blocks_only"]

_RUNS = 4000  # stretches looked at one by one
_LINES = 6  # said of one result; more are counted

# What a deviation may be; what comes later goes before.
_OTHER, _MOVED, _FOREIGN, _NOTHING, _UNWRITTEN = range(5)


@dataclass(frozen=True)
class Deviation:
    """A stretch of one rank's result, ``first`` to ``last`` inclusive, and what is wrong with it."""

    rank: int
    first: int
    last: int
    what: str = field(compare=False)


class Places:
    """How elements of one rank's result are called: by block where they make blocks, else by row or count."""

    def __init__(self, result: Result) -> None:
        self.size = result.size
        p = len(result.ranks)
        shape = [extent for extent in result.shape if extent > 1]
        rows = shape[0] if len(shape) > 1 else 1
        self.over = self.size % p if rows == 1 and p > 1 else 0
        if rows > 1 and rows != p:
            self.word, self.block = "row", self.size // rows
        else:
            self.word, self.block = "block", self.size // p if p > 1 and self.size % p == 0 else 0

    def blocks(self, first: int, last: int) -> str:
        """``block 3`` or ``blocks 1..2``; empty where the stretch is no whole number of blocks."""
        b = self.block
        if not b or first % b or (last + 1) % b or last - first + 1 == self.size:
            return ""
        low, high = first // b, last // b
        return f"{self.word} {low}" if low == high else f"{self.word}s {low}..{high}"

    @staticmethod
    def elements(first: int, last: int) -> str:
        """``elements 48..63``."""
        return f"element {first}" if first == last else f"elements {first}..{last}"

    def name(self, first: int, last: int) -> str:
        """The stretch as a sentence names it."""
        if first == 0 and last == self.size - 1:
            return "all elements" if self.size > 1 else "the element"
        text, blocks = self.elements(first, last), self.blocks(first, last)
        if self.is_tail(first, last):
            text = f"the tail, {text}"
        return f"{text} ({blocks})" if blocks else text

    def is_tail(self, first: int, last: int) -> bool:
        """Whether the stretch is what is left over when the slice is cut into equal blocks."""
        return bool(self.over) and last == self.size - 1 and first == self.size - self.over


def differs(result: Result, law: Law) -> np.ndarray:
    """Which elements are not as the law asks, [rank, element]."""
    off = ~np.isclose(result.counts, law.counts, rtol=1e-3, atol=1e-6)
    moved = (result.counts != 0) & (law.counts != 0) & (result.index != law.index)
    bad: np.ndarray = (off.any(axis=2) | moved.any(axis=2) | ~result.written) & law.holds
    return bad


def own_blocks_only(result: Result, law: Law) -> bool:
    """Whether every rank holds what it should in a block of its own, and nobody anything outside of them."""
    right = ~differs(result, law) & law.holds
    p = len(result.ranks)
    if p < 2 or not right.any(axis=1).all() or right.sum(axis=0).max() > 1:
        return False
    return bool(right.sum() >= (result.size // p) * p)


def deviations(result: Result, law: Law, sources: Sequence[Slice]) -> list[Deviation]:
    """All stretches in which the result is not what the law asks for."""
    bad = differs(result, law)
    if not bad.any():
        return []
    return list(_Reader(result, law, sources).read(bad))


class _Reader:
    def __init__(self, result: Result, law: Law, sources: Sequence[Slice]) -> None:
        self.result, self.law, self.sources = result, law, sources
        self.places = Places(result)
        self.wanted = hashed(law.counts, law.index)
        self.held = hashed(result.counts, result.index)
        self.several = len({s.name for s in sources}) > 1
        j = np.arange(result.size)[None, :, None]
        self.relative = hashed(result.counts, np.where(result.index >= 0, result.index - j, result.index))
        self.relative ^= hashed(law.counts, np.where(law.index >= 0, law.index - j, law.index)) >> np.uint64(
            1
        )

    def read(self, bad: np.ndarray) -> Iterator[Deviation]:
        runs = 0
        for q, rank in enumerate(self.result.ranks):
            at = np.flatnonzero(bad[q])
            if not len(at):
                continue
            kind, key = self._keys(q)
            same = (np.diff(at) == 1) & (np.diff(kind[at]) == 0) & (np.diff(key[at].view(np.int64)) == 0)
            for first, last in zip(at[np.r_[True, ~same]], at[np.r_[~same, True]], strict=True):
                runs += 1
                if runs > _RUNS:
                    return
                what = self._what(q, int(first), int(last), int(kind[first]), int(key[first].view(np.int64)))
                yield Deviation(rank, int(first), int(last), what)

    def _keys(self, q: int) -> tuple[np.ndarray, np.ndarray]:
        """What kind of deviation each element of a rank may be, and what else equal neighbours share."""
        result = self.result
        kind = np.full(result.size, _OTHER)
        key = self.relative[q].copy()
        place, there = _lookup(self.wanted[q], self.held[q])
        kind[there] = _MOVED
        key[there] = (place - np.arange(result.size))[there].astype(np.int64).view(np.uint64)
        whole = self.wanted.ravel()
        foreign, there = _lookup(whole, self.held[q])
        there &= kind == _OTHER
        kind[there] = _FOREIGN
        key[there] = (foreign - np.arange(result.size))[there].astype(np.int64).view(np.uint64)
        nothing = ~(result.counts[q] != 0).any(axis=1)
        kind[nothing] = _NOTHING
        key[nothing] = (
            np.rint(result.constant[q] * 1024)[nothing].astype(np.int64).view(np.uint64) * 2
            + result.fresh[q][nothing]
        )
        kind[~result.written[q]] = _UNWRITTEN
        key[~result.written[q]] = 0
        return kind, key

    def _what(self, q: int, first: int, last: int, kind: int, shift: int) -> str:
        result, places = self.result, self.places
        if kind == _UNWRITTEN:
            text = "never written"
            if places.is_tail(first, last):
                p = len(result.ranks)
                text += (
                    f": {result.size} elements are no multiple of {p} ranks, "
                    f"{p} blocks of {result.size // p} leave {places.over} over"
                )
            return text
        if kind == _NOTHING:
            value = f"{result.constant[q, first]:.6g}"
            held = f"memory that nobody had written ({value})" if result.fresh[q, first] else value
            return f"no rank contributes, {held} stands there"
        if kind == _MOVED:
            return self._instead(first + shift, first, last, "")
        if kind == _FOREIGN:
            other, start = divmod(first + shift, result.size)
            return self._instead(start, first, last, f" of rank {result.ranks[other]}")
        return self._contributions(q, first, last)

    def _instead(self, start: int, first: int, last: int, whose: str) -> str:
        places = self.places
        end = start + last - first
        here, there = places.blocks(first, last), places.blocks(start, end)
        if not (here and there):
            here, there = places.elements(first, last), places.elements(start, end)
        verb = "stands" if ".." not in there else "stand"
        belongs = "belongs" if ".." not in here else "belong"
        return f"{there}{whose} {verb} where {here} {belongs}"

    def _contributions(self, q: int, first: int, last: int) -> str:
        """Which ranks are missing, count too often, or contribute other elements."""
        result, law = self.result, self.law
        got, wanted = result.counts[q, first], law.counts[q, first]
        index, right = result.index[q, first], law.index[q, first]
        own = [k for k, s in enumerate(self.sources) if s.rank == result.ranks[q]]
        if len(own) == 1 and index[own[0]] == MIXED and np.count_nonzero(got) == 1 < np.count_nonzero(wanted):
            return f"{got[own[0]]:.4g} of the rank's own elements are added up instead of one of each rank"
        parts = []
        missing = np.flatnonzero((got == 0) & (wanted != 0)).tolist()
        if missing:
            text = f"contribution{'s' if len(missing) > 1 else ''} of {self._who(missing)} missing"
            if result.fresh[q, first]:
                text += " (memory that nobody had written was added instead)"
            parts.append(text)
        often: dict[tuple[float, float, bool], list[int]] = {}
        for k in np.flatnonzero((got != 0) & ~np.isclose(got, wanted, rtol=1e-3)).tolist():
            often.setdefault((float(got[k]), float(wanted[k]), bool(index[k] == MIXED)), []).append(k)
        for (count, due, mixed), who in often.items():
            parts.append(self._counted(who, count, due, mixed))
        other = np.flatnonzero((got != 0) & np.isclose(got, wanted, rtol=1e-3) & (index != right))
        moved: dict[tuple[int, int], list[int]] = {}
        for k in other.tolist():
            moved.setdefault((int(index[k]), int(right[k])), []).append(k)
        for (held, due), who in moved.items():
            if held == MIXED:
                parts.append(f"several elements of {self._who(who)} instead of one")
            else:
                end = last - first
                parts.append(
                    f"{self._who(who)} contribute{'s' if len(who) == 1 else ''} "
                    f"{self.places.elements(held, held + end)} instead of "
                    f"{self.places.elements(due, due + end)}"
                )
        return "; ".join(parts) or "other contributions than it should have"

    def _counted(self, who: list[int], count: float, due: float, mixed: bool) -> str:
        subject = f"contribution{'s' if len(who) > 1 else ''} of {self._who(who)}"
        if mixed:
            return f"{self._who(who)} counted {count:.4g} times, with different elements"
        if due == 0:
            return f"{subject} too many" if count == 1 else f"{subject} too many, {count:.4g} times"
        if count == 2 * due:
            return f"{subject} doubled"
        return f"{subject} counted {count:.4g} times instead of {due:.4g}"

    def _who(self, columns: Sequence[int]) -> str:
        texts = []
        for name in dict.fromkeys(self.sources[k].name for k in columns):
            ranks = sorted(
                r for k in columns if self.sources[k].name == name and (r := self.sources[k].rank) is not None
            )
            text = ranks_text(ranks) if ranks else "the common part"
            texts.append(f"{text} ({name})" if self.several else text)
        return listed(texts)


def _lookup(table: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each value stands in a table (its first place), and whether it does."""
    order = np.argsort(table, kind="stable")
    at = np.minimum(np.searchsorted(table[order], wanted), len(table) - 1)
    place = order[at]
    return place, table[place] == wanted


def _by_own_block(found: Sequence[Deviation], places: Places) -> dict[str, bool]:
    """What is wrong with exactly the own block of every rank (True), or with all blocks but that (False)."""
    if not places.block or places.word != "block":
        return {}
    blocks: dict[str, dict[int, set[int]]] = {}
    for d in found:
        if d.first % places.block or (d.last + 1) % places.block:
            blocks.setdefault(d.what, {})[-1] = set()  # no whole block
            continue
        held = blocks.setdefault(d.what, {}).setdefault(d.rank, set())
        held.update(range(d.first // places.block, (d.last + 1) // places.block))
    every = set(range(places.size // places.block))
    alike = {}
    for what, by_rank in blocks.items():
        if by_rank.keys() == every and all(held == {rank} for rank, held in by_rank.items()):
            alike[what] = True
        elif (
            len(every) > 2
            and by_rank.keys() == every
            and all(held == every - {rank} for rank, held in by_rank.items())
        ):
            alike[what] = False
    return alike


def folded(found: Sequence[Deviation], places: Places) -> list[str]:
    """Deviations as lines: equal ones of several ranks together, neighbours that read alike as one."""
    merged: list[Deviation] = []
    for d in found:
        before = merged[-1] if merged else None
        if before and (before.rank, before.last + 1, before.what) == (d.rank, d.first, d.what):
            merged[-1] = Deviation(d.rank, before.first, d.last, d.what)
        else:
            merged.append(d)
    lines = []
    groups: dict[tuple[int, int, str], list[int]] = {}
    alike = _by_own_block(merged, places)
    for d in merged:
        if d.what in alike:
            where = f"its own {places.word}" if alike[d.what] else f"every {places.word} but its own"
            line = f"each rank, {where}: {d.what}"
            if line not in lines:
                lines.append(line)
        else:
            groups.setdefault((d.first, d.last, d.what), []).append(d.rank)
    lines += [
        f"{ranks_text(ranks)}, {places.name(first, last)}: {what}"
        for (first, last, what), ranks in groups.items()
    ]
    more = len(lines) - _LINES
    return [*lines[:_LINES], f"and {more} more stretch{'es' if more > 1 else ''}"] if more > 0 else lines
