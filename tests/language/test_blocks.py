"""``pl.at`` blocks: anonymous tasks of the host and of an orchestration, task graphs, deferred completion."""

# ruff: noqa: SIM117 - nested blocks are what is tested

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import DistributedConfig
from a2a3sim.errors import DeadlockError, InvalidOperationError, ParserSyntaxError

from .programs import MACHINE, compiled, copy_tile, floats

N = 16
ROW = pl.Tensor[[1, N], pl.FP32]
OUT = pl.Out[pl.Tensor[[1, N], pl.FP32]]
SIGNAL = pl.InOut[pld.DistributedTensor[[8, 16], pl.INT32]]
WINDOW = pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]]


def on_every_rank(orchestration):
    """A program that runs ``orchestration(x, y, data, signal)``, a jit function, on every rank."""
    nr = pl.dynamic("NR")

    @pl.jit.host
    def host(x: pl.Tensor[[nr, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[nr, 1, N], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([8, 16], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, N], dtype=pl.FP32)
            orchestration(x[r], y[r], data, pld.window(signal_buf, [8, 16], dtype=pl.INT32), device=r)

    return host


def run_on(orchestration, ranks=1, machine="ideal"):
    """(x, y, compiled program) of a run."""
    config = MACHINE.with_(
        machine=machine, distributed_config=DistributedConfig(device_ids=list(range(ranks)))
    )
    x, y = floats(ranks, 1, N), np.zeros((ranks, 1, N), np.float32)
    program = on_every_rank(orchestration).compile(x, y, config=config)
    program(x, y, config=config)
    return x, y, program


def kernels(program):
    """(rank, kernel, start, end) in ps, by start."""
    lanes = sorted(program.last_trace.lanes, key=lambda lane: (lane.rank, lane.start))
    return [(lane.rank, lane.kernel, lane.start, lane.end) for lane in lanes]


# ---- in an orchestration ----------------------------------------------------------------------------


def test_a_block_is_an_anonymous_kernel_in_program_order():
    @pl.jit
    def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
        scratch = pl.create_tensor([1, N], dtype=pl.FP32)
        factor = 2.0
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="twice"):
            tile = pl.load(x, [0, 0], [1, N])
            scratch = pl.store(pl.mul(tile, factor), [0, 0], scratch)
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.add(pl.load(scratch, [0, 0], [1, N]), 1.0), [0, 0], y)
        return y

    x, y, program = run_on(orchestration)
    assert np.array_equal(y, 2 * x + 1)
    assert [k[1] for k in kernels(program)] == ["twice", kernels(program)[1][1]]
    assert kernels(program)[1][1].startswith("block_2_at_line_")
    assert program.last_trace.edges == [((0, 0), (0, 1))]


def test_what_a_block_computes_outlives_it_as_a_tensor():
    @pl.jit
    def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.add(x, x)
            count = pl.const(3, pl.INT32) + 1
        assert isinstance(total, pl.Tensor)
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.assemble(y, pl.mul(total, float(count)), [0, 0])

    x, y, _ = run_on(orchestration)
    assert np.array_equal(y, 8 * x)


