"""Witnesses of races: the run made again with one core held, so that the race bites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import Any

from a2a3sim import A2A3Error
from a2a3sim.experiments.witness_bytes import Record, changed_outputs, changed_places
from a2a3sim.result import Finding, RunResult, Witness
from a2a3sim.run import Call, Delay
from a2a3sim.trace import UNKNOWN, Access, Operation, Trace, resolve_site
from a2a3sim.units import format_time

__all__ = ["TRIES", "attach_witnesses", "look_for_witness"]

TRIES = 8
_PAIRS = 4  # pairs of one race that are tried
_LOOKED_AT = 100_000  # pairs of operations at a race's two lines
_SHOWN = 3  # changes told of


@dataclass
class _Turn:
    """One operation of a program, named so that it can be found in a repetition.

    Attributes:
        where: rank, core, file, line and how many operations its core had issued from that line.
    """

    op: Operation
    where: tuple[int, int, str, int, int]

    @property
    def when(self) -> int:
        """When the run saw it."""
        return _when(self.op)


def _when(op: Operation) -> int:
    """When a run saw an access: a write when it is visible, a read when its bytes have left."""
    return op.visible if op.writes else op.drained


def attach_witnesses(program, result: RunResult, trace: Trace) -> None:
    """Look for a witness of every race of a run, while its call can be made again."""
    for number, finding in enumerate(result.findings):
        if finding.kind == "race" and finding.suppressed is None:
            witness = look_for_witness(program.last_call, trace, finding)
            result.findings[number] = finding.model_copy(update={"witness": witness})


def look_for_witness(call: Call | None, trace: Trace, finding: Finding, tries: int = TRIES) -> Witness:
    """Hold back the access that the run saw first, so that the other comes first, and compare what they see.

    Args:
        tries: repetitions on other schedules.
    """
    obstacle = "its call was not kept" if call is None else call.obstacle
    if call is None or obstacle:
        return Witness(shown=False, tries=0, message=f"not tried: {obstacle}")
    pairs = list(islice(_pairs(trace, finding), _PAIRS))
    if not pairs:
        return Witness(shown=False, tries=0, message="not tried: the two accesses were not found in the run")
    span = max((lane.end for lane in trace.lanes), default=0) - min(
        (lane.start for lane in trace.lanes), default=0
    )
    done = 0
    for seed in (call.settings.seed, *(s for s in range(1, tries) if s != call.settings.seed)):
        for pair in pairs:
            if done >= tries:
                return _not_shown(done)
            for flight in (False, True):
                done += 1
                witness = _attempt(call, pair, seed, max(2 * span, 1), flight, done)
                if witness is not None:
                    return witness
    return _not_shown(done)


def _not_shown(tries: int) -> Witness:
    return Witness(
        shown=False, tries=tries, message=f"not shown in {tries} {'try' if tries == 1 else 'tries'}"
    )


def _attempt(
    call: Call, pair: tuple[_Turn, _Turn], seed: int, long: int, flight: bool, done: int
) -> Witness | None:
    """Make the access that the run saw first late, by its core or by the way of its bytes, and compare."""
    first, second = sorted(pair, key=lambda turn: (turn.when, turn.where))
    rank, core, file, line, number = first.where
    delay = Delay(rank, core, file, line, None, number, long, flight)
    places = first.where, second.where
    usual, held = Record(set(places)), Record(set(places))
    changes: dict[str, Any] = {} if seed == call.settings.seed else {"seed": seed}
    delays = call.settings.delays
    try:
        before = call.again(watch=usual, checks=False, **changes)
        after = call.again(watch=held, checks=False, delays=(*delays, delay), **changes)
    except A2A3Error:
        return None
    there = resolve_site(first.op.site)
    how = f"`{there.source}` ({there.file}:{there.line})"
    if flight:
        how = f"with the bytes of rank {rank}'s {how} under way for {format_time(long)} more"
    else:
        how = f"with rank {rank} held for {format_time(long)} before {how}"
    if after.error is not None and before.error is None:
        text = str(after.error).partition("\n")[0]
        return Witness(
            shown=True,
            tries=done,
            delay=str(delay),
            seed=seed,
            message=f"shown: {how} the run ends with {text}",
        )
    early, late = (held.seen.get(place) for place in places)
    turned = early is not None and late is not None and _when(early.op) > _when(late.op)
    found = list(changed_places(call, after, usual, held, places))
    if found or turned:
        found += changed_outputs(call, before, after)
    if not found:
        return None
    told = "; ".join(change["text"] for change in found[:_SHOWN])
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    again = f" (--delay '{delay}'{f' --seed {seed}' if changes else ''})"
    return Witness(
        shown=True,
        tries=done,
        delay=str(delay),
        seed=seed,
        changes=[{k: v for k, v in change.items() if k != "text"} for change in found],
        message=f"shown: {how}, {told}{more}{again}",
    )


# ---- which operations -----------------------------------------------------------------------------


def _turns(trace: Trace) -> Iterator[_Turn]:
    """Every operation, numbered within its core and line."""
    seen: dict[tuple, int] = {}
    for lane in sorted(
        (lane for lane in trace.lanes if lane.start != UNKNOWN), key=lambda lane: (lane.start, lane.index)
    ):
        for op in lane.operations:
            place = resolve_site(op.site)
            key = (lane.rank, lane.core, place.file, place.line)
            number = seen[key] = seen.get(key, -1) + 1
            yield _Turn(op, (*key, number))


def _pairs(trace: Trace, finding: Finding) -> Iterator[tuple[_Turn, _Turn]]:
    """The pair that the finding names, then others of the same two lines that touch the same bytes."""
    if len(finding.sites) != 2:
        return
    one, other = finding.sites
    lines = [(s.file, s.line) for s in (one, other)]
    at: list[list[_Turn]] = [[], []]
    for turn in _turns(trace):
        if turn.op.end == UNKNOWN or not (turn.op.reads or turn.op.writes):
            continue
        for side, (file, line) in enumerate(lines):
            if turn.where[2:4] == (file, line):
                at[side].append(turn)
    named = [[t for t in at[k] if _is(t.op, site)] for k, site in enumerate((one, other))]
    met: set[frozenset] = set()
    every = chain(product(*named), islice(product(*at), _LOOKED_AT))
    for a, b in every:
        key = frozenset((a.where, b.where))
        if len(key) == 2 and key not in met and _meet(a.op, b.op):
            met.add(key)
            yield a, b


def _is(op: Operation, site) -> bool:
    return (
        op.lane.rank == site.rank
        and op.kind == site.operation
        and site.time_ps in (op.start, op.issued, op.visible)
    )


def _meet(a: Operation, b: Operation) -> bool:
    """Whether operations of different cores or kernels touch common bytes, at least one of them writing."""
    if a.lane is b.lane:
        return False
    mine, theirs = (a.writes or a.reads), (b.writes or b.reads)
    return bool(a.writes or b.writes) and any(_overlap(x, y) for x in mine for y in theirs)


def _overlap(x: Access, y: Access) -> bool:
    if x.memory is not y.memory:
        return False
    return x.offset < _end(y) and y.offset < _end(x)


def _end(access: Access) -> int:
    return access.offset + (access.rows - 1) * access.stride + access.row_bytes
