"""The columns of a sweep: every parameter and result of a run by its dotted RunResult name.

Lists become aggregates: ``per_rank.FIELD.min``, ``.max`` and ``.sum`` over ranks, ``links.FIELD.max`` and, for the
utilisation, ``.median`` and ``.min`` over links, ``critical_path.CAUSE_percent``, ``findings.SEVERITY`` as counts.
What a simulation cost in wall time is left out, so that equal sweeps give equal files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

from a2a3sim.experiments.conventions import algbw, busbw, size_of
from a2a3sim.experiments.runner import Outcome
from a2a3sim.trace import GROUPS, summary

__all__ = ["OVERRIDES", "PARAMETERS", "Column", "columns", "row"]

OVERRIDES = "overrides."  # in front of the platform parameters that were set
_PIPES = ("S", "MTE2", "V", "MTE3", "SDMA")
_RANK_FIELDS = (
    "remote_read_bytes", "remote_write_bytes", "local_read_bytes", "local_write_bytes", "notifies", "waits", "wait_ps",
    "ub_peak_bytes",
)  # fmt: skip


class Column(NamedTuple):
    """One column: its name, what its values are (``int``, ``float``, ``str``, ``bool``), and where they come from."""

    name: str
    kind: type
    of: Callable[[Facts], Any]


def _result(kind: type, *names: str) -> list[Column]:
    return [Column(name, kind, attrgetter(f"result.{name}")) for name in names]


def _part(kind: type, part: str, *names: str) -> list[Column]:
    def of(name: str) -> Callable[[Facts], Any]:
        return lambda facts: getattr(
            getattr(facts.result, part), name, None
        )  # None where there is no such part

    return [Column(f"{part}.{name}", kind, of(name)) for name in names]


def _ranks(name: str) -> list[Column]:
    get = attrgetter(name)

    def over(ranks: Callable[[list[int]], int]) -> Callable[[Facts], int]:
        return lambda facts: ranks([get(use) for use in facts.result.per_rank] or [0])

    return [Column(f"per_rank.{name}.{f.__name__}", int, over(f)) for f in (min, max, sum)]


def _links(name: str, kind: type, word: str, over) -> Column:
    def get(facts):
        values = [getattr(link, name) for link in facts.result.links]
        return over(values) if values else None

    return Column(f"links.{name}.{word}", kind, get)


def _share(group: str) -> Column:
    return Column(
        f"critical_path.{group.replace(' ', '_')}_percent",
        float,
        lambda facts: round(facts.shares.get(group, 0.0), 6),
    )


def _findings(severity: str) -> Column:
    def get(facts):
        return sum(f.severity == severity and f.suppressed is None for f in facts.result.findings)

    return Column(f"findings.{severity}", int, get)


class Facts:
    """A finished point as the columns see it; what several of them need is worked out once."""

    def __init__(self, outcome: Outcome) -> None:
        self.result = outcome.result
        self.form = outcome.form
        self.closed_form_bytes = outcome.closed_form_bytes
        self.size = size_of(outcome.form, outcome.job)
        self.shares = summary(outcome.result.critical_path)


#: What a sweep can vary, beside the platform's parameters.
PARAMETERS = (
    "collective", "algorithm", "platform", "dtype", "ranks", "bytes_per_rank", "cores", "fences", "skew_ps", "seed",
)  # fmt: skip

_FIRST: list[Column] = [
    Column("collective", str, lambda facts: facts.form.collective),
    *_result(str, "algorithm", "platform", "dtype"),
    *_result(int, "ranks", "bytes_per_rank", "cores"),
    *_result(str, "fences"),
    *_result(int, "skew_ps", "seed"),
]

_AFTER: list[Column] = [
    *_result(bool, "timing_only"),
    *_result(str, "version", "program", "platform_hash"),
    Column("placement", str, lambda facts: " ".join(map(str, facts.result.placement))),
    *_result(int, "kernel_ps", "sync_ps", "total_ps", "bound_ps"),
    Column("percent_of_bound", float, lambda facts: facts.result.percent_of_bound),
    Column("size", int, lambda facts: facts.size),
    Column("algbw", float, lambda o: algbw(o.size, o.result.kernel_ps)),
    Column("busbw", float, lambda o: busbw(o.form.collective, o.result.ranks, o.size, o.result.kernel_ps)),
    Column("max_remote_bytes", int, lambda facts: facts.result.max_remote_bytes),
    Column("closed_form_bytes", int, lambda facts: facts.closed_form_bytes),
    *_result(int, "barriers", "rounds"),
    *[_share(group) for group in GROUPS],
    *[column for name in _RANK_FIELDS for column in _ranks(name)],
    *[column for pipe in _PIPES for column in _ranks(f"pipe_busy_ps.{pipe}")],
    _links("bytes", int, "max", max),
    _links("busy_ps", int, "max", max),
    _links("peak_flows", int, "max", max),
    _links("utilisation", float, "min", min),
    _links("utilisation", float, "median", median),
    _links("utilisation", float, "max", max),
    *[_findings(severity) for severity in ("error", "warning", "note")],
    *_part(bool, "numerics", "ok"),
    *_part(int, "numerics", "wrong"),
    *_part(float, "numerics", "max_abs_error", "max_rel_error"),
    *_part(int, "cost", "events", "switches", "operations"),
]


def columns(stated: Mapping[str, str | None]) -> list[Column]:
    """The columns of a sweep; ``stated`` are names of what results state in ``overrides``, with their defaults."""

    def override(key: str) -> Column:
        return Column(OVERRIDES + key, str, lambda facts: facts.result.overrides.get(key, stated[key]))

    return [*_FIRST, *map(override, stated), *_AFTER]


def row(outcome: Outcome, stated: Mapping[str, str | None]) -> list[Any]:
    """The values of a finished point, in the order of `columns`."""
    facts = Facts(outcome)
    return [column.of(facts) for column in columns(stated)]
