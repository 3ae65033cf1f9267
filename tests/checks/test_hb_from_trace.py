"""From recorded lanes to findings: kinds of operations, kernels of a rank, calls, unfinished runs."""

import pytest

from a2a3sim.checks.happens_before.from_trace import check, execution_of, forms_used
from a2a3sim.checks.happens_before.history import HistoryState
from a2a3sim.models.memory import Access, Memory
from a2a3sim.models.operation import Lane, operation
from a2a3sim.trace.record import Trace


class Run:
    """A trace put together by hand: every operation takes one picosecond after the one entered before it."""

    def __init__(self, ranks=2, fences="statement"):
        self.trace = Trace(fences=fences)
        self.now = 0
        self.windows = {}
        for name in ("data", "signal"):
            self.windows[name] = [
                Memory(len(self.trace.memories) + r, name, "window", r, r, 4096, None, name)
                for r in range(ranks)
            ]
            self.trace.memories += self.windows[name]
        self.values = {}

    def lane(self, rank, dispatch=None, task=0, core=0, call=0):
        lane = Lane(
            len(self.trace.lanes),
            call,
            rank if dispatch is None else dispatch,
            task,
            rank,
            rank,
            core,
            "k",
            core,
        )
        lane.start = self.now
        lane.end = 1 << 40
        self.trace.lanes.append(lane)
        return lane

    def _op(self, lane, kind, pipe, line):
        op = operation(lane, kind, pipe, ((lambda: None).__code__, 0) if line is None else None)
        op.site = _site(line or kind)
        op.seq = len(lane.operations)
        lane.operations.append(op)
        self.now += 1
        op.begun = op.issued = op.start = op.end = self.now
        if pipe != "V" and kind in (
            "load",
            "store",
            "remote_load",
            "remote_store",
            "put",
            "get",
            "read",
            "write",
        ):
            op.drained = op.visible = self.now
        return op

    def load(self, lane, owner, low=0, nbytes=32, line=None, name="data", kind="load", pipe="MTE2"):
        op = self._op(lane, kind, pipe, line)
        op.reads = (Access(self.windows[name][owner], low, 1, nbytes, nbytes),)
        return op

    def store(
        self, lane, owner, low=0, nbytes=32, line=None, name="data", kind="store", pipe="MTE3", atomic=False
    ):
        op = self._op(lane, kind, pipe, line)
        op.writes = (Access(self.windows[name][owner], low, 1, nbytes, nbytes),)
        op.atomic = atomic
        return op

    def notify(self, lane, rank, cell=0, value=1, action="add", line=None):
        op = self._op(lane, "notify", "S", line)
        op.cell, op.action, op.value = (self.windows["signal"][rank], 4 * cell), action, value
        op.seen = self.values[op.cell] = value + (self.values.get(op.cell, 0) if action == "add" else 0)
        op.applied = op.end
        return op

    def wait(self, lane, cell=0, value=1, action="ge", line=None, done=True):
        op = self._op(lane, "wait", "S", line)
        op.cell, op.action, op.value = (self.windows["signal"][lane.rank], 4 * cell), action, value
        op.seen = self.values.get(op.cell, 0)
        if not done:
            op.end = -1
            lane.end = -1
        return op

    def check(self, **options):
        return [(f.kind, f.subtype, [line for _, line in f.sites]) for f in check(self.trace, **options)]


_codes = {}


def _site(line):
    """A real code object whose first line is ``line`` (a number, or one kept for a word)."""
    number = line if isinstance(line, int) else 1000 + sum(map(ord, line))
    if number not in _codes:
        _codes[number] = compile("\n" * (number - 1) + "pass", "kernel.py", "exec")
    return (_codes[number], 4)


def exchange(run, first=0, barrier=True, kind="remote_load"):
    """Both ranks stage, meet, read each other."""
    lanes = [run.lane(r, first + r) for r in range(2)]
    for lane in lanes:
        run.store(lane, lane.rank, line=10)
        if barrier:
            run.notify(lane, 1 - lane.rank, line=11)
    for lane in lanes:
        if barrier:
            run.wait(lane, line=12)
        run.load(lane, 1 - lane.rank, line=13, kind=kind)
    return lanes


def test_a_barrier_orders_and_its_absence_is_a_race():
    assert check(_exchanged(True).trace) == []
    (finding,) = check(_exchanged(False).trace)
    assert (finding.kind, finding.subtype, finding.severity) == ("race", "RAW", "error")
    assert finding.sites == [("kernel.py", 10), ("kernel.py", 13)]
    assert [op.kind for op in finding.operations] == ["store", "remote_load"]
    assert finding.where == {"memory": "data", "ranks": [0, 1], "bytes": [0, 32]}
    assert finding.pairs == [(0, 1), (1, 0)]


def _exchanged(barrier):
    run = Run()
    exchange(run, barrier=barrier)
    return run


