"""Workers: devices that stay ready for many calls."""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig, ir
from a2a3sim.config import DistributedConfig
from a2a3sim.errors import DeadlockError, InvalidOperationError, WorkerError
from a2a3sim.run.worker import DistributedWorker, StackedDeviceTensor

from .programs import MACHINE, compiled, floats

N, P = 16, 2
ROW = pl.Tensor[[1, N], pl.FP32]
OUT = pl.Out[ROW]
WINDOW = pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]]
SIGNAL = pl.InOut[pld.DistributedTensor[[1, 16], pl.INT32]]
ALL = pl.Tensor[[P, 1, N], pl.FP32]
HOST = {"level": pl.Level.HOST, "role": pl.Role.Orchestrator}


def accumulating():
    """Each call adds x to the rank's window, counts its calls in a signal cell, and shows both in y."""

    @pl.program
    class Accumulating:
        @pl.function(type=pl.FunctionType.InCore)
        def step(self, x: ROW, y: OUT, win: WINDOW, signal: SIGNAL):
            total = pl.add(pl.load(win, [0, 0], [1, N]), pl.load(x, [0, 0], [1, N]))
            pl.store(total, [0, 0], win)
            me = pld.rank(pld.get_comm_ctx(win))
            pld.system.notify(signal, me, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
            pl.store(pl.add(total, float(pl.read(signal, [0, 0]))), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: ROW, y: OUT, win: WINDOW, signal: SIGNAL):
            self.step(x, y, win, signal)

        @pl.function(**HOST)
        def host(self, x: ALL, y: pl.Out[ALL]):
            buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
            cells = pld.alloc_window_buffer([1, 16], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                win = pld.window(buf, [1, N], dtype=pl.FP32)
                self.per_rank(x[r], y[r], win, pld.window(cells, [1, 16], dtype=pl.INT32), device=r)

    return compiled(Accumulating, P)


def adding(sub_worker=False):
    """y = x + 1 per rank; with a sub-worker that is called on y."""

    @pl.program
    class Adding:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def finish(t: pl.InOut[ALL]):
            t[:] = t * 10

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: ROW, y: OUT):
            y[:] = pl.add(x, 1.0)

        @pl.function(**HOST)
        def host(self, x: ALL, y: pl.Out[ALL]):
            for r in pl.range(pld.world_size()):
                self.per_rank(x[r], y[r], device=r)
            if sub_worker:
                self.finish(y)

    return compiled(Adding, P, num_sub_workers=1)


@pytest.fixture
def x():
    return np.ones((P, 1, N), np.float32)


@pytest.fixture
def y():
    return np.zeros((P, 1, N), np.float32)


# ---- windows and clock ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, [2, 2, 2]),  # fresh windows in every call: 0 + 1, and the cell is 1
        ({"persistent": True}, [2, 2, 2]),  # kept but zeroed
        ({"persistent": True, "reset_persistent_windows": True}, [2, 2, 2]),
        ({"persistent": True, "reset_persistent_windows": False}, [2, 4, 6]),  # k + the cell's k
    ],
)
def test_windows_between_calls(x, y, options, expected):
    found = []
    with accumulating().prepare(MACHINE, **options) as rt:
        for _ in range(3):
            rt(x, y)
            found.append(y[0, 0, 0])
    assert found == expected


def test_every_call_is_a_run_and_the_clock_goes_on(x, y):
    rt = adding().prepare(MACHINE.with_(machine="a2"))
    runs = []
    for _ in range(3):
        rt(x, y)
        runs.append(rt.last_run)
    ends = [max(p.end_ps for p in r.per_rank) for r in runs]
    starts = [min(p.start_ps for p in r.per_rank) for r in runs]
    assert starts[0] < ends[0] <= starts[1] < ends[1] <= starts[2]
    assert len({r.kernel_ps for r in runs}) == 1
    assert len({r.total_ps for r in runs}) == 1
    assert runs[0].total_ps >= runs[0].kernel_ps
    assert [lane.call for lane in rt.last_trace.lanes] == [2] * len(rt.last_trace.lanes)
    rt.close()


def test_kept_windows_are_the_same_memory_in_every_call(x, y):
    with accumulating().prepare(MACHINE, persistent=True, reset_persistent_windows=False) as rt:
        found = []
        for _ in range(2):
            rt(x, y)
            found.append([m for m in rt.last_trace.memories if m.kind == "window"])
    assert found[0] == found[1]
    ids = [m.id for m in rt.last_trace.memories]
    assert len(set(ids)) == len(ids)