def test_a_block_on_several_cores():
    @pl.jit
    def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
        with pl.spmd(2), pl.at(level=pl.Level.CORE_GROUP):
            at = pl.get_block_idx() * (N // pl.get_block_num())
            pl.store(pl.load(x, [0, at], [1, N // 2]), [0, at], y)

    x, y, program = run_on(orchestration)
    assert np.array_equal(y, x)
    assert len(program.last_trace.lanes) == 2


def test_blocks_with_dependences_run_beside_each_other():
    """Two independent tasks overlap; the third follows both."""

    @pl.jit
    def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
        a = pl.create_tensor([1, N], dtype=pl.FP32)
        b = pl.create_tensor([1, N], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as first:
            a = pl.store(pl.load(x, [0, 0], [1, N]), [0, 0], a)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="second") as second:
            b = pl.store(pl.add(pl.load(x, [0, 0], [1, N]), 1.0), [0, 0], b)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="third", deps=[first, second]):
            y = pl.store(pl.add(pl.load(a, [0, 0], [1, N]), pl.load(b, [0, 0], [1, N])), [0, 0], y)

    x, y, program = run_on(orchestration, machine="a2")
    assert np.array_equal(y, x + (x + 1))
    spans = {name: (start, end) for _, name, start, end in kernels(program)}
    assert spans["second"][0] < spans["first"][1]
    assert spans["third"][0] >= max(spans["first"][1], spans["second"][1])
    assert sorted(program.last_trace.edges) == [((0, 0), (0, 2)), ((0, 1), (0, 2))]
    assert {lane.core for lane in program.last_trace.lanes} == {0, 1}


def test_tensors_order_tasks_unless_the_scope_is_manual():
    def build(manual):
        @pl.jit
        def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
            a = pl.create_tensor([1, N], dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="write", deps=[]):
                a = pl.store(pl.load(x, [0, 0], [1, N]), [0, 0], a)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="read"):
                y = pl.store(pl.load(a, [0, 0], [1, N]), [0, 0], y)

        @pl.jit
        def unordered(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
            a = pl.create_tensor([1, N], dtype=pl.FP32)
            with pl.manual_scope():
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="write", deps=[]):
                    a = pl.store(pl.load(x, [0, 0], [1, N]), [0, 0], a)
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="read"):
                    y = pl.store(pl.load(a, [0, 0], [1, N]), [0, 0], y)

        return unordered if manual else orchestration

    x, y, program = run_on(build(False))
    assert np.array_equal(y, x)
    assert program.last_trace.edges == [((0, 0), (0, 1))]
    _, _, program = run_on(build(True), machine="a2")
    assert program.last_trace.edges == []
    assert kernels(program)[1][2] < kernels(program)[0][3]


def test_a_deferred_wait_holds_back_its_task_and_no_core():
    """The publisher is submitted after the task that waits: in program order this would hang."""

    @pl.jit
    def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
        ranks = pld.nranks(pld.get_comm_ctx(data))
        me = pld.rank(pld.get_comm_ctx(data))
        with pl.manual_scope():
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="arrived") as arrived:
                pld.system.defer_wait(signal=signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
                pld.system.defer_wait(signal=signal, offsets=[1, 0], expected=1, cmp=pld.WaitCmp.Ge)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="consume", deps=[arrived]):
                y = pl.store(pl.load(data, [0, 0], [1, N]), [0, 0], y)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="publish"):
                peer = (me + 1) % ranks
                pld.tile.remote_store(pl.load(x, [0, 0], [1, N]), data, peer=peer, offsets=[0, 0])
                for row in pl.range(2):
                    pld.system.notify(signal, peer, [row, 0], 1, op=pld.NotifyOp.AtomicAdd)

    x, y, program = run_on(orchestration, 3)
    assert np.array_equal(y, np.roll(x, 1, axis=0))
    for rank in range(3):
        spans = {name: (start, end) for r, name, start, end in kernels(program) if r == rank}
        assert spans["publish"][0] < spans["arrived"][1] <= spans["consume"][0]


