"""Right but wasteful: notes with a number each.

Everybody starts with the same peer; small moves one after the other; full barriers where only neighbours exchange
data; most of the time in waits; fences with nothing to wait for. A note needs a waste that matters: runs of a few
microseconds are mostly latency, whatever one does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import cast

from a2a3sim.checks.sites import site_of
from a2a3sim.checks.wording import plural, ranks_text
from a2a3sim.models.capacity import PS
from a2a3sim.models.operation import UNKNOWN, Lane, Move, Operation, Site
from a2a3sim.result import Finding
from a2a3sim.trace.barriers import numbered
from a2a3sim.trace.intervals import unions
from a2a3sim.trace.kinds import ends, kind_of, remote, took
from a2a3sim.trace.measures import run_span
from a2a3sim.trace.record import Trace, resolve_site
from a2a3sim.units import format_size, format_time

__all__ = ["performance_notes"]

_US = 1_000_000  # ps
_LEAST = 2 * _US  # of waste
_SHARE = 0.05  # of the run's time, at least, that a remedy could save
_WAITING = 0.4  # of the ranks' time
_LONG = 50 * _US  # of a run, before waits are worth a note
_RUN = 8  # moves in a row that could be one
_ROUNDS = 3  # notifies over an edge that carries no data


def performance_notes(trace: Trace) -> list[Finding]:
    """The notes on a run that came to its end."""
    lanes = [lane for lane in trace.lanes if lane.start != UNKNOWN and lane.end != UNKNOWN]
    if not lanes:
        return []
    first, last = run_span(lanes)
    run = _Run(lanes, last - first)
    return [
        note for find in (_incast, _small_moves, _idle_edges, _waiting, _idle_fences) if (note := find(run))
    ]


class _Run:
    """What the notes look at, gathered in one pass."""

    def __init__(self, lanes: list[Lane], kernel_ps: int) -> None:
        self.kernel_ps = kernel_ps
        self.ranks = sorted({lane.rank for lane in lanes})
        self.lanes = lanes
        # barriers before it -> first run of each core behind that barrier
        self.starts: dict[int, list[list[Move]]] = defaultdict(list)
        self.runs: list[list[Move]] = []  # of moves between one core and one peer, nothing in between
        self.signals: Counter[tuple[int, int]] = Counter()  # (from, to) -> notifies
        self.data: Counter[tuple[int, int]] = Counter()  # (from, to) -> bytes
        self.waited: Counter[Site | None] = Counter()  # site -> ps
        self.busy = 0  # ps of all lanes
        self.idle_fences: list[Operation] = []
        self.fences = 0
        started: set[tuple[int, Lane]] = set()
        for lane in lanes:
            self.busy += lane.end - lane.start
            self._enter(lane, started)

    def _enter(self, lane: Lane, started: set[tuple[int, Lane]]) -> None:
        current: list[Move] = []
        accessed = True
        for phase, op in numbered(lane):
            kind = kind_of(op.kind)
            if kind.waits:
                self.waited[op.site] += took(op)
                current = []
            elif kind.notifies:
                if remote(op):
                    self.signals[ends(op)] += 1
                current = []
            elif kind.fences:
                self.fences += 1
                if not accessed:
                    self.idle_fences.append(op)
                accessed = False
            elif kind.moves:
                accessed = True
                if remote(op):
                    self.data[ends(op)] += op.nbytes
                    current = self._add(cast(Move, op), phase, current, started)

    def _add(self, op: Move, phase: int, current: list[Move], started: set[tuple[int, Lane]]) -> list[Move]:
        """The run of moves that goes on with a remote move, or begins with it."""
        if current:
            last = current[-1]
            if (last.peer, last.kind, last.site) == (op.peer, op.kind, op.site):
                current.append(op)
                return current
        run = [op]
        self.runs.append(run)
        if (phase, op.lane) not in started:
            started.add((phase, op.lane))
            self.starts[phase].append(run)
        return run

    def matters(self, waste: float) -> bool:
        return waste >= _LEAST and waste >= _SHARE * self.kernel_ps

    def share(self, time: float) -> str:
        return f"{100 * time / self.kernel_ps:.0f} % of the run"


def _note(subtype: str, ops: Sequence[Operation], message: str, fix: str) -> Finding:
    places: dict[Site | None, Operation] = {}
    for op in ops:
        places.setdefault(op.site, op)
    sites = [site_of(op, op.start) for op in list(places.values())[:4]]
    ranks = sorted({op.lane.rank for op in ops})
    return Finding(
        kind="performance", subtype=subtype, severity="note", ranks=ranks, sites=sites,
        message=message[0].upper() + message[1:], fix=fix,
    )  # fmt: skip


def _incast(run: _Run) -> Finding | None:
    """All ranks turn to the same peer first, and its port is shared out among them."""
    worst = 0
    found: tuple[int, dict[int, list[list[Move]]], list[list[Move]]] | None = None
    for starts in run.starts.values():
        first: dict[int, list[list[Move]]] = defaultdict(list)  # rank -> first run of each of its cores
        for ops in starts:
            first[ops[0].lane.rank].append(ops)
        peers = {rank: {ops[0].peer for ops in runs} for rank, runs in first.items()}
        agreed = Counter(next(iter(p)) for p in peers.values() if len(p) == 1)
        target, count = agreed.most_common(1)[0] if agreed else (None, 0)
        if target is None or count < 3 or count < len(run.ranks) - 1:
            continue
        crowd = {rank: runs for rank, runs in first.items() if peers[rank] == {target}}
        late = max(crowd.values(), key=lambda runs: _moving(runs) - _alone(runs))
        waste = _moving(late) - _alone(late)
        if waste > worst and run.matters(waste):
            worst, found = waste, (target, crowd, late)
    if found is None:
        return None
    target, crowd, late = found
    size = sum(op.nbytes for ops in late for op in ops)
    message = (
        f"{ranks_text(sorted(crowd))} all turn to rank {target} first and share its port: the slowest takes "
        f"{format_time(_moving(late))} for {format_size(size)} instead of {format_time(_alone(late))} "
        f"({run.share(worst)} lost)."
    )
    return _note(
        "incast",
        [runs[0][0] for runs in crowd.values()],
        message,
        "let each rank begin with another peer, (rank + 1 + k) mod ranks in step k",
    )


def _moving(runs: list[list[Move]]) -> int:
    """From the first byte to the last of one rank's first runs of moves."""
    flows = [op.flow for ops in runs for op in ops if op.flow is not None]
    return max(f.finish for f in flows) - min(f.start for f in flows) if flows else 0


