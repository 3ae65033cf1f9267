"""From a finished trace to the numbers of its RunResult: what each rank did, what moved, how links were used.

Everything is read off the operations' own times. Bytes count at the rank whose core issued the move: the load
half (MTE2) of a move with a peer is a remote read, its store half (MTE3) a remote write; everything without a
peer, or with the own rank as peer, is local. A put or get is a pair of such halves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from a2a3sim.models.operation import UNKNOWN
from a2a3sim.models.ub import peak_usage
from a2a3sim.result import RunResult
from a2a3sim.trace.barriers import barrier_count
from a2a3sim.trace.critical_path import critical_path
from a2a3sim.trace.phases import phase_spans, phase_union
from a2a3sim.trace.rounds import round_count

__all__ = ["RunInfo", "link_uses", "measure", "pair_traffic", "rank_uses", "run_span"]

_PS_PER_S = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What a result states beside the trace.

    Attributes:
        origin_ps: the clock's time at which the host launched this run; times in the result count from it.
        launched_ps: the same where times in the result go on with a worker's clock; then `origin_ps` is 0.
        bound_ps, bytes_per_rank: None where the program has no closed form, or no one payload.
        findings: `a2a3sim.result.Finding`, or anything with its fields.
        verdict: on a run in which nothing was found.
        numerics: `a2a3sim.result.Numerics`, or anything with its fields; None without a golden.
        wall_s: what the simulation cost, with `events` and `switches`.
    """

    program: str
    platform: str
    platform_hash: str
    ranks: int
    algorithm: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    skew_ps: int = 0
    fences: str = "statement"
    timing_only: bool = False
    device_labels: Sequence[int | str] = ()
    placement: Sequence[int] = ()
    cores: int = 1
    dtype: str | None = None
    bytes_per_rank: int | None = None
    origin_ps: int = 0
    launched_ps: int | None = None
    bound_ps: int | None = None
    findings: Sequence[Any] = ()
    verdict: str | None = None
    numerics: Any = None
    wall_s: float = 0.0
    events: int = 0
    switches: int = 0


def _last_known(lane) -> int:
    """When a lane was last seen doing something; a deadlocked one has no end."""
    if lane.end != UNKNOWN:
        return lane.end
    known = lane.start
    for op in lane.operations:
        known = max(known, op.issued, op.start, op.drained, op.end)
    return known


def run_span(lanes) -> tuple[int, int]:
    """First start and last end over the lanes that started, in the clock's ps; (0, 0) if none did."""
    started = [lane for lane in lanes if lane.start != UNKNOWN]
    if not started:
        return 0, 0
    return min(lane.start for lane in started), max(_last_known(lane) for lane in started)


def rank_uses(lanes, ranks: int, origin: int = 0) -> list[dict]:
    """The entries of ``per_rank``."""
    uses = [
        {
            "rank": rank,
            "start_ps": None,
            "end_ps": None,
            "remote_read_bytes": 0,
            "remote_write_bytes": 0,
            "local_read_bytes": 0,
            "local_write_bytes": 0,
            "notifies": 0,
            "waits": 0,
            "wait_ps": 0,
            "pipe_busy_ps": {"S": 0, "MTE2": 0, "V": 0, "MTE3": 0, "SDMA": 0},
            "ub_peak_bytes": 0,
        }
        for rank in range(ranks)
    ]
    for lane in lanes:
        if lane.start != UNKNOWN:
            _add_lane(uses[lane.rank], lane, origin)
    return uses


def _add_lane(use: dict, lane, origin: int) -> None:
    rank = lane.rank
    remote_read = remote_write = local_read = local_write = 0
    notifies = waits = wait_ps = 0
    issue = loads = vector = stores = 0
    loads_until = stores_until = 0
    for op in lane.operations:
        pipe = op.pipe
        if op.issued >= 0:
            issue += op.issued - op.begun
        if pipe == "MTE2":
            end = op.end
            if end < 0:
                continue
            if op.peer is None or op.peer == rank:
                local_read += op.nbytes
            else:
                remote_read += op.nbytes
            # Loads start in order, so the union of their intervals needs only the latest end so far.
            begin = op.start if op.start > loads_until else loads_until
            if end > begin:
                loads += end - begin
                loads_until = end
        elif pipe == "V":
            if op.end >= 0:
                vector += op.end - op.start
        elif pipe == "MTE3":
            end = op.drained
            if end < 0:
                continue
            if op.peer is None or op.peer == rank:
                local_write += op.nbytes
            else:
                remote_write += op.nbytes
            begin = op.start if op.start > stores_until else stores_until
            if end > begin:
                stores += end - begin
                stores_until = end
        else:
            kind = op.kind
            if kind == "wait":
                waits += 1
                if op.end >= 0:
                    wait_ps += op.end - op.start
            elif kind == "notify":
                notifies += 1
            elif kind == "read":
                local_read += op.nbytes
            elif kind == "write":
                local_write += op.nbytes
    start, end = lane.start - origin, _last_known(lane) - origin
    use["start_ps"] = start if use["start_ps"] is None else min(use["start_ps"], start)
    use["end_ps"] = end if use["end_ps"] is None else max(use["end_ps"], end)
    use["remote_read_bytes"] += remote_read
    use["remote_write_bytes"] += remote_write
    use["local_read_bytes"] += local_read
    use["local_write_bytes"] += local_write
    use["notifies"] += notifies
    use["waits"] += waits
    use["wait_ps"] += wait_ps
    peak = lane.ub_peak_bytes if lane.ub_peak_bytes != UNKNOWN else peak_usage(lane.operations)[0]
    use["ub_peak_bytes"] = max(use["ub_peak_bytes"], peak)
    busy = use["pipe_busy_ps"]
    busy["S"] += issue
    busy["MTE2"] += loads
    busy["V"] += vector
    busy["MTE3"] += stores


