"""Races as findings: one per pair of lines, with all the ranks; and the notifies that left too early."""

from __future__ import annotations

import numpy as np

from a2a3sim.checks.happens_before.early_release import EarlyReleases
from a2a3sim.checks.happens_before.events import READ, Line, Ref
from a2a3sim.checks.happens_before.findings import Folder
from a2a3sim.checks.happens_before.messages import race, unfenced
from a2a3sim.checks.happens_before.races import Accesses, data_races

__all__ = ["report_races"]


def report_races(folder: Folder, accesses: Accesses, early: EarlyReleases) -> None:
    """Find the races between accesses and enter them.

    Args:
        early: the waits that may explain some of them.
    """
    report = _Report(folder, accesses, early)
    old = np.array([t.old for t in accesses.execution.threads])
    for x, y in data_races(accesses):
        if old.any():  # two accesses of an earlier call have been reported there
            new = ~(old[accesses.thread[x]] & old[accesses.thread[y]])
            x, y = x[new], y[new]
            if not len(x):
                continue
        swap = (accesses.kind[x] == READ) & (accesses.kind[y] != READ)
        a, b = np.where(swap, y, x), np.where(swap, x, y)  # the write first
        report.enter(a, b)
        if accesses.execution.explicit:
            report.unfenced(a, b)
            report.unfenced(b, a)


class _Report:
    def __init__(self, folder: Folder, accesses: Accesses, early: EarlyReleases) -> None:
        self.folder = folder
        self.accesses = accesses
        self.early = early
        self.execution = accesses.execution
        self.rank = np.array([t.rank for t in self.execution.threads])[accesses.thread]
        self.site = np.full(len(accesses.row), -1)
        self.when = np.zeros(len(accesses.row), np.int64)
        self.sites: dict[Line, int] = {}
        regions = accesses.regions
        self.low = regions[:, 1]
        self.high = regions[:, 1] + (regions[:, 2] - 1) * regions[:, 4] + regions[:, 3]
        self.releases: tuple[np.ndarray, np.ndarray] | None = None  # keys of segments, and the segments

    def _resolve(self, numbers: np.ndarray) -> None:
        """Lines and observed times of accesses that race (few do)."""
        kind, when = self.accesses.kind, self.execution.source.when
        for number in np.unique(numbers[self.site[numbers] < 0]).tolist():
            op = self.execution.access_op[number]
            self.site[number] = self.sites.setdefault(self.folder.site(op), len(self.sites))
            self.when[number] = when(op, kind[number] != READ)

    def enter(self, a: np.ndarray, b: np.ndarray) -> None:
        """Fold the pairs of one batch by lines, ranks, memory object and bytes."""
        accesses = self.accesses
        self._resolve(np.concatenate((a, b)))
        both_write = accesses.kind[b] != READ
        low = np.maximum(self.low[accesses.region[a]], self.low[accesses.region[b]])
        high = np.minimum(self.high[accesses.region[a]], self.high[accesses.region[b]])
        names = (
            both_write,
            self.site[a],
            self.site[b],
            self.rank[a],
            self.rank[b],
            accesses.memory[a],
            low,
            high,
        )
        keys = np.stack((*names, a, b))
        order = np.lexsort(keys[::-1])
        keys, a, b = keys[: len(names), order], a[order], b[order]
        begin = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
        bounds = np.r_[begin, len(a)]
        raw = np.add.reduceat((self.when[a] <= self.when[b]).astype(np.int64), begin)
        explained, lines = self.early.explain(accesses, a, b) if self.early.found else (None, [])
        for k, at in enumerate(begin.tolist()):
            first, second, n = (
                self.execution.ref(int(a[at])),
                self.execution.ref(int(b[at])),
                int(bounds[k + 1] - at),
            )
            if both_write[order[at]]:
                if (self.folder.site(second.op), second) < (self.folder.site(first.op), first):
                    first, second = second, first
                subtypes = {"WAW": n}
            else:
                subtypes = {"RAW": int(raw[k]), "WAR": n - int(raw[k])}
            whys: dict[Line, int] = {}
            if explained is not None:
                numbers, times = np.unique(explained[at : bounds[k + 1]], return_counts=True)
                whys = {lines[i]: t for i, t in zip(numbers.tolist(), times.tolist(), strict=True) if i >= 0}
            place = (int(keys[5, at]), int(keys[6, at]), int(keys[7, at]), "bytes")
            group = len(subtypes)  # two writes apart from a write and a read
            for subtype, n in subtypes.items():
                if n:
                    self.folder.add("race", "error", subtype, (first, second), *place, race, group, n, whys)
                    whys = {}

    def unfenced(self, a: np.ndarray, b: np.ndarray) -> None:
        """Pairs that only race because a's pipe had not been waited for when a notify of its core left."""
        accesses, execution = self.accesses, self.execution
        clocks = accesses.clocks
        if self.releases is None:
            keyed = [
                (execution.column_of[r] << 40 | execution.segment_of[r], r) for r in execution.release_of
            ]
            pairs = np.array(sorted(keyed), np.int64).reshape(-1, 2)
            self.releases = pairs[:, 0], pairs[:, 1]
            self.scalar = np.array([t.column for t in execution.threads])[accesses.thread]
            self.issued = np.array(execution.segment_of)[np.array(execution.issue_row, np.int64)]
        keys, rows = self.releases
        piped = np.flatnonzero(accesses.column[a] >= execution.scalar_columns)
        a, b = a[piped], b[piped]
        at = np.searchsorted(keys, self.scalar[a] << 40 | self.issued[a])
        inside = at < len(keys)
        a, b, at = a[inside], b[inside], at[inside]
        row = rows[at]
        same = clocks.column_of[row] == self.scalar[a]
        seen = clocks.matrix[accesses.row[b], self.scalar[a]] >= np.array(execution.segment_of)[row]
        summary = set()
        for k in np.flatnonzero(same & seen).tolist():
            access, notify = int(a[k]), int(row[k])
            if (access, int(b[k])) in summary:
                continue
            summary.add((access, int(b[k])))
            mine = self.execution.ref(access)
            notified = Ref(mine.rank, mine.thread, *execution.release_of[notify])
            drained = bool(accesses.stores[access]) and (
                clocks.matrix[notify, accesses.column[access] - 1] >= accesses.segment[access]
            )
            refs = (notified, mine, self.execution.ref(int(b[k])))
            low, high = self.low[accesses.region[access]], self.high[accesses.region[access]]
            self.folder.add(
                "unfenced",
                "error",
                "not visible" if drained else "in flight",
                refs,
                int(accesses.memory[access]),
                int(low),
                int(high),
                "bytes",
                unfenced,
            )