def _alone(runs: list[list[Move]]) -> int:
    """What that would take if no other rank used the path: bytes at the rate of its narrowest part, or of one core."""
    moves = [op for ops in runs for op in ops if op.path is not None and op.path.route is not None]
    if not moves:
        return 0
    rates = [use[0].rate / use[1] for use in moves[0].path.uses]
    shared = sum(op.nbytes for op in moves) * PS / min(rates) if rates else 0
    each = max(sum(_free_ps(op, op.nbytes) + _latency(op) for op in ops[1:]) for ops in runs)
    first = max(_free_ps(ops[0], ops[0].nbytes) for ops in runs)
    return round(max(shared, each + first))


def _small_moves(run: _Run) -> Finding | None:
    """Many moves in a row between the same two ranks, each shorter than its own latency."""
    small = [ops for ops in run.runs if len(ops) >= _RUN and _mean(ops) * 4 <= _break_even(ops[0])]
    if not small:
        return None
    waste: Counter[Lane] = Counter()
    for ops in small:
        ideal = _latency(ops[0]) + _free_ps(ops[0], sum(op.nbytes for op in ops))
        waste[ops[0].lane] += max(0, _under_way(ops) - ideal)
    lost = max(waste.values())
    if not run.matters(lost):
        return None
    longest = max(small, key=len)
    first = longest[0]
    message = (
        f"{sum(len(ops) for ops in small)} moves of {format_size(round(_mean(longest)))} go one after the other between the "
        f"same two ranks, up to {len(longest)} in a row: {_percent(longest)} of each is latency, up to {run.share(lost)} "
        f"lost. On this path bytes take as long as latency from {format_size(_break_even(first))} on."
    )
    return _note(
        "small moves",
        [ops[0] for ops in small],
        message,
        "move what lies together in one operation, or share it out over cores",
    )