def pair_traffic(lanes) -> list[dict]:
    """The entries of ``pairs``: payload by ordered pair, pairs that moved nothing left out."""
    moved: dict[tuple[int, int], int] = {}
    for lane in lanes:
        rank = lane.rank
        read: dict[int, int] = {}
        written: dict[int, int] = {}
        for op in lane.operations:
            peer = op.peer
            if peer is None or peer == rank or op.drained < 0:
                continue
            if op.pipe == "MTE2":
                read[peer] = read.get(peer, 0) + op.nbytes
            elif op.pipe == "MTE3":
                written[peer] = written.get(peer, 0) + op.nbytes
        for peer, nbytes in read.items():
            moved[peer, rank] = moved.get((peer, rank), 0) + nbytes
        for peer, nbytes in written.items():
            moved[rank, peer] = moved.get((rank, peer), 0) + nbytes
    order = sorted(pair for pair, nbytes in moved.items() if nbytes)
    return [{"src": src, "dst": dst, "bytes": moved[src, dst]} for src, dst in order]


def link_uses(capacities, kernel_ps: int) -> list[dict]:
    """The entries of ``links``: every capacity but HBM."""
    uses = []
    for capacity in capacities:
        if capacity.kind == "hbm":
            continue
        possible = capacity.rate * kernel_ps
        uses.append(
            {
                "name": capacity.name,
                "bytes": round(capacity.bytes),
                "busy_ps": round(capacity.busy_ps),
                "utilisation": capacity.bytes * _PS_PER_S / possible if possible else 0.0,
                "peak_flows": capacity.peak_flows,
            }
        )
    return uses


def _dispatches(dispatches, origin: int) -> list[dict]:
    return [
        {
            "index": d.index,
            "kernel": d.kernel,
            "rank": d.rank,
            # A count, or the cores themselves.
            "cores": d.cores if isinstance(d.cores, int) else len(d.cores),
            "start_ps": None if d.start == UNKNOWN else d.start - origin,
            "end_ps": None if d.end == UNKNOWN else d.end - origin,
        }
        for d in dispatches
    ]


def measure(trace, info: RunInfo) -> RunResult:
    """The result of one run.

    A partial trace (a deadlock, an error in a kernel) is measured up to the last thing known; waits that
    never ended add nothing to ``wait_ps``, moves that never arrived nothing to the bytes.
    """
    lanes = [lane for lane in trace.lanes if lane.start != UNKNOWN]
    origin = info.origin_ps
    first, last = run_span(lanes)
    per_rank = rank_uses(lanes, info.ranks, origin)
    starts = [use["start_ps"] for use in per_rank if use["start_ps"] is not None]
    operations = sum(len(lane.operations) for lane in lanes)
    return RunResult.model_validate(
        {
            "program": info.program,
            "algorithm": info.algorithm,
            "platform": info.platform,
            "platform_hash": info.platform_hash,
            "overrides": {key: info.overrides[key] for key in sorted(info.overrides)},
            "seed": info.seed,
            "skew_ps": info.skew_ps,
            "fences": info.fences,
            "timing_only": info.timing_only,
            "ranks": info.ranks,
            "device_labels": list(info.device_labels),
            "placement": list(info.placement),
            "cores": info.cores,
            "dtype": info.dtype,
            "bytes_per_rank": info.bytes_per_rank,
            "kernel_ps": last - first,
            "sync_ps": last - origin - max(starts) if starts else 0,
            "total_ps": last - (origin if info.launched_ps is None else info.launched_ps) if starts else 0,
            "bound_ps": info.bound_ps,
            "per_rank": per_rank,
            "dispatches": _dispatches(trace.dispatches, origin),
            "pairs": pair_traffic(lanes),
            "links": link_uses(trace.capacities, last - first),
            "phases": phase_union(phase_spans(lanes), origin),
            "barriers": barrier_count(lanes),
            "rounds": round_count(lanes),
            "critical_path": critical_path(trace, origin),
            "findings": list(info.findings),
            "verdict": info.verdict,
            "numerics": info.numerics,
            "cost": {
                "wall_s": info.wall_s,
                "events": info.events,
                "switches": info.switches,
                "operations": operations,
                "operations_per_s": operations / info.wall_s if info.wall_s > 0 else 0.0,
            },
        }
    )
