"""What a result is made of, held against the law that its golden, or most of it, obeys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from a2a3sim.checks.contributions import Contributions, Provenance
from a2a3sim.checks.deviations import Deviation, Places, deviations, folded, own_blocks_only
from a2a3sim.checks.laws import IN_PLACE, Law, Result, agreement, candidates, usual
from a2a3sim.checks.provenance import trace_back
from a2a3sim.checks.slices import Slice
from a2a3sim.checks.wording import listed
from a2a3sim.frontend.arguments import as_array
from a2a3sim.numerics import TOLERANCES
from a2a3sim.rerun import Argument, Call

__all__ = ["Explanation", "explain"]

_UNIT = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}  # unit round-off; the others are exact
_SAMPLE = 4  # elements of a slice that a constant must explain at least
_LIKELY = 0.5  # share of a law that must be there before it is taken for the intended one


@dataclass
class Explanation:
    """What one argument that a program wrote is made of, and where that is not what it should be.

    Attributes:
        law: what it seems to be meant to hold; ``certain`` where the golden is exactly that.
        lines: what is wrong, or why nothing can be said.
        wrong: stretches that are not as they should be.
        rounding: the contributions are right and the golden differs by rounding only.
        dealt: ranks that were handed another rank's part of an argument.
    """

    name: str
    law: Law | None = None
    certain: bool = False
    lines: list[str] = field(default_factory=list)
    wrong: list[Deviation] = field(default_factory=list)
    rounding: bool = False
    positions: np.ndarray | None = field(default=None, repr=False)
    ranks: list[int] = field(default_factory=list)
    dealt: list[str] = field(default_factory=list)

    @property
    def found(self) -> bool:
        """Whether a cause is known."""
        return bool(self.wrong) or self.rounding

    def text(self) -> str:
        """In one line."""
        return "; ".join([*self.lines, *(self.dealt if self.wrong else ())])


def explain(call: Call, provenance: Provenance | None = None) -> list[Explanation]:
    """Hold what a call left in each of its arguments against what it seems to be meant to leave there.

    Args:
        provenance: of this call, if it is known already.
    """
    provenance = provenance or trace_back(call)
    goldens = _goldens(call)
    if provenance.obstacle:
        return [
            Explanation(name, lines=[f"the cause was not searched: {provenance.obstacle}"])
            for name in goldens
        ]
    arguments = {a.name: a for a in call.arguments}
    values = [
        np.asarray(arguments[s.name].before).ravel()[s.positions].astype(np.float64)
        for s in provenance.sources
    ]
    return [
        _explained(arguments[name], c, provenance, values, goldens.get(name))
        for name, c in provenance.outputs.items()
    ]


def _goldens(call: Call) -> dict[str, np.ndarray | None]:
    names = [a.name for a in call.arguments if a.direction != "in"]
    if call.golden is None:
        return dict.fromkeys(names)
    given = call.golden if isinstance(call.golden, (tuple, list)) else [call.golden]
    return {
        name: as_array(g, f"golden of {name}").astype(np.float64).ravel()
        for name, g in zip(names, given, strict=False)
    }


def _explained(argument: Argument, c: Contributions, provenance: Provenance, values, golden) -> Explanation:
    result = Result.of(c)
    unknown = c.written & ~c.known
    got = np.asarray(argument.array()).astype(np.float64).ravel()
    tolerance = TOLERANCES.get(argument.layout.dtype.name, 0.0)
    if unknown.any():
        return Explanation(
            c.name, lines=[f"{c.name} is not linear in the inputs, so its contributions cannot be counted"]
        )
    if result is None:
        return Explanation(
            c.name, lines=["ranks hold slices of different kinds; contributions were not compared"]
        )
    sources = provenance.sources
    law, certain = _intended(result, c, provenance, values, golden, got, tolerance)
    said = Explanation(c.name, law, certain, positions=result.positions, ranks=result.ranks)
    said.dealt = [line for s in (sources, c.slices) for line in _misdealt(s, len(result.ranks))]
    if law is None:
        said.lines = ["no known law fits the result"]
        return said
    said.wrong = deviations(result, law, sources)
    added = _constants(result, law)
    if added and not said.wrong:
        said.wrong, said.lines = added, folded(added, Places(result))
    elif said.wrong:
        said.lines = _lines(result, law, said.wrong, sources)
    elif golden is not None and law.offset is None:
        _compare(said, argument, result, law, values, got, golden, certain, provenance.combine)
    elif law.name == IN_PLACE:
        said.lines = [_only_scattered(result, deviations(result, _whole_sum(result, sources, law), sources))]
    return said


def _intended(
    result: Result, c: Contributions, provenance: Provenance, values, golden, got, tolerance
) -> tuple[Law | None, bool]:
    """The law that the golden obeys, else the one that most of the result does."""
    sources = provenance.sources
    everything = np.ones(result.positions.shape, bool)
    right = everything
    if golden is not None:
        limit = tolerance * (1 + np.abs(golden))
        right = (np.abs(got - golden) <= limit)[result.positions] & result.written
    most = usual(result, sources, right)
    known = [*candidates(result, sources), *([most] if most is not None else [])]
    factors = [1.0]
    used = result.counts[result.counts != 0]
    if used.size:
        kinds, number = np.unique(used, return_counts=True)
        factors = list(dict.fromkeys([1.0, float(kinds[number.argmax()]), 1.0 / len(result.ranks)]))
    if golden is not None:
        wanted = golden[result.positions]
        for offsets in (False, True):
            for factor in factors:
                for law in known:
                    if not law.holds.all() or (factor != 1 and law is most):
                        continue
                    law = law if factor == 1 else law.scaled(factor)
                    law = _reproducing(law, values, wanted, tolerance, provenance.combine, offsets)
                    if law is not None:
                        return law, True
    best, score = None, _LIKELY
    for law in known:
        # Of two that fit equally well the one named first is taken.
        for factor in factors if law is not most else [1.0]:
            scaled = law if factor == 1 else law.scaled(factor)
            if factor != 1 and float(factor).is_integer():
                continue
            share = agreement(result, scaled)
            if share > score + (0.2 if law is most and share < 1 else 0):
                best, score = scaled, share
    return best, False


def _misdealt(slices: Sequence[Slice], ranks: int) -> list[str]:
    """Arguments with one row for each rank of which the ranks were handed other rows than their own."""
    lines = []
    for name in dict.fromkeys(s.name for s in slices):
        own = [s for s in slices if s.name == name and s.rank is not None]
        if len(own) != ranks or len({s.size for s in own}) != 1:
            continue
        rows = {s.rank: int(s.positions[0]) // s.size for s in own if s.positions[0] % s.size == 0}
        others = {rank: row for rank, row in rows.items() if rank != row}
        if others and sorted(rows.values()) == list(range(ranks)):
            told = [f"rank {rank} was handed {name}[{row}]" for rank, row in list(others.items())[:3]]
            lines.append(listed(told) + (" and so on" if len(others) > 3 else ""))
    return lines


def _constants(result: Result, law: Law) -> list[Deviation]:
    """Ranks on which another number is added than the golden asks for."""
    if law.offset is None:
        return []
    found = []
    for q, rank in enumerate(result.ranks):
        added, due = float(np.median(result.constant[q])), float(law.offset[q])
        if not np.isclose(added, due, rtol=1e-3, atol=1e-3):
            found.append(
                Deviation(rank, 0, result.size - 1, f"{added:.6g} is added where {due:.6g} should be")
            )
    return found


def _expected(law: Law, values, combine: str) -> np.ndarray:
    """What a law makes of the inputs, [rank, element]."""
    total = np.zeros(law.counts.shape[:2])
    for k, value in enumerate(values):
        part = np.where(
            law.index[..., k] >= 0,
            value[np.maximum(law.index[..., k], 0) % len(value)] * law.counts[..., k],
            0,
        )
        total = (
            total + part
            if combine == "sum"
            else np.where(law.index[..., k] >= 0, np.maximum(np.where(total == 0, part, total), part), total)
        )
    return total


def _reproducing(
    law: Law, values, wanted: np.ndarray, tolerance: float, combine: str, offsets: bool
) -> Law | None:
    """The law if it gives what is wanted, with a number of its own on each rank if ``offsets``; else None."""
    left = wanted - _expected(law, values, combine)
    limit = np.maximum(tolerance * (1 + np.abs(wanted)), 2 * _room(law, values, 2.0**-24))
    if not offsets:
        return law if np.all(np.abs(left) <= limit) else None
    if left.shape[1] < _SAMPLE:
        return None  # a number of its own on each rank would explain anything
    offset = np.median(left, axis=1)
    return replace(law, offset=offset) if np.all(np.abs(left - offset[:, None]) <= limit) else None


def _room(law: Law, values, unit: float) -> np.ndarray:
    """By how much rounding may change each element, whatever the order of additions."""
    sizes = np.zeros(law.counts.shape[:2])
    for k, value in enumerate(values):
        sizes += np.where(
            law.index[..., k] >= 0,
            np.abs(value)[np.maximum(law.index[..., k], 0) % len(value)] * np.abs(law.counts[..., k]),
            0,
        )
    terms = np.maximum((law.counts != 0).sum(axis=2), 1)
    return sizes * terms * unit / (1 - terms * unit)


def _compare(
    said: Explanation, argument: Argument, result: Result, law: Law, values, got, golden, certain, combine
) -> None:
    """The contributions are as they should be; what about the values?"""
    unit = _UNIT.get(argument.layout.dtype.name, 0.0)
    held, wanted = got[result.positions], golden[result.positions]
    room = 2 * _room(law, values, max(unit, 2.0**-24 if unit else 0.0)) + 2 * unit * np.abs(wanted)
    if not certain:
        said.lines = [f"{said.name} holds {law.words}, each contribution once; the golden is something else"]
    elif np.array_equal(held, wanted):
        pass  # equal bit for bit
    elif np.all(np.abs(held - wanted) <= room):
        said.rounding = True
        said.lines = [
            "only rounding differs: every contribution is there once, added in another order (no error)"
        ]
    else:
        off = float(np.nanmax(np.abs(held - wanted)))
        said.lines = [
            f"every contribution is there once, but {off:.3g} is more than rounding in {argument.layout.dtype.name} explains "
            f"({float(room.max()):.3g}): something is calculated in fewer digits"
        ]


def _lines(result: Result, law: Law, wrong: Sequence[Deviation], sources: Sequence[Slice]) -> list[str]:
    if own_blocks_only(result, law) and len(result.ranks) > 1:
        return [_only_scattered(result, wrong)]
    return folded(wrong, Places(result))


def _whole_sum(result: Result, sources: Sequence[Slice], law: Law) -> Law:
    return next((c for c in candidates(result, sources) if c.name == "all-reduce"), law)


def _only_scattered(result: Result, wrong: Sequence[Deviation]) -> str:
    """Each rank has its own block of the sum and not the others'."""
    places = Places(result)
    first = result.ranks[0]
    stretches = [d for d in wrong if d.rank == first]
    inside = np.ones(result.size, bool)
    for d in stretches:
        inside[d.first : d.last + 1] = False
    own = np.flatnonzero(inside)
    block = f", {places.elements(int(own[0]), int(own[-1]))} on rank {first}" if len(own) else ""
    kinds = list(dict.fromkeys(d.what.partition(":")[0] for d in wrong))
    rest = (
        "the rest was never written"
        if kinds == ["never written"]
        else f"elsewhere {listed(kinds[:2])}"
        if kinds
        else "the rest is not"
    )
    return (
        f"only the reduce-scatter was done: each rank holds its own block's sum ({places.word} r on rank r{block}), "
        f"{rest}; the all-gather is missing"
    )
