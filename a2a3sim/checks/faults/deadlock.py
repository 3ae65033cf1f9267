"""Nothing can run any more and cores wait: who waits for what, what it saw, and where the notify went instead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias, TypeGuard

from a2a3sim.checks.sites import site_of
from a2a3sim.checks.wording import listed, plural, ranks_text
from a2a3sim.language.host.recording import Dispatch
from a2a3sim.models.operation import Cell, Operation, Signal
from a2a3sim.result import Finding
from a2a3sim.run.launch import Launch
from a2a3sim.trace.kinds import kind_of
from a2a3sim.trace.record import Trace, resolve_site
from a2a3sim.units import format_time

__all__ = ["Parked", "deadlock_finding"]

_COMPARE = {"ge": ">=", "eq": "=="}
_SHOWN = 4  # near misses and writers listed by name


_Staffing: TypeAlias = dict[str, dict[int, list[int]]]  # kernel -> number of cores -> ranks


class Parked(Protocol):
    """What waits for ever: a kernel's context, or the host's thread of a dispatch."""

    core: Any  # a2a3sim.models.core.Core, or None


def _awaits(op: Operation) -> TypeGuard[Signal]:
    return kind_of(op.kind).waits


class _Cells:
    """Who notified which cell, and the rule by which the program's ranks own cells."""

    def __init__(self, trace: Trace, world: int) -> None:
        self.world = world
        self.notifies: dict[Cell, list[Signal]] = defaultdict(list)
        self.waited: set[Cell] = set()
        self.axes: dict[object, set[int]] = {}
        self.writers: dict[object, set[int]] = defaultdict(set)
        self.ranks = {lane.rank for lane in trace.lanes}  # that have begun anything
        for op in trace.operations():
            if not isinstance(op, Signal):
                continue
            if kind_of(op.kind).notifies:
                self.notifies[op.cell].append(op)
                self._learn(op)
            elif _awaits(op):
                self.waited.add(op.cell)

    @staticmethod
    def index(cell: Cell) -> list[int]:
        memory, offset = cell
        index, parts = offset // 4, []
        for size in reversed(memory.cell_shape or (memory.nbytes // 4,)):
            index, part = divmod(index, size)
            parts.append(part)
        return parts[::-1]

    def _learn(self, op: Signal) -> None:
        """On which axes does the cell's index name its writer? Only axes on which all notifies agree count."""
        index = self.index(op.cell)
        agreeing = {k for k, part in enumerate(index) if part == op.lane.rank}
        buffer = op.cell[0].buffer
        self.writers[buffer].add(op.lane.rank)
        self.axes[buffer] = self.axes.get(buffer, agreeing) & agreeing

    def owner(self, cell: Cell) -> int | None:
        """The rank that, by the pattern of the other notifies, should have raised a cell."""
        axes = self.axes.get(cell[0].buffer)
        if not axes or len(self.writers[cell[0].buffer]) < 2:
            return None  # one writer makes no pattern
        owner = self.index(cell)[min(axes)]
        return owner if owner < self.world else None

    def near_misses(self, wait: Signal) -> list[Signal]:
        """Notifies that nobody waits for: to this rank first, then of the expected writer to other ranks."""
        buffer, rank = wait.cell[0].buffer, wait.lane.rank
        unheard = [
            op
            for cell, ops in self.notifies.items()
            if cell not in self.waited and cell[0].buffer == buffer
            for op in ops
            if op.lane.rank != rank  # its own are for others
        ]
        unheard.sort(key=_in_turn)
        here = [op for op in unheard if op.cell[0].rank == rank]
        same_cell = [op for op in unheard if op.cell[0].rank != rank and op.cell[1] == wait.cell[1]]
        writer = self.owner(wait.cell)
        if writer is None or writer == rank:
            return here or same_cell
        # Others' notifies may be for waits to which this rank has not come yet.
        return [op for op in here if op.lane.rank == writer] or [
            op for op in same_cell if op.lane.rank == writer
        ]


def _in_turn(op: Operation) -> tuple[int, int, int]:
    """By rank, then in program order: reports do not depend on the schedule."""
    return (op.lane.rank, op.lane.index, op.seq)


def deadlock_finding(launch: Launch, parked: Iterable[Parked]) -> tuple[Finding, str]:
    """The finding and the full report of a run in which only waiting cores are left.

    Args:
        parked: what waits.
    """
    trace = launch.trace
    cells = _Cells(trace, launch.recording.world)
    waits = sorted(
        (p.core.parked_on for p in parked if p.core is not None and isinstance(p.core.parked_on, Operation)),
        key=lambda op: (op.lane.rank, op.lane.core),
    )
    groups: dict[tuple[object, ...], list[Operation]] = defaultdict(list)
    for op in waits:
        groups[_key(op)].append(op)
    finished = {lane.rank for lane in trace.lanes if lane.end >= 0} - {op.lane.rank for op in waits}
    ranks = sorted({op.lane.rank for op in waits})
    cycle = _cycle(waits, cells)
    head = (
        f"{format_time(launch.engine.now)}: nothing can run, {plural(len(waits), 'core')} of {ranks_text(ranks)} "
        f"{'wait' if len(waits) > 1 else 'waits'} for ever"
    )
    lines = []
    if cycle:
        lines.append("wait-for cycle: " + " -> ".join(f"rank {r}" for r in cycle))
    lines += _others(launch, waits, finished)
    sites = [site_of(op, op.issued) for op in waits]
    where = {
        "memory": sorted({op.cell[0].name for op in waits if op.cell}),
        "cells": sorted({op.cell[0].cell_name(op.cell[1]) for op in waits if op.cell}),
    }
    where["names"] = where["cells"]
    finding = Finding(
        kind="deadlock",
        severity="error",
        ranks=ranks,
        sites=sites,
        where=where,
        message="\n".join([f"at {head}", *_paragraphs(groups, cells, finished, False), *lines]),
        fix=_fix(waits, cells, finished, _staffing(trace)),
    )
    told = [f"deadlock at {head}", *_paragraphs(groups, cells, finished, True), *lines, f"fix: {finding.fix}"]
    return finding, "\n".join(told)


def _paragraphs(
    groups: dict[tuple[object, ...], list[Operation]], cells: _Cells, finished: set[int], quoted: bool
) -> list[str]:
    return [_paragraph(group, cells, finished, quoted) for group in groups.values()]


def _others(launch: Launch, waits: list[Operation], finished: set[int]) -> list[str]:
    """What became of everything that does not wait: ranks that are over, that never began, work not yet begun."""
    trace, lines = launch.trace, []
    if finished:
        lines.append(f"{ranks_text(sorted(finished))} {'has' if len(finished) == 1 else 'have'} finished")
    started = {lane.rank for lane in trace.lanes}
    dispatches = [task for task in launch.recording.tasks if isinstance(task, Dispatch)]
    named = {task.device for task in dispatches}
    never = sorted(set(range(launch.recording.world)) - named)
    if never:
        lines.append(f"{ranks_text(never)} never started: the host body dispatches nothing to them")
    held = sorted(named - started)
    if held:
        lines.append(f"{ranks_text(held)} never started: what they are to run waits for host tensors")
    stands = {op.lane.rank: op.lane for op in waits}
    begun = {d.index for d in trace.dispatches}
    queued: dict[tuple[str, str], list[int]] = defaultdict(list)
    for task in dispatches:
        rank = task.device
        if rank in stands and task.index not in begun:
            queued[task.function.name, stands[rank].kernel].append(rank)
    for (name, kernel), ranks in queued.items():
        behind = sorted(set(ranks))
        lines.append(
            f"not begun: {name} of {ranks_text(behind)}, which stands behind {kernel} in the device's queue"
        )
    for kernel, by in _staffing(trace).items():
        shares = [f"{plural(n, 'core')} of {ranks_text(ranks)}" for n, ranks in by.items()]
        lines.append(f"{kernel} runs on {listed(shares)}")
    return lines


def _staffing(trace: Trace) -> _Staffing:
    """Kernels that run on more cores of one rank than of another: number of cores -> ranks."""
    found: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for lane in trace.lanes:
        found[lane.kernel][lane.blocks].add(lane.rank)
    return {kernel: {n: sorted(by[n]) for n in sorted(by)} for kernel, by in found.items() if len(by) > 1}


def _key(op: Operation) -> tuple[object, ...]:
    """Waits that one paragraph covers: same line, same cell index, same expectation, same value seen."""
    if not _awaits(op):
        return (op.kind, op.lane.rank, op.lane.kernel)
    return (op.site, op.cell[0].buffer, op.cell[1], op.action, op.value, _value(op.cell))


def _value(cell: Cell) -> int:
    memory, offset = cell
    return int(memory.cells()[offset >> 2])


def _paragraph(group: list[Operation], cells: _Cells, finished: set[int], quoted: bool) -> str:
    """Who waits where for what, what came, and what became of who should have raised it.

    Args:
        quoted: with the source line; a finding has it beside its site.
    """
    first = group[0]
    place = resolve_site(first.site)
    source = f": `{place.source}`" if quoted else ""
    ranks = ranks_text(sorted({op.lane.rank for op in group}))
    verb = "waits" if len({op.lane.rank for op in group}) == 1 else "wait"
    if not _awaits(first):
        blocks = listed(sorted(op.lane.block for op in group))
        return (
            f"{ranks}: block {blocks} of {first.lane.kernel} stands at {first.kind}, {place.file}:{place.line}{source}; "
            f"not all of its {first.lane.blocks} blocks come there"
        )
    memory, offset = first.cell
    lines = [
        f"{ranks} {verb} at {place.file}:{place.line}{source}",
        f"for {memory.cell_name(offset)} {_COMPARE[first.action]} {first.value}; it holds {_value(first.cell)}",
    ]
    came = sorted(cells.notifies.get(first.cell, []), key=_in_turn)
    if came:
        who = listed([f"rank {op.lane.rank} ({_at(op)}, {op.action} {op.value})" for op in came[:_SHOWN]])
        lines.append(
            f"notified so far by {who}" + (f" and {len(came) - _SHOWN} more" if len(came) > _SHOWN else "")
        )
        if first.action == "eq" and any(op.seen == first.value for op in came):
            lines.append(
                "the value passed the awaited one before the wait looked: use Ge on a growing counter"
            )
    else:
        lines.append("nobody has notified this cell")
    owner, misses = cells.owner(first.cell), cells.near_misses(first)
    if owner is not None and not misses and not any(op.lane.rank == owner for op in came):
        lines.append(_absent(owner, first, cells, finished))
    for op in misses[:_SHOWN]:
        lines.append(
            f"near miss: rank {op.lane.rank} at {_at(op)} raised {op.cell[0].cell_name(op.cell[1])} "
            f"of rank {op.cell[0].rank}, which nobody waits for"
        )
    return "\n  ".join(lines)


def _at(op: Operation) -> str:
    place = resolve_site(op.site)
    return f"{place.file}:{place.line}"


def _absent(owner: int, wait: Signal, cells: _Cells, finished: set[int]) -> str:
    """What became of the rank that should have raised the cell."""
    others = [
        op
        for cell, ops in cells.notifies.items()
        if cell[0].buffer == wait.cell[0].buffer
        for op in ops
        if op.lane.rank != owner
    ]
    here = f" (other ranks do at {_at(others[0])})" if others else ""
    if owner in finished:
        state = f"rank {owner} has finished without a notify"
    elif owner not in cells.ranks:
        state = f"rank {owner} never started"
    else:
        state = f"rank {owner} has not come to a notify"
    return f"by the pattern of the other notifies it is rank {owner}'s to raise: {state}{here}"


def _cycle(waits: list[Operation], cells: _Cells) -> list[int] | None:
    """Ranks that wait for each other in a circle, by who should raise whose cell."""
    needs: dict[int, int] = {}
    for op in waits:
        if _awaits(op):
            owner = cells.owner(op.cell)
            if owner is None:
                writers = {n.lane.rank for n in cells.notifies.get(op.cell, [])}
                owner = min(writers) if len(writers) == 1 else None
            if owner is not None and owner != op.lane.rank:
                needs.setdefault(op.lane.rank, owner)
    for start in sorted(needs):
        path = [start]
        while path[-1] in needs:
            following = needs[path[-1]]
            if following in path:
                return [*path[path.index(following) :], following]
            path.append(following)
    return None


def _fix(waits: list[Operation], cells: _Cells, finished: set[int], staffing: _Staffing) -> str:
    for op in waits:
        if not _awaits(op):
            return "let every block of the kernel reach the barrier, or launch as many blocks as come there"
        if op.lane.kernel in staffing:
            return f"run {op.lane.kernel} on as many cores on every rank"
        misses = cells.near_misses(op)
        if misses:
            near = misses[0]
            return (
                f"let the notify at {_at(near)} go to {op.cell[0].cell_name(op.cell[1])} of rank {op.lane.rank}, "
                f"or wait for {near.cell[0].cell_name(near.cell[1])}"
            )
        owner = cells.owner(op.cell)
        if owner is not None and owner in finished:
            return f"let rank {owner} notify too, even if it has nothing to contribute, or do not wait for it"
        if owner is not None and owner not in cells.ranks:
            return f"dispatch the kernel to rank {owner} too, or do not wait for it"
    return "notify the awaited cell, or wait for what is notified"
