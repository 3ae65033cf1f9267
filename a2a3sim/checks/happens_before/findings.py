"""A finding, and the folding of the same finding on many ranks into one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from a2a3sim.checks.extent import Extent
from a2a3sim.checks.happens_before.clocks import Clocks
from a2a3sim.checks.happens_before.events import Line, Op, Ref
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.happens_before.summary import Fold, Message, Summary

__all__ = ["Folder", "OrderFinding", "Severity"]

Severity: TypeAlias = Literal["error", "warning", "note"]

_SEVERITIES = ("error", "warning", "note")


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
    severity: Severity
    ranks: list[int]
    sites: list[Line]
    where: dict[str, Any] | None
    message: str
    fix: str = ""
    operations: tuple[Op, ...] = ()
    pairs: list[tuple[int, ...]] = field(default_factory=list)
    count: int = 1

    @property
    def verdict(self) -> tuple[object, ...]:
        """What may not depend on the schedule: everything but the subtype and the wording."""
        return (
            self.kind,
            self.severity,
            tuple(self.sites),
            tuple(self.ranks),
            tuple(self.pairs),
            str(self.where),
        )


#: Kind, severity, memory object, unit, lines, and what else keeps apart.
_Key: TypeAlias = tuple[str, Severity, str, str, tuple[Line, ...], object]


class Folder:
    """Collects occurrences and folds those of one kind, severity, memory object and set of lines.

    Args:
        execution: whose memories and source are asked for names. Occurrences of threads that belong to an earlier
            call only are left out: they have been reported then.
        clocks: of its segments.
    """

    def __init__(self, execution: Execution, clocks: Clocks) -> None:
        self.execution = execution
        self.clocks = clocks
        self.old = {t.index for t in execution.threads if t.old}
        self._sites: dict[int, Line] = {}
        self._folds: dict[_Key, Fold] = {}

    def site(self, op: Op) -> Line:
        """File and line of an operation."""
        found = self._sites.get(id(op))
        if found is None:
            found = self._sites[id(op)] = self.execution.source.site(op)
        return found

    def add(
        self,
        kind: str,
        severity: Severity,
        subtype: str | None,
        refs: tuple[Ref, ...],
        memory: int,
        low: int,
        high: int,
        unit: str,
        message: Message,
        group: object = None,
        count: int = 1,
        explained: dict[Line, int] | None = None,
        old: bool = False,
    ) -> None:
        """One occurrence, or several that are alike.

        Args:
            refs: the operations that take part.
            memory: number of the memory object; ``low`` … ``high`` its bytes or cells (``unit``).
            message: gives message and fix from the `Summary` of the folded finding; called once.
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
            fold = self._folds[key] = Fold(refs, message, Extent(owner.name, unit, owner.shape))
        elif refs < fold.refs:
            fold.refs, fold.message = refs, message
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
            summary = Summary(self.execution, self.clocks, fold)
            message, fix = fold.message(summary)
            found.append(
                OrderFinding(
                    kind=kind,
                    subtype=max((n, s or "", s) for s, n in subtypes.items())[2],
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
