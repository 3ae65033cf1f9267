"""A finding, and the folding of the same finding on many ranks into one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from a2a3sim.checks.extent import Extent
from a2a3sim.checks.happens_before.summary import Summary

__all__ = ["Folder", "OrderFinding", "Ref"]

_SEVERITIES = ("error", "warning", "note")


class Ref(NamedTuple):
    """An operation that takes part in a finding; refs sort by rank, thread and program order."""

    rank: int
    thread: int
    index: int
    op: object


@dataclass
class OrderFinding:
    """A diagnosed fault.

    Attributes:
        kind, subtype, severity: what it is; severity ``error``, ``warning`` or ``note``.
        ranks: whose cores take part.
        sites: (file, line) of each operation, of one representative occurrence.
        where: ``memory``, ``ranks`` (its owners), ``bytes`` or ``cells`` (first and one past the last), and
            ``pieces`` where the ranges of the owners differ (`a2a3sim.checks.extent`).
        message: what can go wrong on another schedule; ``(1)`` is the first of ``sites``.
        fix: the cheapest change that repairs it.
        operations: the operations of that occurrence, in the order of ``sites``.
        pairs: the acting ranks of every occurrence, in the order of ``sites``.
        count: how many occurrences were folded into this finding.
    """

    kind: str
    subtype: str | None
    severity: str
    ranks: list[int]
    sites: list[tuple[str, int]]
    where: dict | None
    message: str
    fix: str = ""
    operations: tuple = ()
    pairs: list[tuple[int, ...]] = field(default_factory=list)
    count: int = 1

    @property
    def verdict(self) -> tuple:
        """What may not depend on the schedule: everything but the subtype and the wording."""
        return (
            self.kind,
            self.severity,
            tuple(self.sites),
            tuple(self.ranks),
            tuple(self.pairs),
            str(self.where),
        )


class _Fold:
    """Occurrences of one finding."""

    __slots__ = ("count", "explained", "extent", "refs", "subtypes", "text", "tuples")

    def __init__(self, refs, text, extent: Extent) -> None:
        self.refs, self.text = refs, text
        self.extent = extent
        self.count = 0
        self.explained: dict[tuple[str, int], int] = {}  # line of a wait -> races that it explains
        self.tuples: set[tuple[int, ...]] = set()
        self.subtypes: dict[str | None, int] = {}


class Folder:
    """Collects occurrences and folds those of one kind, severity, memory object and set of lines.

    Args:
        program: whose memories and source are asked for names. Occurrences of threads that belong to an earlier
            call only are left out: they have been reported then.
        clocks: of its segments.
    """

    def __init__(self, execution, clocks=None) -> None:
        self.execution = execution
        self.clocks = clocks
        self.old = {t.index for t in execution.threads if t.old}
        self._sites: dict[int, tuple[str, int]] = {}
        self._folds: dict[tuple, _Fold] = {}

    def site(self, op) -> tuple[str, int]:
        """File and line of an operation."""
        found = self._sites.get(id(op))
        if found is None:
            found = self._sites[id(op)] = self.execution.source.site(op)
        return found

    def add(
        self,
        kind,
        severity,
        subtype,
        refs,
        memory,
        low,
        high,
        unit,
        text,
        group=None,
        count=1,
        explained=None,
        old=False,
    ) -> None:
        """One occurrence, or several that are alike.

        Args:
            refs: the operations that take part.
            memory: number of the memory object; ``low`` … ``high`` its bytes or cells (``unit``).
            text: ``text(summary)`` gives message and fix, called once with `Summary` of the folded finding.
            group: keeps apart what else would fold.
            explained: line of a wait → how many of the occurrences it explains.
            old: also if all operations belong to an earlier call.
        """
        if self.old and not old and all(r.thread in self.old for r in refs):
            return
        owner = self.execution.memories[memory]
        sites = tuple([self.site(r.op) for r in refs])
        key = (kind, severity, owner.name, unit, sites, group)
        fold = self._folds.get(key)
        if fold is None:
            fold = self._folds[key] = _Fold(refs, text, Extent(owner.name, unit, owner.shape))
        elif refs < fold.refs:
            fold.refs, fold.text = refs, text
        fold.extent.add(owner.rank, low, high)
        fold.count += count
        fold.tuples.add(tuple([r.rank for r in refs]))
        fold.subtypes[subtype] = fold.subtypes.get(subtype, 0) + count
        for line, times in (explained or {}).items():
            fold.explained[line] = fold.explained.get(line, 0) + times

    def findings(self) -> list[OrderFinding]:
        """The folded findings, the gravest first, in an order that does not depend on the schedule."""
        found = []
        for (kind, severity, _, _, sites, _), fold in self._folds.items():
            subtypes = fold.subtypes
            summary = Summary(self, kind, fold)
            message, fix = fold.text(summary)
            found.append(
                OrderFinding(
                    kind=kind,
                    subtype=max(subtypes, key=lambda s, n=subtypes: (n[s], s or "")),
                    severity=severity,
                    ranks=summary.ranks,
                    sites=list(sites),
                    where=fold.extent.where(),
                    message=message,
                    fix=fix,
                    operations=tuple(r.op for r in fold.refs),
                    pairs=sorted(fold.tuples),
                    count=fold.count,
                )
            )
        found.sort(key=lambda f: (_SEVERITIES.index(f.severity), f.kind, f.sites, f.ranks, str(f.where)))
        return found
