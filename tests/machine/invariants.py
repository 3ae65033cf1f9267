"""What must hold for every run of the machine, whatever the program: checked on its trace.

Each check returns the violations that it finds as tuples that say what and where.
"""

from __future__ import annotations

from itertools import pairwise

from a2a3sim.models.overlap import overlaps
from a2a3sim.trace.critical_path import walk

__all__ = ["times", "violations"]

_TIMES = ("begun", "issued", "start", "drained", "visible", "end", "applied")


def times(ran) -> list:
    """Every time of every operation, to compare runs with."""
    return [
        (
            (lane.rank, lane.core, lane.start, lane.end, lane.ub_peak_bytes),
            *((op.kind, *(getattr(op, name) for name in _TIMES)) for op in lane.operations),
        )
        for lane in ran.trace.lanes
    ]


def violations(ran, platform, fences: str) -> list[tuple]:
    """All checks of one run on a platform."""
    found = [*_path(ran), *_memory_of_signals(ran, platform.signal), *_capacities(ran)]
    for lane in ran.trace.lanes:
        found += [(*v, lane) for v in _lane(lane)]
        found += [(*v, lane) for v in _pipes(lane, platform.pipe.moves_in_flight)]
        found += [(*v, lane) for v in _own_bytes(lane)]
        found += [(*v, lane) for v in _notifies(lane, fences)]
        found += [(*v, lane) for v in _waits(lane, platform.signal.poll)]
        if fences == "statement":
            found += [(*v, lane) for v in _fences(lane)]
        if platform.ub.usable is not None:
            found += [(*v, lane) for v in _space(lane, platform.ub.usable)]
    return found


def _path(ran):
    """The critical path abuts, adds up, and tells of no operation before it began or after it was over."""
    result = ran.result
    path = result.critical_path
    if sum(s.end_ps - s.start_ps for s in path) != result.kernel_ps:
        yield ("critical path does not add up", result.kernel_ps)
    yield from (("critical path gap", a, b) for a, b in pairwise(path) if a.end_ps != b.start_ps)
    yield from (("empty segment", s) for s in path if s.end_ps <= s.start_ps)
    if len({lane.start for lane in ran.trace.lanes}) == 1:
        yield from (("launch on the path of a joint start", s) for s in path if s.spent_on == "launch")
    for step in walk(ran.trace):
        op = step.op
        if op is not None and not op.begun <= step.start < step.end <= max(op.end, op.visible):
            yield ("time of another", step, op.begun, op.end)


def _lane(lane):
    """Times are integers and in order, the scalar pipe never goes back, operands come first."""
    time, blocked = lane.start, lane.start
    for op in lane.operations:
        if any(type(getattr(op, name)) is not int for name in _TIMES):
            yield ("not an integer", op)
        if not max(time, blocked) <= op.begun <= op.issued <= op.start <= op.end:
            yield ("out of order", op, time, blocked, op.begun, op.issued)
        time = op.issued
        if op.kind in ("wait", "sync_all", "read", "write", "fence", "drain"):
            blocked = op.end
        yield from (("operand", op, o) for o in op.operands if op.start < _over(o))
    if lane.end < max([time, blocked, *(max(op.visible, op.applied) for op in lane.operations)]):
        yield ("ends too early",)


def _over(op) -> int:
    """When an operation needs its tiles no longer."""
    return op.drained if op.writes else op.end


def _pipes(lane, slots: int | None):
    """Starts are in order, at most ``slots`` moves in flight, vector instructions one at a time."""
    for pipe in ("MTE2", "MTE3", "V"):
        ops = [op for op in lane.operations if op.pipe == pipe]
        yield from (("starts out of order", a, b) for a, b in pairwise(ops) if b.start < a.start)
        steps = [(op.start, 1) for op in ops if _over(op) > op.start]
        steps += [(_over(op), -1) for op in ops if _over(op) > op.start]
        flying = 0
        for _, step in sorted(steps):
            flying += step
            if flying > (1 if pipe == "V" else slots or flying):
                yield ("too many in flight", pipe, flying)


def _own_bytes(lane):
    """A core's accesses to the same bytes of global memory keep program order."""
    accesses = [op for op in lane.operations if op.reads or op.writes]
    for k, later in enumerate(accesses):
        for earlier in accesses[:k]:
            if later.start < (earlier.visible if earlier.writes else earlier.drained) and _conflict(
                earlier, later
            ):
                yield ("own bytes", earlier, later)


def _conflict(a, b) -> bool:
    pairs = [(v, w) for v in a.writes for w in (*b.reads, *b.writes)] + [
        (v, w) for v in a.reads for w in b.writes
    ]
    return any(v.memory is w.memory and overlaps(v, w) for v, w in pairs)


