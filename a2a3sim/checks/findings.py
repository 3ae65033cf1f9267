"""A finding, and the folding of the same finding on many ranks into one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from a2a3sim.checks.wording import ranks_text

__all__ = ["Finding", "Folder", "Ref", "Told"]

_SEVERITIES = ("error", "warning", "note")


class Ref(NamedTuple):
    """An operation that takes part in a finding; refs sort by rank, thread and program order."""

    rank: int
    thread: int
    index: int
    op: object


@dataclass
class Finding:
    """A diagnosed fault.

    Attributes:
        kind, subtype, severity: what it is; severity ``error``, ``warning`` or ``note``.
        ranks: whose cores take part.
        sites: (file, line) of each operation, of one representative occurrence.
        where: ``memory``, ``ranks`` (its owners) and ``bytes`` or ``cells``: first and one past the last.
        message: what can go wrong on another schedule.
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
        where = self.where and tuple(
            (k, tuple(v) if isinstance(v, list) else v) for k, v in self.where.items()
        )
        return (self.kind, self.severity, tuple(self.sites), tuple(self.ranks), tuple(self.pairs), where)


class _Fold:
    __slots__ = ("count", "high", "low", "owners", "refs", "subtypes", "text", "tuples")

    def __init__(self, refs, low, high, text):
        self.refs, self.text = refs, text
        self.low, self.high = low, high
        self.count = 0
        self.owners: set[int] = set()
        self.tuples: set[tuple[int, ...]] = set()
        self.subtypes: dict[str | None, int] = {}


class Folder:
    """Collects occurrences and folds those of one kind, severity, memory object and set of lines.

    Args:
        program: whose memories and source are asked for names.
    """

    def __init__(self, program) -> None:
        self.program = program
        self._sites: dict[int, tuple[str, int]] = {}
        self._folds: dict[tuple, _Fold] = {}

    def site(self, op) -> tuple[str, int]:
        """File and line of an operation."""
        found = self._sites.get(id(op))
        if found is None:
            found = self._sites[id(op)] = self.program.source.site(op)
        return found

    def add(
        self, kind, severity, subtype, refs, memory, low, high, unit, text, group=None, count=1, tuples=None
    ) -> None:
        """One occurrence, or several that are alike.

        Args:
            refs: the operations that take part.
            memory: number of the memory object; ``low`` … ``high`` its bytes or cells (``unit``).
            text: ``text(fold)`` gives message and fix, called once with `Told` of the folded finding.
            group: keeps apart what else would fold.
            tuples: acting ranks of the occurrences, if there are several.
        """
        name = self.program.memories[memory].name
        sites = tuple([self.site(r.op) for r in refs])
        key = (kind, severity, name, unit, sites, group)
        fold = self._folds.get(key)
        if fold is None:
            fold = self._folds[key] = _Fold(refs, low, high, text)
        elif refs < fold.refs:
            fold.refs, fold.text = refs, text
        fold.low, fold.high = min(fold.low, low), max(fold.high, high)
        fold.count += count
        fold.owners.add(self.program.memories[memory].rank)
        fold.tuples.add(tuple([r.rank for r in refs]))
        if tuples:
            fold.tuples.update(tuples)
        fold.subtypes[subtype] = fold.subtypes.get(subtype, 0) + count

    def findings(self) -> list[Finding]:
        """The folded findings, the gravest first, in an order that does not depend on the schedule."""
        found = []
        for (kind, severity, name, unit, sites, _), fold in self._folds.items():
            subtype = max(fold.subtypes, key=lambda s, f=fold: (f.subtypes[s], s or ""))
            told = Told(self, kind, subtype, name, unit, fold)
            message, fix = fold.text(told)
            found.append(
                Finding(
                    kind=kind,
                    subtype=subtype,
                    severity=severity,
                    ranks=sorted({rank for t in fold.tuples for rank in t}),
                    sites=list(sites),
                    where={"memory": name, "ranks": sorted(fold.owners), unit: [fold.low, fold.high]},
                    message=message,
                    fix=fix,
                    operations=tuple(r.op for r in fold.refs),
                    pairs=sorted(fold.tuples),
                    count=fold.count,
                )
            )
        found.sort(key=lambda f: (_SEVERITIES.index(f.severity), f.kind, f.sites, f.ranks, str(f.where)))
        return found


class Told:
    """What a message may speak of: the folded finding's representative occurrence and its extent."""

    def __init__(self, folder: Folder, kind, subtype, name, unit, fold: _Fold) -> None:
        self._folder = folder
        self.kind, self.subtype, self.name, self.unit = kind, subtype, name, unit
        self.refs = fold.refs
        self.count = fold.count
        self.low, self.high = fold.low, fold.high
        self.owners = sorted(fold.owners)
        self.ranks = sorted({rank for t in fold.tuples for rank in t})
        self.threads = folder.program.threads

    def op(self, k: int) -> str:
        """The k-th operation in words."""
        ref = self.refs[k]
        file, line = self._folder.site(ref.op)
        return f"{self._folder.program.source.kind(ref.op)} at {file}:{line}"

    def by(self, k: int) -> str:
        """The k-th operation and who does it."""
        return f"rank {self.refs[k].rank}'s {self.op(k)}"

    @property
    def place(self) -> str:
        """The bytes or cells meant."""
        what = self.unit if self.high - self.low > 1 else self.unit[:-1]
        span = f"{self.low}-{self.high - 1}" if self.high - self.low > 1 else f"{self.low}"
        return f"{what} {span} of {self.name} of {ranks_text(self.owners)}"

    @property
    def more(self) -> str:
        """How often it happens, if more than once."""
        if self.count == 1:
            return ""
        return f" ({self.count} such cases on {ranks_text(self.ranks)}; this is one.)"