def test_task_ids_in_an_array():
    """One task per cell waits; the class form, with names made in a loop."""
    ranks = 2

    @pl.program
    class Gather:
        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
            me = pld.rank(pld.get_comm_ctx(data))
            with pl.manual_scope():
                tasks = pl.array.create(3, pl.TASK_ID)
                for row in pl.range(3):
                    with pl.at(level=pl.Level.CORE_GROUP, name_hint=f"wait{row}") as task:
                        pld.system.defer_wait(signal=signal, offsets=[row, 0], expected=1, cmp=pld.WaitCmp.Ge)
                    tasks[row] = task
                deps = [tasks[0], tasks[1], tasks[2]]
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="consume", deps=deps):
                    y = pl.store(pl.load(data, [0, 0], [1, N]), [0, 0], y)
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="again", deps=tasks):
                    pl.load(data, [0, 0], [1, N])
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="publish"):
                    pld.tile.remote_store(pl.load(x, [0, 0], [1, N]), data, peer=1 - me, offsets=[0, 0])
                    for row in pl.range(3):
                        pld.system.notify(signal, 1 - me, [row, 0], 1, op=pld.NotifyOp.AtomicAdd)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[ranks, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[ranks, 1, N], pl.FP32]]):
            data_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([8, 16], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, N], dtype=pl.FP32)
                signal = pld.window(signal_buf, [8, 16], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)

    program = compiled(Gather, ranks)
    x, y = floats(ranks, 1, N), np.zeros((ranks, 1, N), np.float32)
    program(x, y, config=MACHINE.with_(checks=True))
    assert np.array_equal(y, x[::-1])
    assert {k[1] for k in kernels(program)} == {"wait0", "wait1", "wait2", "consume", "again", "publish"}
    edges = {(a, b) for (d, a), (_, b) in program.last_trace.edges if d == 0}
    assert edges == {(w, t) for w in (0, 1, 2) for t in (3, 4)}
    # What is read after the waits is what was published before the notifies, on every schedule.
    assert [f for f in program.last_run.findings if f.severity != "note"] == []


def test_a_task_that_overwrites_what_an_earlier_one_reads_follows_it():
    """Outside of a manual scope the publisher follows the consumer, which waits for its signal."""

    @pl.jit
    def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
        with pl.at(level=pl.Level.CORE_GROUP) as arrived:
            pld.system.defer_wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[arrived]):
            y = pl.store(pl.load(data, [0, 0], [1, N]), [0, 0], y)
        with pl.at(level=pl.Level.CORE_GROUP):
            pld.tile.remote_store(pl.load(x, [0, 0], [1, N]), data, peer=0, offsets=[0, 0])
            pld.system.notify(signal, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)

    with pytest.raises(DeadlockError):
        run_on(orchestration)


def test_a_deferred_wait_that_nobody_answers_is_a_deadlock():
    @pl.jit
    def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
        with pl.at(level=pl.Level.CORE_GROUP) as never:
            pld.system.defer_wait(signal=signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[never]):
            copy_tile(x, y)

    with pytest.raises(DeadlockError, match="nothing can run"):
        run_on(orchestration)


GE, EQ = pld.WaitCmp.Ge, pld.WaitCmp.Eq


def test_the_rules_of_deferred_waits():
    def rejected(body, message):
        @pl.jit
        def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
            with pl.at(level=pl.Level.CORE_GROUP):
                body(signal, data, x)
                pld.system.defer_wait(signal, [0, 0], 0, cmp=GE)

        with pytest.raises(InvalidOperationError, match=message):
            run_on(orchestration)

    wait = pld.system.defer_wait
    rejected(lambda s, d, x: wait(s, [0, 0], 1, cmp=EQ), "cmp must be pld.WaitCmp.Ge")
    rejected(lambda s, d, x: wait(s, [0, 0], -1, cmp=GE), r"constant in \[0, 2147483647\], got -1")
    rejected(
        lambda s, d, x: wait(s, [0, 0], pld.rank(pld.get_comm_ctx(d)), cmp=GE), "got the run-time value 0"
    )
    rejected(lambda s, d, x: wait(s[1:3], [0, 0], 1, cmp=GE), "must be a parameter, got the view signal_buf")
    rejected(lambda s, d, x: wait(d, [0, 0], 1, cmp=GE), "signal cells are INT32, data_buf is FP32")
    rejected(lambda s, d, x: [wait(s, [0, 0], 0, cmp=GE) for _ in range(65)], "at most 64 conditions")
    rejected(lambda s, d, x: pl.load(x, [0, 0], [1, N]), "needs a pl.at block of its own")


