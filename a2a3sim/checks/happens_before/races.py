"""Conflicting accesses to the same bytes that nothing orders.

Every access is compared with every conflicting one that is not already ordered before all that is still to
come; keeping the last write only would make the reported pairs depend on the schedule. Whether one access
happens before another is one comparison: the later one's clock at the earlier one's component.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from a2a3sim.checks.happens_before.clocks import Clocks
from a2a3sim.checks.happens_before.events import ADD, READ
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.happens_before.regions import overlapping, ragged

__all__ = ["Accesses", "data_races"]

_BATCH = 1 << 20  # pairs compared at a time
_LONG = 1 << 22  # pairs in one history from which on it is walked, forgetting what is ordered before the rest
_BLOCK = 512


class Accesses:
    """All accesses of a program as arrays, and the test whether two are ordered."""

    def __init__(self, execution: Execution, clocks: Clocks) -> None:
        self.execution = execution
        self.clocks = clocks
        self.region = np.array(execution.access_region, np.int64)
        self.row = np.array(execution.access_row, np.int64)
        self.kind = np.array(execution.access_kind, np.int8)
        self.thread = np.array(execution.access_thread, np.int64)
        self.column = clocks.column_of[self.row]
        self.segment = np.array(execution.segment_of, np.int64)[self.row]
        self.position = clocks.position[self.row]
        self.regions = np.array(execution.regions, np.int64).reshape(-1, 5)
        self.memory = self.regions[self.region, 0] if len(self.region) else np.zeros(0, np.int64)
        if execution.explicit:
            self.device = np.array([t.device for t in execution.threads])[self.thread]
            self.owner = np.array([m.device for m in execution.memories])[self.memory]
            self.stores = self.column >= execution.scalar_columns
            self.stores &= (self.column - execution.scalar_columns) % 3 == 2

    def before(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Element-wise: does access a[k] happen before access b[k]?"""
        column = self.column[a]
        if self.execution.explicit:
            # A drained store is known to readers of its own device, which use its other component.
            near = self.stores[a] & (self.device[a] == self.device[b]) & (self.owner[a] == self.device[a])
            column = column - near
        found: np.ndarray = self.clocks.matrix[self.row[b], column] >= self.segment[a]
        return found

    def racing(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Element-wise: do the accesses conflict without being ordered?"""
        ka, kb = self.kind[a], self.kind[b]
        conflict = (ka != kb) | ((ka != READ) & (ka != ADD))
        conflict &= (ka != READ) | (kb != READ)
        conflict &= self.thread[a] != self.thread[b]
        k: np.ndarray = np.flatnonzero(conflict)
        if not len(k):
            return k
        if self.execution.explicit:
            k = k[~(self.before(a[k], b[k]) | self.before(b[k], a[k]))]
            return k
        # The walk is a possible schedule, so only what comes first in it can happen before the other.
        swap = self.position[a[k]] > self.position[b[k]]
        early, late = np.where(swap, b[k], a[k]), np.where(swap, a[k], b[k])
        k = k[~self.before(early, late)]
        return k


def _shared(accesses: Accesses) -> np.ndarray:
    """Accesses to memory objects that several threads use and one writes."""
    memory, thread, kind = accesses.memory, accesses.thread, accesses.kind
    if not len(memory):
        return np.zeros(0, np.int64)
    size = int(memory.max()) + 1
    low, high = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
    np.minimum.at(low, memory, thread)
    np.maximum.at(high, memory, thread)
    written = np.bincount(memory[kind != READ], minlength=size) > 0
    return np.flatnonzero((written & (low < high))[memory])


def data_races(accesses: Accesses) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield arrays (a, b) of racing pairs of accesses."""
    chosen = _shared(accesses)
    if not len(chosen):
        return
    chosen = chosen[np.argsort(accesses.region[chosen], kind="stable")]
    region = accesses.region[chosen]
    ids, begin, count = np.unique(region, return_index=True, return_counts=True)
    write = accesses.kind[chosen] != READ
    writes = chosen[write]
    write_begin = np.searchsorted(region[write], ids)
    write_count = np.searchsorted(region[write], ids, side="right") - write_begin
    index = np.full(len(accesses.regions), -1)
    index[ids] = np.arange(len(ids))
    p, q = overlapping(accesses.regions, ids)
    p, q = index[p], index[q]
    pairs = write_count[p] * count[q] + count[p] * write_count[q]
    live = pairs > 0
    p, q, pairs = p[live], q[live], pairs[live]
    long = pairs > _LONG
    for k in np.flatnonzero(long):
        one, other = chosen[begin[p[k]] :][: count[p[k]]], chosen[begin[q[k]] :][: count[q[k]]]
        yield from _walk_history(accesses, one, None if p[k] == q[k] else other)
    p, q = p[~long], q[~long]
    own = p == q
    # Writes of one against everything of the other, then its reads against the other's writes.
    for x, y in ((p, q), (q[~own], p[~own])):
        yield from _compare(accesses, writes, write_begin[x], write_count[x], chosen, begin[y], count[y])


def _compare(
    accesses: Accesses,
    xs: np.ndarray,
    xb: np.ndarray,
    xc: np.ndarray,
    ys: np.ndarray,
    yb: np.ndarray,
    yc: np.ndarray,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every x of a region against every y of its partner, in batches."""
    size = xc * yc
    bounds = np.searchsorted(np.cumsum(size), np.arange(_BATCH, int(size.sum()) + _BATCH, _BATCH))
    last = 0
    for bound in bounds:
        part = slice(last, min(bound + 1, len(size)))
        last = part.stop
        if part.start == part.stop:
            continue
        n = xc[part]
        x = ragged(xb[part], n)
        x_of = np.repeat(np.arange(len(n)), n)
        m = yc[part][x_of]
        y = ys[ragged(yb[part][x_of], m)]
        x = np.repeat(xs[x], m)
        found = accesses.racing(x, y)
        if len(found):
            a, b = x[found], y[found]
            # Two writes meet twice.
            once = (accesses.kind[b] == READ) | (a < b)
            if once.any():
                yield a[once], b[once]


def _walk_history(
    accesses: Accesses, one: np.ndarray, other: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """A long history in the order of the walk; what happens before all that is to come is dropped."""
    items = one if other is None else np.concatenate((one, other))
    tag = np.zeros(len(items), bool)
    tag[len(one) :] = True
    order = np.argsort(accesses.position[items], kind="stable")
    items, tag = items[order], tag[order]
    kept, kept_tag = items[:0], tag[:0]
    for start in range(0, len(items), _BLOCK):
        block, block_tag = items[start : start + _BLOCK], tag[start : start + _BLOCK]
        kept, kept_tag = np.concatenate((kept, block)), np.concatenate((kept_tag, block_tag))
        first = len(kept) - len(block)
        for k in range(0, len(kept), _BATCH // _BLOCK):
            part = np.arange(k, min(k + _BATCH // _BLOCK, len(kept)))
            x, y = np.tile(part, len(block)), np.repeat(np.arange(first, len(kept)), len(part))
            meet = x < y
            if other is not None:
                meet &= kept_tag[x] != kept_tag[y]
            x, y = kept[x[meet]], kept[y[meet]]
            found = accesses.racing(x, y)
            if len(found):
                yield x[found], y[found]
        if start + _BLOCK < len(items):
            floor = _floor(accesses, int(accesses.position[items[start + _BLOCK]]))
            live = floor[accesses.column[kept]] < accesses.segment[kept]
            kept, kept_tag = kept[live], kept_tag[live]


def _floor(accesses: Accesses, position: int) -> np.ndarray:
    """What every thread that still goes on at a point of the walk knows from there on."""
    clocks = accesses.clocks
    rows = []
    for mine in clocks.execution.rows_of:
        k = np.searchsorted(clocks.position[mine], position) if mine else 0
        if k < len(mine):
            rows.append(mine[k])
    floor: np.ndarray = clocks.matrix[rows].min(axis=0)
    return floor