# ---- calling ----------------------------------------------------------------------------------------


def test_calls_are_in_place_on_all_arguments(x, y):
    with adding().prepare(MACHINE) as rt:
        assert rt(x, y) is None
        assert np.array_equal(y, x + 1)
        with pytest.raises(TypeError, match=r"takes 2 arguments \(x, y\), got 1"):
            rt(x)


def test_several_programs(x, y):
    one, two = adding(), accumulating()
    with one.prepare(MACHINE, extra_compiled=[two]) as rt:
        with pytest.raises(TypeError, match="ambiguous"):
            rt(x, y)
        rt.run(one, x, y)
        assert np.array_equal(y, x + 1)
        handle = rt.register(two)
        assert handle.compiled is two and not handle.closed
        handle(x, y)
        assert y[0, 0, 0] == 2
        third = adding()
        with pytest.raises(InvalidOperationError, match="not registered"):
            rt.run(third, x, y)
        late = rt.register(third)
        late(x, y)
        late.close()
        assert late.closed
        with pytest.raises(RuntimeError, match="called after close"):
            late(x, y)
    assert handle.closed


def test_programs_of_one_worker_share_its_devices():
    other = ir.compile(adding().owner, distributed_config=DistributedConfig(device_ids=[3, 4]))
    with pytest.raises(ValueError, match=r"must use the same devices, got \[0, 1\] and \[3, 4\]"):
        adding().prepare(extra_compiled=[other])
    with pytest.raises(TypeError, match="takes compiled programs"):
        DistributedWorker([object()])


def test_nothing_works_after_close(x, y):
    rt = adding().prepare(MACHINE)
    rt.close()
    rt.close()
    for use in (
        lambda: rt(x, y),
        lambda: rt.run(None, x, y),
        lambda: rt.submit(x, y),
        lambda: rt.register(adding()),
        lambda: rt.alloc_tensor((2,), np.float32),
        rt.__enter__,
    ):
        with pytest.raises(RuntimeError, match="called after close"):
            use()


def test_two_calls_are_in_flight(x):
    ys = [np.zeros((P, 1, N), np.float32) for _ in range(4)]
    with adding().prepare(MACHINE) as rt:
        frames = [rt.submit(x, ys[0]), rt.submit(x, ys[1])]
        assert [f.done() for f in frames] == [False, False]
        frames.append(rt.submit(x, ys[2]))  # waits for the oldest
        assert [f.done() for f in frames] == [True, False, False]
        assert frames[1].wait() is True
        assert frames[1].result() is None
        assert [f.done() for f in frames] == [True, True, False]
        rt(x, ys[3])  # a plain call waits for all
        assert frames[2].done()
        assert frames[0].last_run is not frames[1].last_run
    assert all(np.array_equal(y, x + 1) for y in ys)


def test_closing_finishes_what_is_in_flight(x, y):
    rt = adding().prepare(MACHINE)
    frame = rt.submit(rt.programs[0], x, y)
    rt.close()
    assert frame.done() and np.array_equal(y, x + 1)