def test_a_deferred_wait_needs_a_block():
    @pl.jit
    def kernel(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
        pld.system.defer_wait(signal, [0, 0], 1, cmp=GE)

    with pytest.raises(InvalidOperationError, match=r"belongs into a pl.at"):
        run_on(kernel)


def test_blocks_refuse_what_means_nothing():
    with pytest.raises(InvalidOperationError, match=r"level must be pl.Level.CORE_GROUP or pl.Level.CHIP"):
        pl.at(level=pl.Level.AIV)
    with pytest.raises(InvalidOperationError, match=r"role must be pl.Role.Orchestrator at pl.Level.CHIP"):
        pl.at(level=pl.Level.CORE_GROUP, role=pl.Role.Orchestrator)
    with pytest.raises(InvalidOperationError, match="split= is not supported"):
        pl.at(level=pl.Level.CORE_GROUP, split=2)
    with pytest.raises(InvalidOperationError, match="deps must be task ids"):
        pl.at(level=pl.Level.CORE_GROUP, deps=[3])
    with pytest.raises(ParserSyntaxError, match="whose source is at hand"):
        with pl.at(level=pl.Level.CORE_GROUP):
            pass


def test_a_block_cannot_be_left_by_return():
    @pl.jit
    def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
        with pl.at(level=pl.Level.CORE_GROUP):
            copy_tile(x, y)
            return y

    with pytest.raises(
        ParserSyntaxError, match=r"test_blocks.py:\d+: a pl.at block .* cannot be left by return"
    ):
        run_on(orchestration)


def test_what_a_later_task_computes_is_not_available_before():
    @pl.jit
    def orchestration(x: ROW, y: OUT, data: WINDOW, signal: SIGNAL):
        with pl.at(level=pl.Level.CORE_GROUP, deps=[]):
            tile = pl.load(x, [0, 0], [1, N])
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(tile, [0, 0], y)

    with pytest.raises(
        InvalidOperationError, match="which has not run: let the block write a tensor instead"
    ):
        run_on(orchestration)


# ---- in a host body ---------------------------------------------------------------------------------


def test_an_anonymous_chip_task_goes_to_the_next_chip():
    nr = 3

    @pl.program
    class Host:
        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[nr, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[nr, 1, N], pl.FP32]]):
            for k in pl.range(nr):
                row = x[k]
                out = y[k]
                with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        tile = pl.mul(pl.load(row, [0, 0], [1, N]), float(k + 1))
                        out = pl.store(tile, [0, 0], out)
            return y

    program = compiled(Host, nr)
    x, y = floats(nr, 1, N), np.zeros((nr, 1, N), np.float32)
    program(x, y, config=MACHINE)
    assert np.array_equal(y, x * np.array([1, 2, 3], np.float32)[:, None, None])
    assert [k[0] for k in kernels(program)] == [0, 1, 2]


def test_chip_tasks_follow_the_tensors_that_they_share():
    """The second task, on another chip, reads what the first one wrote."""

    @pl.program
    class Host:
        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: ROW, y: OUT):
            middle = pl.create_tensor([1, N], dtype=pl.FP32)
            with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator), pl.at(level=pl.Level.CORE_GROUP):
                middle = pl.store(pl.add(pl.load(x, [0, 0], [1, N]), 1.0), [0, 0], middle)
            with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = pl.store(pl.add(pl.load(middle, [0, 0], [1, N]), 1.0), [0, 0], y)

    program = compiled(Host, 2)
    x, y = floats(1, N), np.zeros((1, N), np.float32)
    program(x, y, config=MACHINE)
    assert np.array_equal(y, x + 1 + 1)
    (_, _, _, end), (rank, _, start, _) = kernels(program)
    assert rank == 1 and start >= end
    assert program.last_trace.edges == [((0, 0), (1, 0))]
