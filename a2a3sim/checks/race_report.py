"""Races as findings: one per pair of lines, with all the ranks; and the notifies that left too early."""

from __future__ import annotations

import numpy as np

from a2a3sim.checks.events import READ
from a2a3sim.checks.findings import Folder, Ref
from a2a3sim.checks.races import Accesses, data_races

__all__ = ["report_races"]


def report_races(folder: Folder, accesses: Accesses, watchers=()) -> None:
    """Find the races between accesses and enter them.

    Args:
        watchers: each is told of all racing pairs, as ``watcher(accesses, a, b)``.
    """
    report = _Report(folder, accesses)
    for a, b in data_races(accesses):
        swap = (accesses.kind[a] == READ) & (accesses.kind[b] != READ)
        a, b = np.where(swap, b, a), np.where(swap, a, b)  # the write first
        report.enter(a, b)
        if accesses.program.explicit:
            report.unfenced(a, b)
            report.unfenced(b, a)
        for watcher in watchers:
            watcher(accesses, a, b)


class _Report:
    def __init__(self, folder: Folder, accesses: Accesses) -> None:
        self.folder = folder
        self.accesses = accesses
        self.program = accesses.program
        self.rank = np.array([t.rank for t in self.program.threads])[accesses.thread]
        self.site = np.full(len(accesses.row), -1)
        self.when = np.zeros(len(accesses.row), np.int64)
        self.sites: dict[tuple, int] = {}
        regions = accesses.regions
        self.low = regions[:, 1]
        self.high = regions[:, 1] + (regions[:, 2] - 1) * regions[:, 4] + regions[:, 3]
        self.releases = None

    def ref(self, number: int) -> Ref:
        program = self.program
        thread = program.threads[program.access_thread[number]]
        return Ref(thread.rank, thread.index, program.access_index[number], program.access_op[number])

    def _resolve(self, numbers: np.ndarray) -> None:
        """Lines and observed times of accesses that race (few do)."""
        kind, when = self.accesses.kind, self.program.source.when
        for number in np.unique(numbers[self.site[numbers] < 0]).tolist():
            op = self.program.access_op[number]
            self.site[number] = self.sites.setdefault(self.folder.site(op), len(self.sites))
            self.when[number] = when(op, kind[number] != READ)

    def enter(self, a: np.ndarray, b: np.ndarray) -> None:
        """Fold the pairs of one batch by lines, ranks and memory object."""
        accesses = self.accesses
        self._resolve(np.concatenate((a, b)))
        both_write = accesses.kind[b] != READ
        keys = np.stack(
            (both_write, self.site[a], self.site[b], self.rank[a], self.rank[b], accesses.memory[a], a, b)
        )
        order = np.lexsort(keys[::-1])
        keys, a, b = keys[:6, order], a[order], b[order]
        begin = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
        low = np.maximum(self.low[accesses.region[a]], self.low[accesses.region[b]])
        high = np.minimum(self.high[accesses.region[a]], self.high[accesses.region[b]])
        low, high = np.minimum.reduceat(low, begin), np.maximum.reduceat(high, begin)
        count = np.diff(np.r_[begin, len(a)])
        raw = np.add.reduceat((self.when[a] <= self.when[b]).astype(np.int64), begin)
        for k, at in enumerate(begin.tolist()):
            first, second, n = self.ref(int(a[at])), self.ref(int(b[at])), int(count[k])
            if both_write[order[at]]:
                subtype = "WAW"
                if (self.folder.site(second.op), second) < (self.folder.site(first.op), first):
                    first, second = second, first
            else:
                subtype = "RAW" if 2 * int(raw[k]) >= n else "WAR"
            memory = int(accesses.memory[a[at]])
            group = "WAW" if subtype == "WAW" else "RW"
            self.folder.add(
                "race", "error", subtype, (first, second), memory, int(low[k]), int(high[k]), "bytes", _race, group, n
            )

    def unfenced(self, a: np.ndarray, b: np.ndarray) -> None:
        """Pairs that only race because a's pipe had not been waited for when a notify of its core left."""
        accesses, program = self.accesses, self.program
        clocks = accesses.clocks
        if self.releases is None:
            rows = sorted(program.release_of)
            keyed = sorted((program.column_of[row] << 40 | program.segment_of[row], row) for row in rows)
            self.releases = np.array([k for k, _ in keyed], np.int64), np.array([r for _, r in keyed], np.int64)
            self.scalar = np.array([t.column for t in program.threads])[accesses.thread]
            self.issued = np.array(program.segment_of)[np.array(program.issue_row, np.int64)]
        keys, rows = self.releases
        piped = np.flatnonzero(accesses.column[a] >= program.scalar_columns)
        a, b = a[piped], b[piped]
        at = np.searchsorted(keys, self.scalar[a] << 40 | self.issued[a])
        inside = at < len(keys)
        a, b, at = a[inside], b[inside], at[inside]
        row = rows[at]
        same = clocks.column_of[row] == self.scalar[a]
        seen = clocks.matrix[accesses.row[b], self.scalar[a]] >= np.array(program.segment_of)[row]
        told = set()
        for k in np.flatnonzero(same & seen).tolist():
            access, notify = int(a[k]), int(row[k])
            if (access, int(b[k])) in told:
                continue
            told.add((access, int(b[k])))
            mine = self.ref(access)
            notified = Ref(mine.rank, mine.thread, _index_of(program, notify), program.release_of[notify])
            drained = bool(accesses.stores[access]) and (
                clocks.matrix[notify, accesses.column[access] - 1] >= accesses.segment[access]
            )
            refs = (notified, mine, self.ref(int(b[k])))
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
                _unfenced,
            )


def _index_of(program, row: int) -> int:
    op = program.release_of[row]
    for cell in program.cells.values():
        for update in cell.by.get(program.column_of[row], ()):
            if update.op is op:
                return update.index
    return -1


def _race(told):
    first, second = told.by(0), told.by(1)
    if told.subtype == "WAW":
        message = (
            f"{first} and {second} both write {told.place} and nothing orders them: which value stays depends on "
            f"the schedule.{told.more}"
        )
        fix = (
            f"Let one of them wait for a notify that the other rank sends after its write, or give each writer "
            f"bytes of its own in {told.name}."
        )
    elif told.subtype == "RAW":
        message = (
            f"{second} takes bytes that {first} writes ({told.place}), but no wait guarantees that the write is "
            f"over by then: on another schedule the old bytes are read.{told.more}"
        )
        fix = (
            f"Let rank {told.refs[0].rank} notify after the write and rank {told.refs[1].rank} wait, before it "
            f"reads, for a value that only this notify can bring about."
        )
    else:
        message = (
            f"{first} may overwrite {told.place} while {second} has still to read it: no wait guarantees that the "
            f"read is over.{told.more}"
        )
        fix = (
            f"Let rank {told.refs[0].rank} wait, before it writes again, for a notify that rank "
            f"{told.refs[1].rank} sends after its read (a closing barrier or a credit), or alternate two buffers."
        )
    return message, fix


def _unfenced(told):
    if told.subtype == "not visible":
        state, cure = "has left the core but need not be visible to other devices", "pl.system.fence()"
    else:
        state, cure = "may still be under way in its pipe", "pl.system.fence()"
    message = (
        f"{told.by(0)} leaves while {told.op(1)} before it ({told.place}) {state}: {told.by(2)} relies on the "
        f"notify and is not ordered with it.{told.more}"
    )
    return message, f"Put {cure} between the two; a barrier after the notify does not add the missing order."