def test_vector_operations_and_markers_do_not_matter():
    run = Run()
    lane = run.lane(0)
    run._op(lane, "add", "V", 1)
    run._op(lane, "phase", "S", 1)
    assert execution_of(run.trace).access_row == []
    assert run.check() == []


def test_atomic_stores_commute():
    run = Run()
    for rank in range(2):
        run.store(run.lane(rank), 0, kind="remote_store", atomic=True, line=20)
    assert run.check() == []
    run.load(run.lane(0, dispatch=5), 0, line=21)
    assert run.check() == [("race", "RAW", [20, 21])]


@pytest.mark.parametrize("edge", [True, False])
def test_kernels_of_a_rank_are_ordered_by_edges_only(edge):
    run = Run(1)
    run.store(run.lane(0, 0, task=0), 0, line=1)
    run.load(run.lane(0, 0, task=1), 0, line=2)
    if edge:
        run.trace.edges = [((0, 0), (0, 1))]
    assert run.check() == ([] if edge else [("race", "RAW", [1, 2])])


def test_calls_in_one_trace_are_joined_by_the_host():
    run = Run(2)
    run.store(run.lane(0, 0, call=0), 1, line=1)
    run.load(run.lane(1, 0, call=1), 1, line=2)
    assert run.check() == []


def test_a_wait_that_never_ended():
    run = Run(2)
    a, b = run.lane(0), run.lane(1)
    run.store(b, 0, line=1)
    run.wait(a, value=1, done=False)
    assert run.check() == []


def test_the_value_of_a_scalar_store_to_a_cell_is_told_by_what_is_seen_next():
    """Cleared by `pl.write` after the wait, the cell counts from 0 again: sound if the peer knows."""

    def script(acknowledged):
        run = Run(2)
        a, b = run.lane(0), run.lane(1)
        for round_ in range(2):
            run.store(b, 0, line=1, kind="put")
            run.notify(b, 0, line=2)
            run.wait(a, line=3)
            run.load(a, 0, line=4)
            run.values[run.windows["signal"][0], 0] = 0
            run.store(a, 0, 0, 4, line=5, name="signal", kind="write", pipe="S")
            if acknowledged:
                run.notify(a, 1, cell=1, line=6)
                run.wait(b, cell=1, value=round_ + 1, line=7)
        return run

    assert script(True).check() == []
    kinds = {kind for kind, _, _ in script(False).check()}
    assert kinds >= {"lost-credit", "race"}


def test_explicit_fences():
    def run(kind):
        run = Run(2, fences="explicit")
        a, b = run.lane(0), run.lane(1)
        run.store(a, 0, line=1)
        if kind:
            run._op(a, kind, "S", 2)
        run.notify(a, 1, line=3)
        run.wait(b, line=4)
        run.load(b, 0, line=5, kind="remote_load")
        return run

    assert run("fence").check() == []
    assert run("drain").check() == [("race", "RAW", [1, 5]), ("unfenced", "not visible", [3, 1, 5])]
    assert run(None).check() == [("race", "RAW", [1, 5]), ("unfenced", "in flight", [3, 1, 5])]


def test_blocks_are_ordered_by_their_barrier():
    def run(synced):
        run = Run(1)
        lanes = [run.lane(0, 0, core=k) for k in range(2)]
        for lane in lanes:
            run.store(lane, 0, 32 * lane.core, line=1)
        for lane in lanes:
            if synced:
                run._op(lane, "sync_all", "S", 2)
            run.load(lane, 0, 32 * (1 - lane.core), line=3)
        return run

    assert run(True).check() == []
    (finding,) = check(run(False).trace)
    assert "sync_all" in finding.fix


def test_windows_that_live_on():
    history = HistoryState()
    first, second = Run(), Run()
    exchange(first)
    assert first.check(history=history, kept=True) == [("residue", None, [11])]
    second.values = {(second.windows["signal"][r], 0): 1 for r in range(2)}
    exchange(second)
    assert {kind for kind, _, _ in second.check(history=history, kept=True)} == {
        "early-release",
        "race",
        "residue",
    }
    history.reset()
    third = Run()
    exchange(third)
    assert third.check(history=history) == []


def test_cells_in_bytes_that_an_earlier_call_used_for_data():
    history = HistoryState()
    first, second = Run(), Run()
    first.store(first.lane(0), 0, name="signal", line=1)
    assert first.check(history=history, kept=True) == []
    second.values = {(second.windows["signal"][r], 0): 7 for r in range(2)}  # what the store left there
    exchange(second)
    findings = check(second.trace, history, kept=True)
    assert {(f.kind, f.subtype) for f in findings} >= {("early-release", "plain data"), ("race", "RAW")}


def test_forms_of_signalling():
    run = Run()
    exchange(run)
    assert forms_used(run.trace) == ["Add", "Ge"]
    run.notify(run.trace.lanes[0], 1, value=-1)
    run.notify(run.trace.lanes[0], 1, cell=3, action="set")
    assert forms_used(run.trace) == ["Add", "Set", "Ge", "negative Add by another rank"]
