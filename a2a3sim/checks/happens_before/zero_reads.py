"""Reads of window bytes that nobody has written by then: the program relies on windows being filled with zeros."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from a2a3sim.checks.happens_before import messages
from a2a3sim.checks.happens_before.events import READ
from a2a3sim.checks.happens_before.findings import Folder
from a2a3sim.checks.happens_before.races import Accesses

__all__ = ["report_zero_reads"]


def report_zero_reads(folder: Folder, accesses: Accesses) -> None:
    """Notes. Windows with signal cells are left out, they start at zero by contract."""
    execution = accesses.execution
    signals = {memory for memory, _ in execution.cells}
    chosen = np.array([m.window and k not in signals for k, m in enumerate(execution.memories)], bool)
    if not len(accesses.row) or not chosen.any():
        return
    order = np.argsort(accesses.memory, kind="stable")
    order = order[chosen[accesses.memory[order]]]
    bounds = np.flatnonzero(np.diff(accesses.memory[order])) + 1
    for group in np.split(order, bounds):
        if len(group):
            _of_memory(folder, accesses, group)


def _of_memory(folder: Folder, accesses: Accesses, group: np.ndarray) -> None:
    read = accesses.kind[group] == READ
    reads, writes = group[read], group[~read]
    if not len(reads):
        return
    position = accesses.position
    # Most windows are staged before anybody reads: one look at what was written before the first read.
    before = writes[position[writes] <= position[reads].min()]
    regions = accesses.regions
    cover = _Cover(regions[np.unique(accesses.region[before])])
    if all(cover.holds(regions[name]) for name in np.unique(accesses.region[reads])):
        return
    for name, mine in _first_reads(accesses, reads):
        if cover.holds(regions[name]):
            continue
        after = accesses.before(np.full(len(writes), mine), writes)
        after &= (accesses.thread[writes] != accesses.thread[mine]) | (
            writes > mine
        )  # numbered in program order
        earlier = writes[~after]
        if not _Cover(regions[np.unique(accesses.region[earlier])]).holds(regions[name]):
            _report(folder, accesses, mine, name)


def _first_reads(accesses: Accesses, reads: np.ndarray) -> Iterator[tuple[int, int]]:
    """Of each thread the first read of each region."""
    names = np.stack((accesses.region[reads], accesses.thread[reads]))
    order = np.lexsort((accesses.position[reads], names[1], names[0]))
    names = names[:, order]
    for k in np.flatnonzero(np.r_[True, (names[:, 1:] != names[:, :-1]).any(axis=0)]).tolist():
        yield int(names[0, k]), int(reads[order[k]])


def _report(folder: Folder, accesses: Accesses, number: int, name: int) -> None:
    execution = accesses.execution
    memory, offset, rows, row_bytes, stride = execution.regions[name]
    place = memory, offset, offset + (rows - 1) * stride + row_bytes, "bytes"
    folder.add(
        "uninitialised", "note", "zero-filled window", (execution.ref(number),), *place, messages.zero_read
    )


class _Cover:
    """The union of some regions' bytes."""

    def __init__(self, regions: np.ndarray) -> None:
        lows, highs = _rows(regions)
        order = np.argsort(lows, kind="stable")
        lows, highs = lows[order], highs[order]
        if len(lows):
            reach = np.maximum.accumulate(highs)
            new = np.r_[True, lows[1:] > reach[:-1]]
            self.lows = lows[new]
            self.highs = np.maximum.reduceat(highs, np.flatnonzero(new))
        else:
            self.lows = self.highs = lows

    def holds(self, region: np.ndarray) -> bool:
        """Whether every byte of a region is in it."""
        lows, highs = _rows(region[None])
        at = np.searchsorted(self.lows, lows, side="right") - 1
        return bool((at >= 0).all() and (self.highs[at] >= highs).all())


def _rows(regions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of every row of the regions."""
    rows = regions[:, 2]
    starts = np.repeat(regions[:, 1], rows)
    step = np.arange(len(starts)) - np.repeat(np.cumsum(rows) - rows, rows)
    lows = starts + step * np.repeat(regions[:, 4], rows)
    return lows, lows + np.repeat(regions[:, 3], rows)