def _fences(lane):
    """Nothing is issued before a store into a window, a put or a get is acknowledged."""
    held, site = lane.start, None
    for op in lane.operations:
        if op.site != site and op.begun < held:
            yield ("issued before an acknowledgement", op, held)
        if op.kind in ("put", "get") or any(w.memory.kind == "window" for w in op.writes):
            # The chunks of one put or get have one site.
            held, site = max(held, op.end), op.site if op.kind in ("put", "get") else None


def _notifies(lane, fences: str):
    """A notify leaves when the accesses before it are complete, and overtakes none sent there before."""
    complete, before = lane.start, {}
    for op in lane.operations:
        if op.reads or op.writes:
            complete = max(complete, op.visible)
        elif op.kind == "notify":
            leaves = op.issued if fences == "explicit" else max(op.issued, complete)
            if op.start != leaves:
                yield ("leaves", op, op.start, leaves)
            rank = op.cell[0].rank
            earlier = before.get(rank)
            if earlier is not None and (op.order < earlier.order or op.applied < earlier.applied):
                yield ("notifies overtake", earlier, op)
            before[rank] = op


def _waits(lane, poll: int):
    """A wait ends at the first poll that sees the update which ended it; own notifies come before it."""
    own = lane.start
    for op in lane.operations:
        if op.kind == "notify" and op.cell[0].rank == lane.rank:
            own = max(own, op.applied)
        elif op.kind == "wait":
            ended = op.end
            if op.by is not None and op.by.applied > op.start:
                late = op.by.applied - op.start
                ended = op.start + (-(-late // poll) * poll if poll else late)
            elif op.end != op.start:
                ended = op.start
            if op.end != ended or op.seen < op.value or op.start < own:
                yield ("wait", op, op.end, ended, op.seen, own)


def _memory_of_signals(ran, signal):
    """Cells count exactly, and updates of one line keep their distance."""
    cells, lines = {}, {}
    updates = [op for lane in ran.trace.lanes for op in lane.operations if op.kind == "notify"]
    for op in sorted(updates, key=lambda op: op.order):
        memory, offset = op.cell
        cells[op.cell] = cells.get(op.cell, 0) + op.value
        if op.seen != cells[op.cell]:
            yield ("cell", op, op.seen, cells[op.cell])
        line = (memory, offset // signal.line)
        if op.applied < lines.get(line, 0) + signal.atomic:
            yield ("line", op, lines[line])
        lines[line] = op.applied


def _space(lane, limit: int):
    """Tiles of unfinished operations fit into UB; a result may stand where an operand stands."""
    users, place = {}, {}
    for op in lane.operations:
        if op.staged is not None:
            staging = op.staged.operands[0]
            place[op] = place.get(staging, staging)
            users[place[op]].append(op)
        elif op.makes:
            users[op] = [op]
        for made in set(op.operands):
            users[place.get(made, made)].append(op)
    for moment in sorted({op.begun for op in lane.operations if op.makes}):
        used = sum(m.makes for m, us in users.items() if any(u.issued <= moment < _over(u) for u in us))
        for op in lane.operations:
            if (
                op.pipe == "V"
                and op.issued <= moment < op.end
                and any(
                    m.makes >= op.makes
                    and all(_over(u) <= op.start for u in users[m] if u.writes and u.seq < op.seq)
                    for m in op.operands
                )
            ):
                used -= op.makes
        if used > limit:
            yield ("UB", moment, used, limit)


def _capacities(ran):
    """What flowed through a capacity within any time fits into it, and bytes are counted exactly."""
    flows = {}
    for lane in ran.trace.lanes:
        for op in lane.operations:
            if op.flow is not None:
                for capacity, _, weight, *_ in op.flow.route.uses:
                    flows.setdefault(capacity.name, []).append(
                        (op.flow.start, op.flow.finish, op.nbytes, weight)
                    )
    for capacity in ran.trace.capacities:
        found = flows[capacity.name]
        if capacity.bytes != sum(nbytes for _, _, nbytes, _ in found):
            yield ("bytes", capacity)
        for start in sorted({f[0] for f in found})[:12]:
            for end in sorted({f[1] for f in found})[-12:]:
                raw = sum(n * w for s, e, n, w in found if s >= start and e <= end) / 2**52
                if (
                    end > start and raw > capacity.rate * (end - start + 2 * len(found)) / 1e12 + 1e-6
                ):  # ends are whole ps
                    yield ("above capacity", capacity, start, end, raw)
