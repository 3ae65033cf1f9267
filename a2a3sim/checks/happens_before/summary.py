"""What the wording of a finding may speak of: its operations, ranks, bytes, and how often it occurs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TypeAlias

from a2a3sim.checks.extent import Extent
from a2a3sim.checks.happens_before.clocks import Clocks
from a2a3sim.checks.happens_before.events import Line, Ref
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.wording import listed, ranks_text, short_place

__all__ = ["Fold", "Message", "Summary"]

Message: TypeAlias = "Callable[[Summary], tuple[str, str]]"  # what can go wrong, and the fix


class Fold:
    """Occurrences of one finding; ``refs`` are the operations of the first."""

    __slots__ = ("count", "explained", "extent", "message", "refs", "subtypes", "tuples")

    def __init__(self, refs: tuple[Ref, ...], message: Message, extent: Extent) -> None:
        self.refs, self.message = refs, message
        self.extent = extent
        self.count = 0
        self.explained: dict[Line, int] = {}  # line of a wait -> races that it explains
        self.tuples: set[tuple[int, ...]] = set()
        self.subtypes: dict[str | None, int] = {}


class Summary:
    """A folded finding as its message sees it.

    Attributes:
        refs: the operations of one representative occurrence; ``(1)`` is the first.
        ranks: whose cores take part in any.
    """

    def __init__(self, execution: Execution, clocks: Clocks, fold: Fold) -> None:
        self._execution = execution
        self._clocks = clocks
        self._fold = fold
        self.refs = fold.refs
        self.count = fold.count
        self.name = fold.extent.name
        self.owners = fold.extent.owners
        self.ranks = sorted({rank for t in fold.tuples for rank in t})
        self.threads = execution.threads
        self.subtypes = {s for s in fold.subtypes if s}

    def op(self, k: int) -> str:
        """The k-th operation in words, with its number: ``remote_load (2)``."""
        return f"{self._execution.source.kind(self.refs[k].op)} ({k + 1})"

    def by(self, k: int) -> str:
        """The k-th operation and who does it."""
        return f"rank {self.refs[k].rank}'s {self.op(k)}"

    @property
    def place(self) -> str:
        """The bytes or cells meant."""
        return self._fold.extent.text

    @property
    def calls(self) -> bool:
        """Does it span two calls of a worker?"""
        return len({self.threads[r.thread].call for r in self.refs}) > 1

    @property
    def launches(self) -> bool:
        """Does it span two dispatches of a device?"""
        return len({self.threads[r.thread].launch for r in self.refs}) > 1

    @property
    def loose(self) -> tuple[str, str, int] | None:
        """(earlier kernel, kernel, rank): the other access is over when the earlier one ends, but nothing orders them."""
        execution, clocks = self._execution, self._clocks
        for ref, other in (self.refs[:2], self.refs[1::-1]):
            mine = self.threads[ref.thread]
            row = execution.access_row[bisect_left(execution.access_index, other.order)]
            column, segment = execution.column_of[row], execution.segment_of[row]
            ordered = execution.follows(mine)
            for thread in self.threads[: ref.thread]:
                same = (thread.rank, thread.launch, thread.call) == (mine.rank, mine.launch, mine.call)
                if (
                    not same
                    or thread.group == mine.group
                    or thread.group in ordered
                    or thread.end_row is None
                ):
                    continue
                if clocks.matrix[thread.end_row, column] >= segment:
                    return thread.kernel, mine.kernel, mine.rank
        return None

    @property
    def more(self) -> str:
        """How often it happens, and among which ranks, if more than once."""
        if self.count == 1:
            return ""
        pairs = {tuple(dict.fromkeys(t)) for t in self._fold.tuples}
        among = f"on {ranks_text(self.ranks)}"
        if all(len(p) == 2 for p in pairs):
            meetings = {tuple(sorted(p)) for p in pairs}
            count = len(self.ranks)
            if len(meetings) == 1:
                among = f"between ranks {listed(self.ranks)}"
            elif len(meetings) == count * (count - 1) // 2:
                among = f"between every two of {ranks_text(self.ranks)}"
            elif len(meetings) <= 4:
                among = f"between ranks {listed([f'{a} and {b}' for a, b in sorted(meetings)])}"
        return f" {self.count} such pairs {among}." if len(self.refs) > 1 else f" {self.count} times {among}."

    @property
    def explained(self) -> str:
        """Which wait should have ordered races, where one does."""
        lines = self._fold.explained
        if not lines:
            return ""
        line = max(lines, key=lambda at: (lines[at], at))
        covered = sum(lines.values())
        share = "" if covered >= self.count else f"{covered} of them "
        place = short_place(*line)
        if share:
            return f" {share}arise because the wait at {place} is released early."
        return f" The wait at {place} should order them but is released early."

    @property
    def wholly_explained(self) -> Line | None:
        """The wait whose repair orders all of them."""
        lines = self._fold.explained
        if len(lines) == 1 and sum(lines.values()) >= self.count:
            return next(iter(lines))
        return None
