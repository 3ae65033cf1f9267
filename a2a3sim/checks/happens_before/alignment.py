"""Transfers over the fabric whose address or length is no whole number of 32-byte blocks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection

import numpy as np

from a2a3sim.checks.happens_before import messages
from a2a3sim.checks.happens_before.events import Line
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.happens_before.findings import Folder, Severity

__all__ = ["report_alignment"]

_MOVES = ("remote_load", "remote_store", "put", "get")


def report_alignment(
    execution: Execution, folder: Folder, granule: int, builtin: Collection[Line] = ()
) -> None:
    """Warnings, one for each line; notes for what a built-in collective does, since its caller cannot help it.

    A length that is no multiple is harmless where the rest of its last block belongs to nobody: the tail of a tensor.

    Args:
        granule: bytes of a block.
        builtin: lines at which built-in collectives are called.
    """
    regions = np.array(execution.regions, np.int64).reshape(-1, 5)
    if not len(regions):
        return
    strided = regions[:, 2] > 1
    address = (regions[:, 1] % granule != 0) | (strided & (regions[:, 4] % granule != 0))
    length = (regions[:, 3] % granule != 0) & ~address
    windows = np.array([m.window for m in execution.memories], bool)
    suspects = np.flatnonzero((address | length) & windows[regions[:, 0]])
    if not len(suspects):
        return
    ends = _Tails(execution, granule)
    bad = {
        k: "address" if address[k] else "length" for k in suspects.tolist() if address[k] or ends.shared(k)
    }
    if not bad:
        return
    for number, region in enumerate(execution.access_region):
        subtype = bad.get(region)
        if subtype is None:
            continue
        op = execution.access_op[number]
        if execution.source.kind(op) not in _MOVES:
            continue
        memory, offset, rows, row_bytes, stride = execution.regions[region]
        severity: Severity = "note" if folder.site(op) in builtin else "warning"
        place = memory, offset, offset + (rows - 1) * stride + row_bytes, "bytes"
        folder.add(
            "alignment", severity, subtype, (execution.ref(number),), *place, messages.unaligned, subtype
        )


class _Tails:
    """Whether anybody uses the rest of the last block of a region's rows."""

    def __init__(self, execution: Execution, granule: int) -> None:
        self.execution = execution
        self.granule = granule
        self._runs: dict[int, list[tuple[int, int]]] = {}
        self._starts: dict[int, list[int]] = {}

    def _of(self, memory: int) -> list[tuple[int, int]]:
        runs = self._runs.get(memory)
        if runs is None:
            found = {
                (r.offset + k * r.stride, r.offset + k * r.stride + r.row_bytes)
                for r in self.execution.regions
                if r.memory == memory
                for k in range(r.rows)
            }
            cells = {(c.offset, c.offset + 4) for c in self.execution.cells.values() if c.memory == memory}
            runs = self._runs[memory] = sorted(found | cells)
            self._starts[memory] = [low for low, _ in runs]
        return runs

    def shared(self, region: int) -> bool:
        memory, offset, rows, row_bytes, stride = self.execution.regions[region]
        runs = self._of(memory)
        longest = max(high - low for low, high in runs)
        for k in range(rows):
            end = offset + k * stride + row_bytes
            stop = -(-end // self.granule) * self.granule
            at = bisect_left(self._starts[memory], stop)
            while at and runs[at - 1][0] > end - longest:
                at -= 1
                if runs[at][1] > end:
                    return True
        return False
