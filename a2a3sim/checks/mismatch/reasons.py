"""What a result is made of, held against what it was meant to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from a2a3sim.checks.mismatch.contributions import Contributions, Provenance
from a2a3sim.checks.mismatch.deviations import Deviation, Places, deviations, folded, own_blocks_only
from a2a3sim.checks.mismatch.intent import intended, rounding_room
from a2a3sim.checks.mismatch.laws import IN_PLACE, Law, candidates
from a2a3sim.checks.mismatch.provenance import trace_back
from a2a3sim.checks.mismatch.results import Result
from a2a3sim.checks.mismatch.slices import Slice
from a2a3sim.checks.wording import listed
from a2a3sim.language.host.arguments import as_array
from a2a3sim.run.numerics import TOLERANCES
from a2a3sim.run.rerun import Argument, Call

__all__ = ["Explanation", "explain"]

_UNIT = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}  # unit round-off; the others are exact


@dataclass
class Explanation:
    """What one argument that a program wrote is made of, and where that is not what it should be.

    Attributes:
        law: what it seems to be meant to hold; ``certain`` where the golden is exactly that.
        lines: what is wrong, or why nothing can be said.
        wrong: stretches that are not as they should be.
        rounding: the contributions are right and the golden differs by rounding only.
        dealt: ranks that were handed another rank's part of an argument.
        positions: element numbers in the argument, [rank, element].
    """

    name: str
    law: Law | None = None
    certain: bool = False
    lines: list[str] = field(default_factory=list)
    wrong: list[Deviation] = field(default_factory=list)
    rounding: bool = False
    dealt: list[str] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    positions: np.ndarray | None = field(default=None, repr=False)

    @property
    def meant(self) -> str:
        """What the law says each rank should hold, with its name."""
        if self.law is None:
            return "something else"
        plus = ", plus a number" if self.law.offset is not None and self.law.offset.any() else ""
        name = f" ({self.law.name})" if self.law.name else ""
        return f"{self.law.words}{plus}{name}"

    def text(self) -> str:
        """What is wrong, in one line."""
        return "; ".join([*self.lines, *(self.dealt if self.wrong else ())])


def explain(call: Call, provenance: Provenance | None = None) -> list[Explanation]:
    """Hold what a call left in each of its arguments against what it seems to be meant to leave there.

    Args:
        provenance: of this call, if it is known already.
    """
    provenance = provenance or trace_back(call)
    goldens = _goldens(call)
    if provenance.obstacle:
        text = f"the cause was not searched: {provenance.obstacle}"
        return [Explanation(name, lines=[text]) for name in goldens]
    arguments = {a.name: a for a in call.arguments}
    values = [
        np.asarray(arguments[s.name].before).ravel()[s.positions].astype(np.float64)
        for s in provenance.sources
    ]
    return [
        _explained(call, arguments[name], c, provenance, values, goldens.get(name))
        for name, c in provenance.outputs.items()
    ]


def _goldens(call: Call) -> dict[str, np.ndarray | None]:
    names = [a.name for a in call.arguments if a.direction != "in"]
    if call.golden is None:
        return dict.fromkeys(names)
    given = call.golden if isinstance(call.golden, (tuple, list)) else [call.golden]
    arrays = [as_array(golden, f"golden of {name}") for name, golden in zip(names, given, strict=False)]
    return {name: array.astype(np.float64).ravel() for name, array in zip(names, arrays, strict=False)}


def _explained(
    call: Call,
    argument: Argument,
    c: Contributions,
    provenance: Provenance,
    values: list[np.ndarray],
    golden: np.ndarray | None,
) -> Explanation:
    got = np.asarray(argument.array()).astype(np.float64).ravel()
    result = Result.of(c, got)
    if (c.written & ~c.known).any():
        return Explanation(
            c.name, lines=["it is not linear in the inputs, so contributions cannot be counted"]
        )
    if result is None:
        return Explanation(
            c.name, lines=["ranks hold slices of different kinds; contributions were not compared"]
        )
    sources = provenance.sources
    wanted = limit = None
    if golden is not None:
        wanted = golden[result.positions]
        tolerance = TOLERANCES.get(argument.layout.dtype.name, 0.0)
        rtol, atol = call.settings.rtol, call.settings.atol
        limit = (tolerance if atol is None else atol) + (tolerance if rtol is None else rtol) * np.abs(wanted)
    unit = _UNIT.get(argument.layout.dtype.name, 0.0)
    law, certain = intended(result, provenance, values, wanted, limit, unit)
    said = Explanation(c.name, law, certain, ranks=result.ranks, positions=result.positions)
    said.dealt = [line for s in (sources, c.slices) for line in _misdealt(s, len(result.ranks))]
    right = wanted is not None and bool(np.all(np.abs(result.values - wanted) <= limit))
    if law is None:
        said.lines = [] if right else ["no known law fits the result"]
        return said
    said.wrong = deviations(result, law, sources)
    if said.wrong and right:
        # Contributions that do not show, of zeros for example: the law is another one.
        return Explanation(c.name)
    if said.wrong:
        said.lines = _lines(result, law, said.wrong)
        return said
    said.wrong = _constants(result, law)
    if said.wrong:
        said.lines = folded(said.wrong, Places(result))
    elif wanted is not None and law.offset is None:
        _compare(said, argument, result, law, values, wanted)
    elif law.name == IN_PLACE:
        said.lines = [_only_scattered(result, deviations(result, _whole_sum(result, sources, law), sources))]
    return said


def _misdealt(slices: Sequence[Slice], ranks: int) -> Iterator[str]:
    """Arguments with one row for each rank of which the ranks were handed other rows than their own."""
    for name in dict.fromkeys(s.name for s in slices):
        own = [s for s in slices if s.name == name and s.rank is not None]
        if len(own) != ranks or len({s.size for s in own}) != 1:
            continue
        rows = {s.rank: int(s.positions[0]) // s.size for s in own if s.positions[0] % s.size == 0}
        others = {rank: row for rank, row in rows.items() if rank != row}
        if others and sorted(rows.values()) == list(range(ranks)):
            told = [f"rank {rank} was handed {name}[{row}]" for rank, row in list(others.items())[:3]]
            yield listed(told) + (" and so on" if len(others) > 3 else "")


def _constants(result: Result, law: Law) -> list[Deviation]:
    """Ranks on which another number is added than the golden asks for."""
    if law.offset is None:
        return []
    found = []
    for q, rank in enumerate(result.ranks):
        added, due = float(np.median(result.constant[q])), float(law.offset[q])
        if not np.isclose(added, due, rtol=1e-3, atol=1e-3):
            text = f"{added:.6g} is added where {due:.6g} should be"
            found.append(Deviation(rank, 0, result.size - 1, text))
    return found


def _compare(
    said: Explanation,
    argument: Argument,
    result: Result,
    law: Law,
    values: list[np.ndarray],
    wanted: np.ndarray,
) -> None:
    """The contributions are as they should be; what about the values?"""
    held, dtype = result.values, argument.layout.dtype.name
    room = rounding_room(law, values, wanted, _UNIT.get(dtype, 0.0))
    if not said.certain:
        said.lines = [f"it holds {said.meant}, each contribution once; the golden is something else"]
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
            f"every contribution is there once, but {off:.3g} is more than rounding in {dtype} explains "
            f"({float(room.max()):.3g}): something is calculated in fewer digits"
        ]


def _lines(result: Result, law: Law, wrong: Sequence[Deviation]) -> list[str]:
    if own_blocks_only(result, law):
        return [_only_scattered(result, wrong)]
    return folded(wrong, Places(result))


def _whole_sum(result: Result, sources: Sequence[Slice], law: Law) -> Law:
    first = next(candidates(result, sources), None)
    whole = law if first is None else first()
    return whole if whole.name == "all-reduce" else law


def _only_scattered(result: Result, wrong: Sequence[Deviation]) -> str:
    """Each rank has its own block of the sum and not the others'."""
    places, first = Places(result), result.ranks[0]
    inside = np.ones(result.size, bool)
    for d in wrong:
        if d.rank == first:
            inside[d.first : d.last + 1] = False
    own = np.flatnonzero(inside)
    block = f", {places.elements(int(own[0]), int(own[-1]))} on rank {first}" if len(own) else ""
    kinds = list(dict.fromkeys(d.what.partition(":")[0] for d in wrong))
    rest = "the rest was never written" if kinds == ["never written"] else f"elsewhere {listed(kinds[:2])}"
    return (
        "only the reduce-scatter was done: each rank holds its own block's sum "
        f"({places.word} r on rank r{block}), {rest}; the all-gather is missing"
    )
