"""Witnesses of races: the run made again with the one core held that makes the race bite, and the bytes that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from a2a3sim import A2A3Error
from a2a3sim.checks.wording import plural
from a2a3sim.delays import Delay
from a2a3sim.models.memory import Memory
from a2a3sim.models.operation import UNKNOWN, Access, Operation
from a2a3sim.rerun import Again, Call
from a2a3sim.result import Finding, RunResult, Witness
from a2a3sim.trace import Trace, resolve_site
from a2a3sim.units import format_time

__all__ = ["TRIES", "attach_witnesses", "look_for_witness"]

TRIES = 8
_PAIRS = 4  # pairs of one race that are tried
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


@dataclass
class _Seen:
    """What one operation touched in one repetition."""

    op: Operation
    access: Access
    before: bytes = b""
    after: bytes = b""


@dataclass
class _Record:
    """Watches some operations of a repetition and takes down the bytes that they read, or found and left."""

    wanted: set[tuple]
    seen: dict[tuple, _Seen] = field(default_factory=dict)

    def __call__(self, op: Operation, number: int) -> None:
        place = resolve_site(op.site)
        key = (op.lane.rank, op.lane.core, place.file, place.line, number)
        regions = op.reads or op.writes
        if key not in self.wanted or not regions:
            return
        seen = self.seen[key] = _Seen(op, regions[0])
        work = op.work
        if work is None:
            return

        def watched() -> None:
            seen.before = _bytes_of(seen.access)
            work()
            seen.after = _bytes_of(seen.access)

        op.work = watched


def _bytes_of(access: Access) -> bytes:
    memory, offset, rows, row_bytes, stride = access
    if memory.data is None:
        return b""
    return b"".join(
        memory.data[offset + r * stride : offset + r * stride + row_bytes].tobytes() for r in range(rows)
    )


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
    if obstacle:
        return Witness(shown=False, tries=0, message=f"not tried: {obstacle}")
    pairs = list(_pairs(trace, finding))
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
    usual, held = _Record({first.where, second.where}), _Record({first.where, second.where})
    changes = {} if seed == call.settings.seed else {"seed": seed}
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
    seen = [held.seen.get(turn.where) for turn in (first, second)]
    turned = all(seen) and _when(seen[0].op) > _when(seen[1].op)
    found = list(_changes(call, usual, held, (first, second), after))
    if not found and not turned:
        return None
    found += _outputs(call, before, after)
    if not found:
        return None
    told = "; ".join(change["text"] for change in found[:_SHOWN])
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    again = f" (--delay '{delay}'{f' --seed {seed}' if changes else ''})"
    return Witness(
        shown=True, tries=done, delay=str(delay), seed=seed, changes=[{k: v for k, v in c.items() if k != "text"} for c in found],
        message=f"shown: {how}, {told}{more}{again}",
    )  # fmt: skip


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
    told = 0
    met: set[frozenset] = set()
    for group_a, group_b in ((named[0], named[1]), (at[0], at[1])):
        for a in group_a:
            for b in group_b:
                key = frozenset((a.where, b.where))
                if len(key) < 2 or key in met or not _meet(a.op, b.op):
                    continue
                met.add(key)
                yield a, b
                told += 1
                if told >= _PAIRS:
                    return


def _is(op: Operation, site) -> bool:
    return (
        op.lane.rank == site.rank
        and op.kind == site.operation
        and site.time_ps in (op.start, op.issued, op.visible)
    )


def _meet(a: Operation, b: Operation) -> bool:
    """Whether two operations of different cores touch common bytes, at least one of them writing."""
    if (a.lane.rank, a.lane.core, a.lane.dispatch) == (b.lane.rank, b.lane.core, b.lane.dispatch):
        return False
    mine, theirs = (a.writes or a.reads), (b.writes or b.reads)
    return bool(a.writes or b.writes) and any(_overlap(x, y) for x in mine for y in theirs)


def _overlap(x: Access, y: Access) -> bool:
    if x.memory is not y.memory:
        return False
    return x.offset < _end(y) and y.offset < _end(x)


def _end(access: Access) -> int:
    return access.offset + (access.rows - 1) * access.stride + access.row_bytes


# ---- what differs ---------------------------------------------------------------------------------


def _changes(
    call: Call, usual: _Record, held: _Record, pair: Sequence[_Turn], after: Again
) -> Iterator[dict[str, Any]]:
    """Reads of the pair that took other bytes; of two writes, what stood there in the end."""
    writes = [turn for turn in pair if turn.op.writes]
    for turn in pair:
        was, now = usual.seen.get(turn.where), held.seen.get(turn.where)
        if was is None or now is None or turn.op.writes:
            continue
        yield from _difference(
            call,
            after,
            turn,
            was.access,
            was.before,
            now.before,
            f"rank {turn.where[0]}'s {turn.op.kind} gets",
        )
    if len(writes) == 2:
        turn = writes[0]
        was, now = usual.seen.get(turn.where), held.seen.get(turn.where)
        if was is not None and now is not None:
            yield from _difference(
                call, after, turn, was.access, _bytes_of(was.access), _bytes_of(now.access), "in the end there stand",
            )  # fmt: skip


def _difference(
    call: Call, after: Again, turn: _Turn, access: Access, before: bytes, now: bytes, verb: str
) -> Iterator[dict[str, Any]]:
    if before == now or len(before) != len(now):
        return
    dtype = _dtype_of(call, after, access.memory)
    old, new = np.frombuffer(before, np.uint8), np.frombuffer(now, np.uint8)
    at = np.flatnonzero(old != new)
    low, high = int(at[0]), int(at[-1]) + 1
    if dtype is not None and len(before) % dtype.itemsize == 0:
        low, high = low // dtype.itemsize * dtype.itemsize, -(-high // dtype.itemsize) * dtype.itemsize
        was, became = (np.frombuffer(b, dtype)[low // dtype.itemsize] for b in (before, now))
        values = f"{float(was):.6g} -> {float(became):.6g}"
        shown = [float(was), float(became)]
    else:
        values = f"{before[low : low + 8].hex(' ')} -> {now[low : low + 8].hex(' ')}"
        shown = [before[low : low + 8].hex(), now[low : low + 8].hex()]
    first = access.offset + low // access.row_bytes * access.stride + low % access.row_bytes
    last = access.offset + (high - 1) // access.row_bytes * access.stride + (high - 1) % access.row_bytes
    memory = access.memory
    yield {
        "memory": memory.name,
        "rank": memory.rank,
        "bytes": [first, last + 1],
        "before": shown[0],
        "after": shown[1],
        "operation": turn.op.kind,
        "by_rank": turn.where[0],
        "text": f"{verb} other bytes: {memory.name} of rank {memory.rank}, bytes {first}-{last}: {values}",
    }


def _outputs(call: Call, before: Again, after: Again) -> Iterator[dict[str, Any]]:
    """Results that differ."""
    for argument in call.arguments:
        if argument.direction == "in":
            continue
        old, new = before.outputs[argument.name].ravel(), after.outputs[argument.name].ravel()
        at = np.flatnonzero(~((old == new) | ((old != old) & (new != new))))
        if not len(at):
            continue
        first, size = int(at[0]), argument.layout.dtype.itemsize
        rank = next(
            (
                r
                for r, part in argument.parts
                if part.base <= argument.layout.base + first * size < part.base + _extent(part)
            ),
            None,
        )
        whose = "" if rank is None else f" of rank {rank}"
        yield {
            "memory": argument.name,
            "rank": rank,
            "bytes": [first * size, (int(at[-1]) + 1) * size],
            "before": float(old[first]),
            "after": float(new[first]),
            "operation": "result",
            "by_rank": None,
            "text": f"{plural(len(at), 'element')} of {argument.name} differ{'s' if len(at) == 1 else ''}, the first{whose}: "
            f"{float(old[first]):.6g} -> {float(new[first]):.6g}",
        }


def _extent(layout) -> int:
    return int(np.prod(layout.shape)) * layout.dtype.itemsize


def _dtype_of(call: Call, after: Again, memory: Memory) -> np.dtype | None:
    """The element type of a memory object, where its views agree about it."""
    for buffer in after.launch.recording.buffers:
        if buffer.name == memory.name and len(buffer.dtypes) == 1:
            return next(iter(buffer.dtypes)).numpy
    for argument in call.arguments:
        if argument.buffer.name == memory.name:
            return argument.layout.dtype.numpy
    return None
