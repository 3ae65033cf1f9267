"""Where each element of a result comes from, found by running the program again on tagged inputs.

Kernels that add, copy and scale are linear, and the times of a run do not depend on its data. So a repetition
with ones in one rank's slice and zeros elsewhere counts how often that rank contributes to each element of
the result, and one with each element's own number in its place says which element stands there. Several
ranks, and several digits of the numbers, share one repetition as far as the element type holds sums exactly.
A last repetition on random small integers holds the whole against what the program really makes of its
inputs: elements for which that fails are not claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from a2a3sim.checks.mismatch.contributions import (
    MIXED,
    NONE,
    Contributions,
    Provenance,
    copied,
    predict,
    share,
)
from a2a3sim.checks.mismatch.slices import slices_of
from a2a3sim.run.rerun import Argument, Call

__all__ = ["trace_back"]

_Values: TypeAlias = Sequence[int | np.ndarray]  # one per source

_BITS = {
    "fp32": 24,
    "fp16": 11,
    "bf16": 8,
    "int32": 30,
    "int16": 14,
    "int8": 6,
    "uint8": 7,
    "uint32": 31,
    "int64": 50,
}
_FILLS = 77, 91  # what Out arguments hold before a repetition: one that keeps both was never written
_BUDGET = 400_000  # operations of all repetitions together
_CELLS = 1 << 22  # elements of results times slices


class _Impossible(Exception):
    """The question cannot be answered; the message says why."""


def trace_back(call: Call, budget: int = _BUDGET) -> Provenance:
    """Find out what each element that a call wrote is made of.

    Args:
        budget: operations that all repetitions together may simulate.
    """
    if call.obstacle:
        return Provenance(obstacle=call.obstacle)
    known: Provenance | None = call.provenance
    if known is not None:
        return known
    probe = None
    try:
        probe = _Probe(call, budget)
        found = call.provenance = probe.result()
        return found
    except _Impossible as reason:
        return Provenance(obstacle=str(reason), runs=probe.runs if probe else 0)


class _Probe:
    def __init__(self, call: Call, budget: int) -> None:
        self.call = call
        self.left = budget
        self.runs = 0
        written = [a for a in call.arguments if a.direction != "in" and a.parts]
        if not written:
            raise _Impossible("no argument is written by a device")
        floating = any(a.layout.dtype.floating for a in written)
        kinds = {a.layout.dtype.name for a in written}
        self.tagged = [
            a
            for a in call.arguments
            if a.direction != "out"
            and a.parts
            and (a.layout.dtype.floating if floating else a.layout.dtype.name in kinds)
        ]
        dtypes = {a.layout.dtype.name for a in (*self.tagged, *written)}
        if not dtypes <= _BITS.keys():
            raise _Impossible(
                f"elements of type {', '.join(sorted(dtypes - _BITS.keys()))} hold no numbers to count with"
            )
        self.bits = min(_BITS[name] for name in dtypes)
        self.sources = [s for a in self.tagged for s in slices_of(a)]
        if not self.sources:
            raise _Impossible("no rank is handed an input of the result's kind")
        self.written = written
        cells = sum(a.before.size for a in written) * len(self.sources)
        if cells > _CELLS:
            raise _Impossible(f"the results have {cells} contributions, more than {_CELLS} are not looked at")

    # ---- repetitions ------------------------------------------------------------------------------

    def run(self, values: _Values, fill: int = _FILLS[0], **changes: Any) -> dict[str, np.ndarray]:
        """What the program writes, flat and as float64, with ``values`` (one per source) in its inputs."""
        self.runs += 1
        self.left -= max(self.call.operations, 1)
        if self.left < 0:
            raise _Impossible(
                f"it would take more than {self.runs - 1} repetitions of {self.call.operations} operations"
            )
        inputs = {}
        for a in self.call.arguments:
            if a.direction == "out":
                inputs[a.name] = np.full(a.before.shape, fill, a.before.dtype)
        for a in self.tagged:
            flat = np.zeros(a.before.size, a.before.dtype)
            for source, value in zip(self.sources, values, strict=True):
                if source.name == a.name:
                    flat[source.positions] = value
            inputs[a.name] = flat.reshape(a.before.shape)
        again = self.call.again(inputs, checks=False, **{"poison": False, **changes})
        if again.error is not None:
            text = str(again.error).partition("\n")[0]
            raise _Impossible(f"with other inputs the program does something else: {text}")
        return {a.name: again.outputs[a.name].astype(np.float64).ravel() for a in self.written}

    def only(self, source: int, value: int | np.ndarray) -> _Values:
        """Values with zeros everywhere but in one source."""
        return [value if k == source else 0 for k in range(len(self.sources))]

    # ---- the question -----------------------------------------------------------------------------

    def result(self) -> Provenance:
        nothing = self.only(0, 0)
        zeros, ones = self.run(nothing), self.run([1 for _ in self.sources], _FILLS[1])
        fresh = self.run(nothing, poison=True)
        first = {a.name: self._begin(a, zeros[a.name], ones[a.name], fresh[a.name]) for a in self.written}
        if any(np.any(c.constant[c.known] != 0) for c in first.values()):
            self.bits -= 1
        totals = np.concatenate([(ones[c.name] - c.constant)[c.known] for c in first.values()])
        best = None
        if np.all((totals >= 0) & (totals == np.rint(totals)) & (totals < 1 << self.bits)):
            best = copied(first)
            self._packed(best, int(totals.max(initial=0)), ones)
            self._verify(best)
        if best is None or share(best) < 1:
            # Factors that are no whole numbers; or no sum at all, but the largest of the inputs.
            single = copied(first)
            try:
                self._one_by_one(single)
                largest = copied(single)
                self._verify(single)
                if share(single) < 1 and np.all((totals == 0) | (totals == 1)):
                    self._verify(largest, "maximum")
                    if share(largest) > max(share(single), 0 if best is None else share(best)):
                        return Provenance(self.sources, largest, "maximum", self.runs)
            except _Impossible:
                if best is None:
                    raise
            else:
                if best is None or share(single) > share(best):
                    best = single
        return Provenance(self.sources, best, "sum", self.runs)

    def _begin(
        self, argument: Argument, zero: np.ndarray, one: np.ndarray, fresh: np.ndarray
    ) -> Contributions:
        written = np.ones(len(zero), bool)
        if argument.direction == "out":
            written = ~((zero == _FILLS[0]) & (one == _FILLS[1]))
        shape = len(zero), len(self.sources)
        return Contributions(
            name=argument.name,
            slices=slices_of(argument),
            counts=np.zeros(shape, np.float32),
            index=np.full(shape, NONE, np.int32),
            constant=zero,
            written=written,
            fresh=written & ~(fresh == zero),
            known=written & np.isfinite(zero),
        )

    def _packed(self, found: dict[str, Contributions], most: int, ones: dict[str, np.ndarray]) -> None:
        """Several sources in one repetition, each in bits of its own."""
        if most == 0:
            return
        width = most.bit_length()
        together = self.bits // width
        for first in range(0, len(self.sources), together):
            group = range(first, min(first + together, len(self.sources)))
            values: _Values = [
                1 << width * (k - first) if k in group else 0 for k in range(len(self.sources))
            ]
            for c, sums in self._sums(found, values):
                for k in group:
                    c.counts[:, k] = sums >> width * (k - first) & (1 << width) - 1
        for c in found.values():
            total = np.where(c.known, ones[c.name] - c.constant, 0)
            c.known &= c.counts.sum(axis=1) == total
            c.counts[~c.known] = 0
        for packed in _bins(list(self._digits(found)), self.bits):
            values = [np.zeros(s.size, np.int64) for s in self.sources]
            for k, shift, digits, _, offset in packed:
                values[k] += (np.arange(self.sources[k].size) >> shift & (1 << digits) - 1) << offset
            for c, sums in self._sums(found, values):
                for k, shift, _, room, offset in packed:
                    _enter(c, k, (sums >> offset & (1 << room) - 1).astype(np.float64), shift)
        self._tell_means(found)

    def _tell_means(self, found: dict[str, Contributions]) -> None:
        """Several elements whose numbers have a whole mean are not the element of that number: use others."""
        fields = []
        for k in range(len(self.sources)):
            extra = int(max(c.counts[:, k].max(initial=0) for c in found.values())).bit_length()
            if extra > 1:
                digits = min(self.bits - extra, 16)
                fields.append((k, 0, digits, digits + extra))
        for packed in _bins(fields, self.bits):
            values: list[int | np.ndarray] = [0] * len(self.sources)
            for k, _, digits, _, offset in packed:
                values[k] = self._codes(k, digits) << offset
            for c, sums in self._sums(found, values):
                for k, _, digits, room, offset in packed:
                    self._unmask(c, k, self._codes(k, digits), sums >> offset & (1 << room) - 1)

    def _codes(self, k: int, digits: int) -> np.ndarray:
        """A number for each element of a source that its neighbours do not tell."""
        return np.random.Generator(np.random.Philox(key=k)).integers(0, 1 << digits, self.sources[k].size)

    def _unmask(self, c: Contributions, k: int, codes: np.ndarray, sums: np.ndarray) -> None:
        index = np.clip(c.index[:, k], 0, len(codes) - 1)
        counts = c.counts[:, k].astype(np.float64)
        slack = np.where(counts == np.rint(counts), 0, 1e-4 * (1 + np.abs(sums)))
        off = np.abs(sums - codes[index] * counts) > slack
        c.index[off & (c.index[:, k] >= 0), k] = MIXED

    def _digits(self, found: dict[str, Contributions]) -> Iterator[tuple[int, int, int, int]]:
        """(source, shift, digits, room): parts of the element numbers, and the bits that their sums need."""
        for k, source in enumerate(self.sources):
            most = int(max(c.counts[:, k].max(initial=0) for c in found.values()))
            if most == 0:
                continue
            for c in found.values():
                c.index[:, k] = np.where(c.counts[:, k] > 0, 0, NONE)
            needed, extra = (source.size - 1).bit_length(), most.bit_length()
            step = self.bits - extra
            if needed and step < 1:
                raise _Impossible("the element type is too small to count with")
            for shift in range(0, needed, step) if needed else ():
                digits = min(step, needed - shift)
                yield k, shift, digits, digits + extra

    def _sums(
        self, found: dict[str, Contributions], values: _Values
    ) -> Iterator[tuple[Contributions, np.ndarray]]:
        outputs = self.run(values)
        for c in found.values():
            sums = np.where(c.known, outputs[c.name] - c.constant, 0)
            c.known &= (sums >= 0) & (sums == np.rint(sums)) & (sums < 1 << 62)
            yield c, np.where(c.known, sums, 0).astype(np.int64)

    def _one_by_one(self, found: dict[str, Contributions]) -> None:
        """One source a repetition: for factors that are no whole numbers."""
        step = min(self.bits - 4, 16)
        if step < 1:
            raise _Impossible("the element type is too small to count with")
        for k, source in enumerate(self.sources):
            outputs = self.run(self.only(k, 1))
            for c in found.values():
                factor = np.where(c.known, outputs[c.name] - c.constant, 0)
                c.known &= np.isfinite(factor)
                c.counts[:, k] = np.where(c.known, factor, 0)
                c.index[:, k] = np.where(c.counts[:, k] != 0, 0, NONE)
            for shift in range(0, (source.size - 1).bit_length(), step):
                number = np.arange(source.size) >> shift & (1 << step) - 1
                outputs = self.run(self.only(k, number))
                for c in found.values():
                    sums = np.where(c.known, outputs[c.name] - c.constant, 0)
                    c.known &= np.isfinite(sums)
                    _enter(c, k, np.where(c.known, sums, 0), shift)
            outputs = self.run(self.only(k, self._codes(k, step)))
            for c in found.values():
                self._unmask(c, k, self._codes(k, step), np.where(c.known, outputs[c.name] - c.constant, 0))

    def _verify(self, found: dict[str, Contributions], combine: str = "sum") -> None:
        """Hold the counts against random inputs; of mixed elements only that sums of inputs give sums."""
        most = max((float(np.abs(c.counts).sum(axis=1).max(initial=0)) for c in found.values()), default=0)
        room = min(max(self.bits - 1 - int(np.ceil(max(most, 1))).bit_length(), 1), 8)
        generator = np.random.Generator(np.random.Philox(5))
        one, other = ([generator.integers(0, 1 << room, s.size) for s in self.sources] for _ in range(2))
        got = self.run(one)
        more: dict[str, np.ndarray] = {}
        both: dict[str, np.ndarray] = {}
        for c in found.values():
            sizes = np.array([s.size for s in self.sources])
            c.index[(c.index >= sizes) | (c.index < MIXED)] = MIXED
            predicted = predict(c, one, combine)
            whole = bool(np.all(c.counts == np.rint(c.counts)))
            slack = 0 if whole else 2.0 ** (4 - self.bits) * (1 + np.abs(predicted))
            missed = c.known & (np.abs(got[c.name] - predicted) > slack)
            c.index[missed[:, None] & (np.abs(c.counts) > 1.5)] = MIXED
            mixed = (c.index == MIXED).any(axis=1) & c.known
            if mixed.any():
                if not both:
                    more, both = self.run(other), self.run([a + b for a, b in zip(one, other, strict=True)])
                predicted[mixed] = (both[c.name] - more[c.name] + c.constant)[mixed]
            c.known &= np.abs(got[c.name] - predicted) <= slack


def _enter(c: Contributions, k: int, sums: np.ndarray, shift: int) -> None:
    """A digit of the element numbers of one source, from its sums."""
    counts = c.counts[:, k].astype(np.float64)
    with np.errstate(all="ignore"):
        digit = np.where(counts != 0, sums / counts, 0)
    whole = np.abs(digit - np.rint(digit)) < 0.01
    column = c.index[:, k]
    found = column + (np.rint(digit).astype(np.int64) << shift)
    c.index[:, k] = np.where(column < 0, column, np.where(whole & (found >= 0), found, MIXED))


def _bins(fields: list[tuple[int, int, int, int]], bits: int) -> list[list[tuple[int, int, int, int, int]]]:
    """Fields packed into words of so many bits, each with its offset."""
    words: list[list[tuple[int, int, int, int, int]]] = []
    used: list[int] = []
    for k, shift, digits, room in fields:
        at = next((n for n, taken in enumerate(used) if taken + room <= bits), None)
        if at is None:
            at = len(words)
            words.append([])
            used.append(0)
        words[at].append((k, shift, digits, room, used[at]))
        used[at] += room
    return words