def _under_way(ops: list[Move]) -> int:
    """Time with at least one of a run's moves on its way."""
    return sum(end - start for start, end, _ in unions((op.start, op.end, op) for op in ops))


def _mean(ops: list[Move]) -> float:
    return sum(op.nbytes for op in ops) / len(ops)


def _free_ps(op: Move, nbytes: int) -> int:
    """What bytes take on a move's path if nobody shares it."""
    route = op.path.route
    assert route is not None, "it limits the transfer"
    return route.free_ps(nbytes)


def _latency(op: Move) -> int:
    return op.path.head + op.path.tail + op.path.ack


def _break_even(op: Move) -> int:
    """Bytes that take as long on the free path as its latencies do; 0 if nothing limits it."""
    route = op.path.route if op.path is not None else None
    return 0 if route is None else int(_latency(op) / route.pace)


def _percent(ops: list[Move]) -> str:
    latency = _latency(ops[0])
    return f"{100 * latency / (latency + _free_ps(ops[0], round(_mean(ops)))):.0f} %"


def _idle_edges(run: _Run) -> Finding | None:
    """Round after round ranks notify others with whom they exchange no data."""
    idle = {pair: n for pair, n in run.signals.items() if pair not in run.data and pair[::-1] not in run.data}
    often = [pair for pair, n in idle.items() if n >= _ROUNDS]
    if not often or not run.data or len(often) * 2 < len(run.signals) or len(run.ranks) < 4:
        return None
    wasted = sum(idle.values())
    senders = {pair for pair in often}
    ops = [
        op
        for lane in run.lanes
        for op in lane.operations
        if kind_of(op.kind).notifies and ends(op) in senders
    ]
    example = min(often)
    total = sum(run.waited.values())
    message = (
        f"{len(run.signals)} pairs of ranks notify each other in every round, but data move between {len(run.data)} only: "
        f"{wasted} of {sum(run.signals.values())} notifies go where none do (rank {example[0]} to rank {example[1]}, "
        f"for example). Waits take {100 * total / run.busy:.0f} % of the cores' time."
    )
    return _note("idle edges", ops, message, "let a round notify only those who read or write what it moved")


def _waiting(run: _Run) -> Finding | None:
    """Most of the time goes into waits."""
    total = sum(run.waited.values())
    if run.kernel_ps < _LONG or total < _WAITING * run.busy:
        return None
    site, longest = max(run.waited.items(), key=lambda item: (item[1], str(resolve_site(item[0]))))
    ops = [op for lane in run.lanes for op in lane.operations if kind_of(op.kind).waits and op.site == site]
    message = (
        f"cores wait {100 * total / run.busy:.0f} % of their time ({format_time(total)} in sum); the wait at "
        f"{resolve_site(site).file.rpartition('/')[2]}:{resolve_site(site).line} takes {format_time(longest)} of it."
    )
    return _note("waits", ops, message, "see the critical path (a2a3sim explain) for what is waited for")


def _idle_fences(run: _Run) -> Finding | None:
    """Fences behind which there is nothing that an earlier one has not waited for."""
    ops = run.idle_fences
    if len(ops) < _RUN:
        return None
    spent = sum(op.end - op.begun for op in ops)
    message = (
        f"{len(ops)} of {plural(run.fences, 'fence')} stand behind no access that an earlier one has not waited for; they "
        f"take {format_time(spent)} of the scalar pipes' time."
    )
    return _note(
        "idle fences", ops, message, "put one fence before the first notify, outside of the loop over peers"
    )
