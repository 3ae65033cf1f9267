"""Traces put together by hand, for what reads traces, with times from rules simple enough to check.

No link is shared: a remote move takes its bytes / rate and latency before and after (a load) or twice after
(a store, its acknowledgement included), a local one bytes / rate, a vector instruction an eighth of that.
Moves of a pipe run one at a time. Programs are built in lock-step over ranks, so waits find their notifies.
"""

from types import SimpleNamespace

from a2a3sim.models.memory import Access, Memory
from a2a3sim.models.operation import Lane, operation
from a2a3sim.trace.measures import RunInfo
from a2a3sim.trace.record import Trace

NS, US = 1_000, 1_000_000


class Capacity(SimpleNamespace):
    pass


class Builder:
    """One run under construction; costs in ps, ``rate`` in bytes per µs."""

    def __init__(self, ranks, cores=1, *, latency=US, rate=1000, issue=10 * NS, atomic=100 * NS, starts=None):
        self.ranks, self.latency, self.rate, self.issue, self.atomic = ranks, latency, rate, issue, atomic
        self.memories = [Memory(r, "window", "window", r, r, 1 << 30, None, 0) for r in range(ranks)]
        self.outputs = [Memory(ranks + r, "y", "tensor", r, r, 1 << 30, None) for r in range(ranks)]
        self.lanes = []
        self.state = {}
        self.cells = {}
        self.line_free = {}
        self.served = {}
        for rank in range(ranks):
            for core in range(cores):
                lane = Lane(len(self.lanes), 0, 0, 0, rank, rank, core, "kernel", core, cores)
                lane.start = starts[rank] if starts else 0
                self._open(lane, lane.start, ("start", None))

    def _open(self, lane, start, after):
        lane.start = start
        self.lanes.append(lane)
        self.state[lane] = SimpleNamespace(
            time=start, after=after, free={}, visible=start, access=None, last=(start, None), gate=None
        )

    def lane(self, rank, core=0):
        """The newest lane of a core."""
        return [lane for lane in self.lanes if (lane.rank, lane.core) == (rank, core)][-1]

    def redispatch(self, rank, cost):
        """A later dispatch on core 0 of a rank, ``cost`` after the earlier one ended."""
        old = self.lane(rank)
        self._close(old)
        lane = Lane(len(self.lanes), 0, old.dispatch + 1, 0, rank, rank, 0, "second")
        self._open(lane, old.end + cost, ("dispatch", old.operations[-1]))
        return lane

    def _new(self, lane, kind, pipe, nbytes=0, peer=None):
        s = self.state[lane]
        op = operation(lane, kind, pipe, None)
        op.seq = len(lane.operations)
        lane.operations.append(op)
        if nbytes:
            op.nbytes = nbytes
        if peer is not None:
            op.peer = peer
        op.begun, op.after = s.time, s.after
        op.issued = s.time = s.time + self.issue
        s.after = ("issue", op)
        return op

    def phase(self, lane, name):
        op = operation(lane, "phase", "S", None)
        op.seq, op.value = len(lane.operations), name
        op.begun = op.issued = op.start = op.end = self.state[lane].time
        op.after = self.state[lane].after
        lane.operations.append(op)

    def _start(self, lane, op, deps):
        s = self.state[lane]
        op.operands = tuple(deps)
        op.start, op.cause = op.issued, ("issue", None)
        for dep in deps:
            if dep.end >= op.start:
                op.start, op.cause = dep.end, ("operand", dep)
        free, holder = s.free.get(op.pipe, (0, None))
        if holder is not None and free >= op.start:
            op.start, op.cause = free, ("pipe", holder)

    def _over(self, lane, op, free, done):
        s = self.state[lane]
        s.free[op.pipe] = (free, op)
        if done >= s.last[0]:
            s.last = (done, op)

    def load(self, lane, nbytes, peer=None, kind=None):
        """A load or, with a peer, a remote load."""
        op = self._new(lane, kind or ("load" if peer is None else "remote_load"), "MTE2", nbytes, peer)
        owner = self.memories[lane.rank if peer is None else peer]
        op.reads = (Access(owner, 0, 1, nbytes, nbytes),)
        self._start(lane, op, ())
        self._move(
            lane, op, head=0 if peer is None else self.latency, tail=0 if peer is None else self.latency
        )
        op.end = op.visible = op.drained + (0 if peer is None else self.latency)
        self._over(lane, op, op.end, op.end)
        self._accessed(lane, op, op.end)
        return op

    def _move(self, lane, op, head, tail):
        begin = op.start + head
        took = op.nbytes * US // self.rate
        src, dst = (op.peer, lane.rank) if op.pipe == "MTE2" else (lane.rank, op.peer)
        name = f"hbm{lane.rank}" if op.peer is None else f"link {src}-{dst}"
        op.flow = SimpleNamespace(start=begin, finish=begin + took, cuts=[(begin, name)])
        if op.peer is not None:
            nbytes, busy = self.served.get(name, (0, 0))
            self.served[name] = (nbytes + op.nbytes, busy + took)
        op.drained = begin + took

    def _accessed(self, lane, op, done):
        s = self.state[lane]
        if done >= s.visible:
            s.visible, s.access = done, op

    def vector(self, lane, kind, nbytes, *operands):
        op = self._new(lane, kind, "V")
        self._start(lane, op, operands)
        op.end = op.start + nbytes * US // (8 * self.rate)
        self._over(lane, op, op.end, op.end)
        return op

    def store(self, lane, nbytes, *operands, peer=None, window=True, hold=None, kind=None):
        """A store, or with a peer a remote store; that or a window holds the scalar pipe."""
        op = self._new(lane, kind or ("store" if peer is None else "remote_store"), "MTE3", nbytes, peer)
        owner = lane.rank if peer is None else peer
        target = self.memories[owner] if window or peer is not None else self.outputs[owner]
        op.writes = (Access(target, 0, 1, nbytes, nbytes),)
        self._start(lane, op, operands)
        self._move(lane, op, head=0, tail=0)
        away = 0 if peer is None else self.latency
        op.visible, op.end = op.drained + away, op.drained + 2 * away
        self._over(lane, op, op.drained, op.visible)
        self._accessed(lane, op, op.visible)
        if hold if hold is not None else (window or peer is not None):
            s = self.state[lane]
            if op.end > s.time:
                s.time, s.after = op.end, ("fence", op)
        return op

    def notify(self, lane, peer, row=0, column=None):
        s = self.state[lane]
        op = self._new(lane, "notify", "S", 0, peer)
        op.action, op.value = "add", 1
        op.cell = (self.memories[peer], 512 * row + 4 * (lane.rank if column is None else column))
        op.start, op.cause = op.issued, ("issue", None)
        if s.visible > op.start:
            op.start, op.cause = s.visible, ("fence", s.access)
        arrival = op.start + (0 if peer == lane.rank else self.latency)
        line = (op.cell[0], op.cell[1] // 512)
        free, ahead = self.line_free.get(line, (0, None))
        if free > arrival:
            arrival, op.by = free, ahead
        op.end = op.applied = arrival + self.atomic
        self.line_free[line] = (op.applied, op)
        updates = self.cells.setdefault(op.cell, [])
        updates.append(op)
        op.order = len(updates)
        if op.end >= s.last[0]:
            s.last = (op.end, op)
        return op

    def wait(self, lane, column, row=0, need=1):
        s = self.state[lane]
        op = self._new(lane, "wait", "S")
        op.action, op.value = "ge", need
        op.cell = (self.memories[lane.rank], 512 * row + 4 * column)
        op.start, op.cause = op.issued, ("issue", None)
        op.by = sorted(self.cells[op.cell], key=lambda u: u.applied)[need - 1]
        op.end = max(op.start, op.by.applied)
        if op.by.applied < op.start:
            op.by = None
        s.time, s.after = op.end, ("signal", op)
        return op

    def barrier(self, row=0, cores=1):
        """Every core notifies the same core of all peers and waits for all of them."""
        everyone = range(self.ranks)
        for core in range(cores):
            for rank in everyone:
                for peer in everyone:
                    if peer != rank:
                        self.notify(self.lane(rank, core), peer, row, self.ranks * core + rank)
            for rank in everyone:
                for peer in everyone:
                    if peer != rank:
                        self.wait(self.lane(rank, core), self.ranks * core + peer, row)

    def _close(self, lane):
        s = self.state[lane]
        if s.last[1] is not None and s.last[0] >= s.time:
            lane.end, lane.last = s.last[0], ("pipe", s.last[1])
        else:
            lane.end, lane.last = s.time, s.after

    def trace(self):
        for lane in self.lanes:
            if lane.end < 0:
                self._close(lane)
        rate = self.rate * US
        links = [
            Capacity(name=n, rate=rate, kind="link", bytes=float(b), busy_ps=t, peak_flows=1)
            for n, (b, t) in sorted(self.served.items())
        ]
        hbm = Capacity(name="hbm0", rate=rate, kind="hbm", bytes=0.0, busy_ps=0, peak_flows=1)
        dispatches = [
            SimpleNamespace(index=i, kernel=k, rank=r, cores=n, start=a, end=e)
            for i, k, r, n, a, e in self._dispatched()
        ]
        return Trace(self.lanes, dispatches, self.memories, [hbm, *links], atomic_ps=self.atomic)

    def _dispatched(self):
        groups = {}
        for lane in self.lanes:
            groups.setdefault((lane.dispatch, lane.rank), []).append(lane)
        for k, ((_, rank), lanes) in enumerate(groups.items()):
            start, end = min(x.start for x in lanes), max(x.end for x in lanes)
            yield k, lanes[0].kernel, rank, len(lanes), start, end


def info(ranks, **changes):
    """What a result states beside the trace, for a run of no importance."""
    fields = {"program": "program.py", "platform": "a2", "platform_hash": "0123abcd", "ranks": ranks}
    return RunInfo(**(fields | changes))


def mesh(ranks, nbytes, cores=1, names=False, **costs):
    """All-reduce: everybody reads everybody's whole slice."""
    b = Builder(ranks, cores, **costs)
    part = nbytes // cores
    lanes = [b.lane(r, c) for r in range(ranks) for c in range(cores)]
    for lane in lanes:
        _enter(b, lane, names, "stage")
        b.store(lane, part, b.load(lane, part))
        _enter(b, lane, names, None)
    b.barrier(0, cores)
    for lane in lanes:
        _enter(b, lane, names, "reduce")
        total = b.load(lane, part)
        for k in range(1, ranks):
            total = b.vector(lane, "add", part, total, b.load(lane, part, (lane.rank + k) % ranks))
        b.store(lane, part, total, window=False)
        _enter(b, lane, names, None)
    return b


def two_phase(ranks, nbytes, cores=1, names=False, **costs):
    """All-reduce: reduce-scatter, then all-gather."""
    b = Builder(ranks, cores, **costs)
    part = nbytes // cores
    chunk = part // ranks
    lanes = [b.lane(r, c) for r in range(ranks) for c in range(cores)]
    for lane in lanes:
        _enter(b, lane, names, "stage")
        b.store(lane, part, b.load(lane, part))
        _enter(b, lane, names, None)
    b.barrier(0, cores)
    for lane in lanes:
        _enter(b, lane, names, "reduce-scatter")
        total = b.load(lane, chunk)
        for k in range(1, ranks):
            total = b.vector(lane, "add", chunk, total, b.load(lane, chunk, (lane.rank + k) % ranks))
        b.store(lane, chunk, total)
        _enter(b, lane, names, None)
    b.barrier(1, cores)
    for lane in lanes:
        _enter(b, lane, names, "all-gather")
        for k in range(ranks):
            peer = (lane.rank + k) % ranks
            b.store(lane, chunk, b.load(lane, chunk, peer if k else None), window=False)
        _enter(b, lane, names, None)
    return b


def ring(ranks, nbytes, **costs):
    """All-reduce: 2(P-1) steps, each rank reads one chunk from its left neighbour."""
    b = Builder(ranks, **costs)
    chunk = nbytes // ranks
    for step in range(2 * (ranks - 1)):
        for rank in range(ranks):
            b.notify(b.lane(rank), (rank + 1) % ranks, step, 0)
        for rank in range(ranks):
            lane = b.lane(rank)
            b.wait(lane, 0, step)
            tile = b.load(lane, chunk, (rank - 1) % ranks)
            b.store(lane, chunk, b.vector(lane, "add", chunk, tile))
    return b


def _enter(b, lane, names, name):
    if names:
        b.phase(lane, name)
