"""From a finished trace to the numbers of its RunResult: what each rank did, what moved, how links were used.

Everything is read off the operations' own times. Bytes count at the rank whose core issued the move: the load
half (MTE2) of a move with a peer is a remote read, its store half (MTE3) a remote write; everything without a
peer, or with the own rank as peer, is local. A put or get is a pair of such halves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from a2a3sim.models.capacity import CapacityUse
from a2a3sim.models.operation import UNKNOWN, Lane
from a2a3sim.models.ub import peak_usage
from a2a3sim.result import LinkUse, PairTraffic, Rows, RunResult
from a2a3sim.trace.barriers import barrier_count
from a2a3sim.trace.critical_path import critical_path
from a2a3sim.trace.phases import phase_spans, phase_union
from a2a3sim.trace.record import DispatchRecord, Trace
from a2a3sim.trace.rounds import round_count
from a2a3sim.trace.table import Column, Mask, Table, summed

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


def _last_known(lane: Lane) -> int:
    """When a lane was last seen doing something; a deadlocked one has no end."""
    if lane.end != UNKNOWN:
        return lane.end
    known = lane.start
    for op in lane.operations:
        known = max(known, op.issued, op.start, op.drained, op.end)
    return known


def run_span(lanes: Iterable[Lane]) -> tuple[int, int]:
    """First start and last end over the lanes that started, in the clock's ps; (0, 0) if none did."""
    started = [lane for lane in lanes if lane.start != UNKNOWN]
    if not started:
        return 0, 0
    return min(lane.start for lane in started), max(_last_known(lane) for lane in started)


def rank_uses(table: Table, ranks: int, origin: int = 0) -> list[dict[str, Any]]:
    """The entries of ``per_rank``."""
    rank, nbytes, begun, start, end = table.rank, table.nbytes, table.begun, table.start, table.end

    def total(values: Column | Mask, chosen: Mask) -> list[int]:
        return list(summed(np.where(chosen, values, 0), rank, ranks).tolist())

    loads = table.on("MTE2") & (end >= 0)
    stores = table.on("MTE3") & (table.drained >= 0)
    waits = table.where(lambda kind: kind.waits)
    notifies = table.where(lambda kind: kind.name == "notify")
    columns = {
        "remote_read_bytes": total(nbytes, loads & table.remote),
        "remote_write_bytes": total(nbytes, stores & table.remote),
        "local_read_bytes": total(nbytes, loads & ~table.remote | _scalars(table, "read")),
        "local_write_bytes": total(nbytes, stores & ~table.remote | _scalars(table, "write")),
        "notifies": total(notifies, notifies),
        "waits": total(waits, waits),
        "wait_ps": total(end - start, waits & (end >= 0)),
    }
    busy = {
        "S": total(table.issued - begun, table.issued >= 0),
        "MTE2": _busy(table, loads, end, ranks),
        "V": total(end - start, table.on("V") & (end >= 0)),
        "MTE3": _busy(table, stores, table.drained, ranks),
    }
    uses: list[dict[str, Any]] = [
        {
            "rank": k,
            "start_ps": None,
            "end_ps": None,
            **{name: column[k] for name, column in columns.items()},
            "pipe_busy_ps": {name: column[k] for name, column in busy.items()},
            "ub_peak_bytes": 0,
        }
        for k in range(ranks)
    ]
    for lane in table.lanes:
        use = uses[lane.rank]
        first, last = lane.start - origin, _last_known(lane) - origin
        use["start_ps"] = first if use["start_ps"] is None else min(use["start_ps"], first)
        use["end_ps"] = last if use["end_ps"] is None else max(use["end_ps"], last)
        peak = lane.ub_peak_bytes if lane.ub_peak_bytes != UNKNOWN else peak_usage(lane.operations)[0]
        use["ub_peak_bytes"] = max(use["ub_peak_bytes"], peak)
    return uses


def _scalars(table: Table, side: str) -> Mask:
    """Scalar reads or writes."""
    return table.where(lambda kind: kind.pipe == "S" and kind.side == side)


def _busy(table: Table, moves: Mask, ends: Column, ranks: int) -> list[int]:
    """Time in which at least one of ``moves`` is under way, summed over each rank's lanes.

    Those of a lane start in order, so the union of their intervals needs only the latest end so far.
    """
    lane, start, end = table.lane[moves], table.start[moves], ends[moves]
    if not len(end):
        return [0] * ranks
    # Lanes apart by more than any time: the latest end of another lane never counts.
    apart = lane * (int(end.max()) + 1)
    until = np.maximum.accumulate(end + apart)[:-1] - apart[1:]
    spent = end - start
    spent[1:] = np.maximum(end[1:] - np.maximum(start[1:], until), 0)
    return list(summed(spent, table.rank[moves], ranks).tolist())


def pair_traffic(table: Table, ranks: int) -> dict[str, Column]:
    """Columns of ``pairs``: payload by ordered pair, pairs that moved nothing left out."""
    loads = table.on("MTE2")
    moves = np.flatnonzero(
        table.remote & (table.drained >= 0) & (table.nbytes > 0) & (loads | table.on("MTE3"))
    )
    peer, rank, loads = table.peer[moves], table.rank[moves], loads[moves]
    pairs, groups = np.unique(np.where(loads, peer * ranks + rank, rank * ranks + peer), return_inverse=True)
    return {
        "src": pairs // ranks,
        "dst": pairs % ranks,
        "bytes": summed(table.nbytes[moves], groups, len(pairs)),
    }


def _rows(columns: dict[str, Column]) -> list[dict[str, int]]:
    lists = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def link_uses(capacities: Iterable[CapacityUse], kernel_ps: int) -> list[dict[str, Any]]:
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


def _dispatches(dispatches: Iterable[DispatchRecord], origin: int) -> list[dict[str, Any]]:
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


def measure(trace: Trace, info: RunInfo) -> RunResult:
    """The result of one run.

    A partial trace (a deadlock, an error in a kernel) is measured up to the last thing known; waits that
    never ended add nothing to ``wait_ps``, moves that never arrived nothing to the bytes.
    """
    lanes = [lane for lane in trace.lanes if lane.start != UNKNOWN]
    origin = info.origin_ps
    first, last = run_span(lanes)
    table = Table(lanes)
    per_rank = rank_uses(table, info.ranks, origin)
    starts = [use["start_ps"] for use in per_rank if use["start_ps"] is not None]
    operations = len(table)
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
            "pairs": Rows(PairTraffic, partial(_rows, pair_traffic(table, info.ranks))),
            "links": Rows(LinkUse, partial(link_uses, trace.capacities, last - first)),
            "phases": phase_union(phase_spans(table)[0], origin),
            "barriers": barrier_count(table),
            "rounds": round_count(table),
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