def test_an_error_comes_out_of_the_frame_and_ends_the_worker(x, y):
    @pl.program
    class Hanging:
        @pl.function(type=pl.FunctionType.InCore)
        def step(self, y: OUT, signal: SIGNAL):
            pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, y: OUT, signal: SIGNAL):
            self.step(y, signal)

        @pl.function(**HOST)
        def host(self, y: pl.Out[ALL]):
            cells = pld.alloc_window_buffer([1, 16], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.per_rank(y[r], pld.window(cells, [1, 16], dtype=pl.INT32), device=r)

    rt = compiled(Hanging, P).prepare(MACHINE)
    frame = rt.submit(y)
    with pytest.raises(DeadlockError):
        frame.result()
    assert rt.last_run is not None
    with pytest.raises(WorkerError, match="cannot go on after an earlier call failed: deadlock"):
        rt(y)


# ---- sub-workers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("keyword", ["callbacks", "sub_worker_overrides"])
def test_callbacks_stand_in_for_sub_workers(x, y, keyword):
    seen = []

    def finish(t):
        seen.append(t.shape)
        t[:] = -t

    with adding(sub_worker=True).prepare(MACHINE, **{keyword: {"finish": finish}}) as rt:
        rt(x, y)
    assert np.array_equal(y, -(x + 1)) and seen == [(P, 1, N)]
    with adding(sub_worker=True).prepare(MACHINE) as rt:
        rt(x, y)
    assert np.array_equal(y, 10 * (x + 1))


def test_unknown_callbacks():
    with pytest.raises(ValueError, match="end, start are not sub-workers; the programs have finish"):
        adding().prepare(callbacks={"end": print, "start": print})


# ---- tensors on devices -----------------------------------------------------------------------------


def per_device():
    """y[r] = x[r] + 1 where x and y live on the devices."""
    return adding()


def test_stacked_tensors_stay_on_their_devices(x):
    with per_device().prepare(MACHINE) as rt:
        a, b = rt.alloc_stacked_tensor(x), rt.alloc_stacked_tensor(np.zeros_like(x))
        assert isinstance(a, StackedDeviceTensor)
        assert (a.shape, a.worker_ids) == ((P, 1, N), [0, 1])
        rt(a, b)
        rt(b, a)
        back = np.zeros_like(x)
        rt.copy_stacked_from(back, a)
        assert np.array_equal(back, x + 2)
        assert len(rt._owned_tensors) == 4
        rt.free_stacked_tensor(b)
        with pytest.raises(InvalidOperationError, match="has been freed"):
            rt(a, b)
        # One-shot calls know no such tensors.
        with pytest.raises(TypeError, match="tensors on devices belong to a worker"):
            rt.programs[0](a, back, config=MACHINE)


def test_a_tensor_is_used_on_its_device_only(x, y):
    @pl.program
    class OneRow:
        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: ROW, y: OUT):
            y[:] = pl.add(x, 1.0)

        @pl.function(**HOST)
        def host(self, x: ROW, y: OUT):
            self.per_rank(x, y, device=1)

    row = floats(1, N)
    with compiled(OneRow, P).prepare(MACHINE) as rt:
        right = rt.alloc_tensor((1, N), np.float32, init=row, worker_id=1)
        wrong = rt.alloc_tensor([1, N], pl.FP32)
        result = np.zeros((1, N), np.float32)
        rt(right, result)
        assert np.array_equal(result, row + 1)
        with pytest.raises(
            InvalidOperationError, match=r"per_rank runs on rank 1, but its argument .* on rank 0"
        ):
            rt(wrong, result)
    assert right.freed


def test_copies_and_allocation_rules():
    with adding().prepare(MACHINE) as rt:
        first = rt._w._next_alloc_id
        tensor = rt.alloc_tensor((4,), np.int32)
        assert rt._w._next_alloc_id == first + 1
        assert tensor.nbytes == 16
        rt.copy_to(tensor, np.arange(4, dtype=np.int32))
        back = np.zeros(4, np.int32)
        rt.copy_from(back, tensor)
        assert back.tolist() == [0, 1, 2, 3]
        with pytest.raises(InvalidOperationError, match=r"must have shape \[4\]"):
            rt.copy_to(tensor, np.zeros(5, np.int32))
        with pytest.raises(ValueError, match=r"worker_id must be a rank in \[0, 2\), got 2"):
            rt.alloc_tensor((4,), np.int32, worker_id=2)
        with pytest.raises(InvalidOperationError, match="extents of a device tensor must be positive"):
            rt.alloc_tensor((0,), np.int32)
        rt.free_tensor(tensor)
        with pytest.raises(InvalidOperationError, match="or it has been freed"):
            rt.free_tensor(tensor)


def test_torch_tensors_must_be_shared(y):
    torch = pytest.importorskip("torch")
    x, result = torch.ones(P, 1, N), torch.zeros(P, 1, N).share_memory_()
    program = adding()
    with program.prepare(MACHINE) as rt:
        with pytest.raises(TypeError, match="argument x of Adding must be in shared memory"):
            rt(x, result)
        rt(x.clone().share_memory_(), result)
        assert torch.equal(result, x + 1)
        assert rt.alloc_tensor((2,), torch.bfloat16).dtype is pl.BF16
    with DistributedWorker(program, MACHINE, inherited_host_tensors=[x]) as rt:
        rt(x, result)
        rt.release_inherited_host_tensor_refs()
        with pytest.raises(TypeError, match="shared memory"):
            rt(x, result)


def test_a_worker_keeps_its_devices(x, y):
    with adding().prepare(MACHINE) as rt:
        other = MACHINE.with_(distributed_config=DistributedConfig(device_ids=[0]))
        with pytest.raises(ValueError, match=r"a worker's devices stay \[0, 1\], a call cannot use \[0\]"):
            rt(x, y, config=other)
        rt(x, y, config=RunConfig(machine="a2", checks=False))
        assert rt.last_run.platform == "a2"
