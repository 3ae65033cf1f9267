"""Runs as Chrome trace-event JSON, which Perfetto and chrome://tracing open.

A process is a device, a thread a pipe of one of its cores. Slices of a thread follow each other: what the scalar
pipe issued, waited for or was held by, vector instructions, phases, and when MTE2 and MTE3 had moves in flight.
The moves themselves overlap, so each is an async event of its device. Arrows lead from a notify to the wait it
ended, and from the memory that gave bytes to the one that took them: a device's thread ``memory`` shows when it
served its peers. One more process counts the payload on every link, each transfer at its mean rate.

Times are µs since the first kernel start of each run, exact to the ps. Arguments have the names of the vendor's
profiler: ``src rank``, ``dst rank``, ``size(Byte)``, ``bandwidth(GB/s)``, ``notify id``.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from json import dumps
from pathlib import Path

from a2a3sim.errors import ConfigError
from a2a3sim.files import write_whole
from a2a3sim.models.operation import UNKNOWN
from a2a3sim.reports.heading import header
from a2a3sim.trace.barriers import by_core
from a2a3sim.trace.intervals import slot_for, unions
from a2a3sim.trace.kinds import ends, kind_of, side
from a2a3sim.trace.lanes import held
from a2a3sim.trace.measures import run_span
from a2a3sim.trace.phases import phase_spans
from a2a3sim.trace.table import Table

__all__ = ["check_trace_path", "trace_text", "write_trace"]

_MEMORY = 0  # thread of a device that shows when its memory served peers
_THREADS = {"phases": 1, "S": 2, "MTE2": 3, "V": 4, "MTE3": 5}  # per core, times _PER_CORE
_PER_CORE = 8
_NS = 1000

# At one instant: ends before slices, slices before what binds to them, arrows' starts before their ends.
_END, _SLICE, _BEGIN, _LEAVE, _ARRIVE, _COUNT = range(6)


def check_trace_path(path: str | Path) -> Path:
    """Refuse a name that is no ``.json`` or ``.json.gz``.

    Raises:
        ConfigError: another suffix.
    """
    path = Path(path)
    if not path.name.endswith((".json", ".json.gz")):
        raise ConfigError(f"a trace must be a .json or .json.gz file, got {str(path)!r}")
    return path


def write_trace(path: str | Path, runs: Iterable[tuple]) -> Path:
    """Write runs, each (name, trace, result), whole or not at all; equal runs give equal bytes.

    Raises:
        ConfigError: the path is no ``.json`` or ``.json.gz``.
    """
    path = check_trace_path(path)
    data = trace_text(runs).encode()
    if path.name.endswith(".gz"):
        data = gzip.compress(data, 4, mtime=0)
    return write_whole(path, data)


def trace_text(runs: Iterable[tuple]) -> str:
    """The JSON document of runs, each (name, trace, result)."""
    metadata: list[str] = []
    events: list[tuple] = []
    heads = {}
    pid, arrow = 1, 1
    for number, (name, trace, result) in enumerate(runs):
        title = name if number == 0 or name not in heads else f"{name} #{number + 1}"
        heads[title] = header(result)
        run = _Run(title, trace, result, pid, arrow, metadata, events)
        run.draw()
        pid, arrow = pid + result.ranks + 1, run.arrow
    events.sort()
    lines = metadata + [event[-1] for event in events]
    body = ",\n".join(lines)
    return f'{{"displayTimeUnit":"ns","otherData":{dumps(heads)},"traceEvents":[\n{body}\n]}}\n'


def _us(ps: int) -> str:
    """A time in µs, exact."""
    return f"{ps // 1000000}.{ps % 1000000:06d}"


class _Run:
    """One run's events, appended to ``metadata`` and ``events`` (time, order, -duration, number, text)."""

    def __init__(self, title, trace, result, pid, arrow, metadata, events) -> None:
        self.title = title
        self.trace = trace
        self.result = result
        self.pid = pid
        self.arrow = arrow
        self.metadata = metadata
        self.events = events
        self.lanes = [lane for lane in trace.lanes if lane.start != UNKNOWN]
        self.first, self.last = run_span(self.lanes)
        # rank -> (start, finish, writes) of its peers' flows
        self.served: dict[int, list[tuple[int, int, bool]]] = {}
        self.links: dict = {}  # capacity -> (time, flows, rate) changes

    def draw(self) -> None:
        result = self.result
        for rank in range(result.ranks):
            device = result.placement[rank] if rank < len(result.placement) else rank
            label = result.device_labels[rank] if rank < len(result.device_labels) else rank
            said = f"rank {rank}" if label == rank else f"rank {rank}, -d {label}"
            self._name_process(self.pid + rank, f"{self.title}: device {device} ({said})", rank)
            self._name_thread(self.pid + rank, _MEMORY, "memory, serving peers")
        for lanes in by_core(self.lanes):
            rank, core = lanes[0].rank, lanes[0].core
            for name, tid in _THREADS.items():
                text = name if result.cores == 1 else f"core {core} {name}"
                self._name_thread(self.pid + rank, core * _PER_CORE + tid, text)
            self._phases(rank, core, lanes)
            moves: dict[str, list] = {"S": [], "MTE2": [], "MTE3": []}
            for lane in lanes:
                self._scalar(rank, core, lane)
                for op in lane.operations:
                    kind = kind_of(op.kind)
                    if kind.vector:
                        self._vector(rank, core, op)
                    elif kind.moves:
                        moves[op.pipe].append(op)
            for pipe, operations in moves.items():
                self._moves(rank, core, pipe, operations)
        self._memories()
        self._counters()

    # ---- one line of the file ------------------------------------------------------------------------

    def _name_process(self, pid: int, name: str, order: int) -> None:
        self.metadata.append(
            f'{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":{dumps(name)}}}}}'
        )
        self.metadata.append(
            f'{{"ph":"M","name":"process_sort_index","pid":{pid},"args":{{"sort_index":{pid}}}}}'
        )

    def _name_thread(self, pid: int, tid: int, name: str) -> None:
        where = f'"pid":{pid},"tid":{tid}'
        self.metadata.append(f'{{"ph":"M","name":"thread_name",{where},"args":{{"name":{dumps(name)}}}}}')
        self.metadata.append(f'{{"ph":"M","name":"thread_sort_index",{where},"args":{{"sort_index":{tid}}}}}')

    def _add(self, time: int, order: int, text: str, duration: int = 0) -> None:
        self.events.append((time, order, -duration, len(self.events), text))

    def _slice(self, rank, tid, name, category, start, end, args="") -> None:
        at = start - self.first
        text = (
            f'{{"ph":"X","name":"{name}","cat":"{category}","pid":{self.pid + rank},"tid":{tid},'
            f'"ts":{_us(at)},"dur":{_us(end - start)}{args}}}'
        )
        self._add(at, _SLICE, text, end - start)

    def _arrow(self, name: str, source: tuple[int, int, int], target: tuple[int, int, int]) -> None:
        """From (rank, thread, time) to another, both inside a slice there."""
        number, self.arrow = self.arrow, self.arrow + 1
        for phase, order, (rank, tid, time) in (("s", _LEAVE, source), ("f", _ARRIVE, target)):
            bind = ',"bp":"e"' if phase == "f" else ""
            at = time - self.first
            text = (
                f'{{"ph":"{phase}","name":"{name}","cat":"{name}","id":{number},"pid":{self.pid + rank},'
                f'"tid":{tid},"ts":{_us(at)}{bind}}}'
            )
            self._add(at, order, text)

    # ---- pipes ---------------------------------------------------------------------------------------

    def _phases(self, rank: int, core: int, lanes) -> None:
        spans = [span for span in phase_spans(Table(lanes))[0] if span.start != UNKNOWN]
        for k, span in enumerate(spans):
            # A phase's last moves may still run when the core goes on to the next one.
            end = min(span.end, spans[k + 1].start) if k + 1 < len(spans) else span.end
            if end > span.start:
                args = f',"args":{{"remote bytes":{span.remote_bytes}}}'
                tid = core * _PER_CORE + _THREADS["phases"]
                self._slice(rank, tid, dumps(span.name)[1:-1], "phase", span.start, end, args)

    def _scalar(self, rank: int, core: int, lane) -> None:
        tid = core * _PER_CORE + _THREADS["S"]
        free = lane.start
        for op in lane.operations:
            kind = kind_of(op.kind)
            if op.begun == UNKNOWN or kind.marker:
                continue
            if (reason := held(op)) and op.begun > free:
                self._slice(rank, tid, f"held ({reason})", "held", free, op.begun)
            free = op.issued
            if kind.notifies:
                self._slice(
                    rank, tid, "notify", "signal", op.begun, op.issued, self._signal_args(rank, op.peer, op)
                )
                continue
            if op.issued > op.begun:
                self._slice(rank, tid, f"issue {op.kind}", "issue", op.begun, op.issued)
            if kind.waits:
                self._wait(rank, tid, op)
                free = max(free, op.end)
            elif (kind.synchronises or kind.fences) and op.end > op.start:
                self._slice(rank, tid, op.kind, "wait", op.start, op.end)
                free = max(free, op.end)

    def _wait(self, rank: int, tid: int, op) -> None:
        end = self.last if op.end == UNKNOWN else op.end
        by = op.by
        ended = by is not None and kind_of(by.kind).notifies and op.end != UNKNOWN
        source = by.lane.rank if ended else None
        if end > op.start or ended:
            self._slice(rank, tid, "wait", "signal", op.start, end, self._signal_args(source, rank, op))
        if ended:
            left = by.lane.core * _PER_CORE + _THREADS["S"]
            arrived = max(op.start, end - min(_NS, (end - op.start + 1) // 2))
            self._arrow("signal", (by.lane.rank, left, by.begun), (rank, tid, max(arrived, by.begun)))

    @staticmethod
    def _signal_args(source, target, op) -> str:
        memory, offset = op.cell
        known = "" if source is None else f'"src rank":{source},'
        return f',"args":{{{known}"dst rank":{target},"notify id":{dumps(memory.cell_name(offset))}}}'

    def _vector(self, rank: int, core: int, op) -> None:
        if op.start != UNKNOWN and op.end > op.start:
            self._slice(rank, core * _PER_CORE + _THREADS["V"], op.kind, "vector", op.start, op.end)

    def _moves(self, rank: int, core: int, pipe: str, operations) -> None:
        """Each move as an async event in a slot of its own, and the pipe's busy time as slices."""
        tid = core * _PER_CORE + _THREADS[pipe]
        known = [op for op in operations if UNKNOWN not in (op.start, op.end) and op.end > op.start]
        known.sort(key=lambda op: (op.start, op.seq))
        pid = self.pid + rank
        free: list[int] = []
        for op in known:
            slot = slot_for(free, op.start, op.end)
            source, target = ends(op)
            rate = op.nbytes * 1000 / (op.end - op.start)  # B/ps in GB/s
            shared = (
                f'"cat":"{pipe}","id":"{pid}.{core}.{pipe}.{slot}","name":"{op.kind}","pid":{pid},"tid":{tid}'
            )
            args = f'{{"src rank":{source},"dst rank":{target},"size(Byte)":{op.nbytes},"bandwidth(GB/s)":{rate:.4f}}}'
            at, end = op.start - self.first, op.end - self.first
            self._add(at, _BEGIN, f'{{"ph":"b",{shared},"ts":{_us(at)},"args":{args}}}')
            self._add(end, _END, f'{{"ph":"e",{shared},"ts":{_us(end)}}}')
            flow = op.flow
            if flow is not None and source != target and flow.finish > flow.start:
                self._transfer(rank, tid, op)
        if pipe == "S":
            return
        for start, end, members in unions([(op.start, op.end, op.nbytes) for op in known]):
            count = f"{len(members)} move{'s' if len(members) > 1 else ''}"
            self._slice(rank, tid, count, "pipe", start, end, f',"args":{{"size(Byte)":{sum(members)}}}')

    def _transfer(self, rank: int, tid: int, op) -> None:
        start, finish = op.flow.start, op.flow.finish
        peer, read = op.peer, side(op) == "read"
        self.served.setdefault(peer, []).append((start, finish, not read))
        arrived = finish - min(_NS, (finish - start + 1) // 2)
        own, other = (rank, tid), (peer, _MEMORY)
        source, target = (other, own) if read else (own, other)
        self._arrow("transfer", (*source, start), (*target, arrived))
        rate = op.nbytes * 1000 / (finish - start)
        for capacity, _ in op.path.uses:
            if capacity.kind != "hbm":
                changes = self.links.setdefault(capacity.name, [])
                changes.append((start, 1, rate))
                changes.append((finish, -1, -rate))

    def _memories(self) -> None:
        for rank, flows in sorted(self.served.items()):
            for start, end, members in unions(sorted(flows)):
                writes = sum(members)
                name = f"{len(members) - writes} read, {writes} written"
                self._slice(rank, _MEMORY, name, "memory", start, end)

    def _counters(self) -> None:
        pid = self.pid + self.result.ranks
        self._name_process(pid, f"{self.title}: links", pid)
        for name in sorted(self.links):
            quoted = dumps(f"{name} GB/s")
            flows, rate, shown = 0, 0.0, None
            changes = sorted(self.links[name])
            for k, (time, count, change) in enumerate(changes):
                flows += count
                rate = rate + change if flows else 0.0
                if k + 1 < len(changes) and changes[k + 1][0] == time:
                    continue
                value = f"{rate:.3f}"
                if value != shown:
                    at = time - self.first
                    text = (
                        f'{{"ph":"C","name":{quoted},"pid":{pid},"ts":{_us(at)},"args":{{"GB/s":{value}}}}}'
                    )
                    self._add(at, _COUNT, text)
                shown = value
