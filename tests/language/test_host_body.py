"""The host body: devices and domains, intermediates, sub-workers, and what it refuses."""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.errors import (
    InternalError,
    InvalidOperationError,
    KernelError,
    ParserSyntaxError,
    ParserTypeError,
)

from .programs import MACHINE, compiled, copy_tile, floats

N = 8
ROW = pl.Tensor[[1, N], pl.FP32]
OUT = pl.Out[pl.Tensor[[1, N], pl.FP32]]
WINDOW = pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]]
HOST = {"level": pl.Level.HOST, "role": pl.Role.Orchestrator}
ranks_seen = []


@pl.jit.incore
def add_one_step(x: ROW, y: OUT):
    pl.store(pl.add(pl.load(x, [0, 0], [1, N]), 1.0), [0, 0], y)


@pl.jit
def add_one(x: ROW, y: OUT):
    add_one_step(x, y)


@pl.jit.incore
def domain_step(win: pld.DistributedTensor[[1, N], pl.FP32], y: OUT):
    ctx = pld.get_comm_ctx(win)
    pl.write(y, [0, 0], pld.rank(ctx))
    pl.write(y, [0, 1], pld.nranks(ctx))


@pl.jit
def domain(win: pld.DistributedTensor[[1, N], pl.FP32], y: OUT):
    domain_step(win, y)


def run_host(host, ranks, *arrays, **config):
    """Run a jit host entry."""
    from a2a3sim import DistributedConfig

    distributed = DistributedConfig(device_ids=list(range(ranks)), **config)
    program = host.compile(*arrays, config=MACHINE.with_(distributed_config=distributed))
    program(*arrays, config=MACHINE)
    return program


# ---- devices and domains ----------------------------------------------------------------------------


def test_constants_and_subset_loops_make_domains_of_their_own():
    @pl.jit.host
    def host(y: pl.Out[pl.Tensor[[4, 1, N], pl.FP32]]):
        all_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        some_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        one_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        for r in pl.range(1, 3):
            domain(pld.window(some_buf, [1, N], dtype=pl.FP32), y[r], device=r)
        domain(pld.window(one_buf, [1, N], dtype=pl.FP32), y[0], device=0)
        domain(pld.window(all_buf, [1, N], dtype=pl.FP32), y[3], device=3)
        for r in pl.range(pld.world_size()):
            domain(pld.window(all_buf, [1, N], dtype=pl.FP32), y[r] if r == 3 else y[0], device=r)

    y = np.zeros((4, 1, N), np.float32)
    program = run_host(host, 4, y)
    # Device 1 is rank 0 and device 2 rank 1 of the subset; device 3 is rank 3 of all four.
    assert y[1:, 0, :2].tolist() == [[0, 2], [1, 2], [3, 4]]
    assert program.last_trace.domains == {"all_buf": (0, 1, 2, 3), "some_buf": (1, 2), "one_buf": (0,)}


def test_device_ids_are_labels():
    from a2a3sim import DistributedConfig

    @pl.jit.host
    def host(y: pl.Out[pl.Tensor[[3, 1, N], pl.FP32]]):
        buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            domain(pld.window(buf, [1, N], dtype=pl.FP32), y[r], device=r)

    y = np.zeros((3, 1, N), np.float32)
    config = MACHINE.with_(distributed_config=DistributedConfig(device_ids=[4, 7, 9]))
    host(y, config=config)
    assert y[:, 0, :2].tolist() == [[0, 3], [1, 3], [2, 3]]
    assert host.last_run.device_labels == [4, 7, 9]


def test_dispatches_without_device_go_round():
    @pl.jit.host
    def host(x: pl.Tensor[[5, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[5, 1, N], pl.FP32]]):
        for k in pl.range(5):
            add_one(x[k], y[k])

    x, y = floats(5, 1, N), np.zeros((5, 1, N), np.float32)
    program = run_host(host, 3, x, y)
    assert np.array_equal(y, x + 1)
    assert [d.rank for d in sorted(program.last_trace.dispatches, key=lambda d: d.index)] == [0, 1, 2, 0, 1]


def test_dispatches_of_one_device_run_in_order_and_one_at_a_time():
    @pl.jit.host
    def host(x: ROW, y: OUT):
        middle = pl.create_tensor([1, N], dtype=pl.FP32)
        add_one(x, middle, device=0)
        add_one(middle, y, device=0)

    x, y = floats(1, N), np.zeros((1, N), np.float32)
    program = run_host(host, 1, x, y)
    assert np.array_equal(y, x + 1 + 1)
    assert program.last_trace.edges == [((0, 0), (1, 0))]


def test_devices_follow_each_other_through_host_tensors():
    """A chain of intermediates over three devices; the fourth device waits for nobody."""

    @pl.jit.host
    def host(x: pl.Tensor[[2, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, N], pl.FP32]]):
        a = pl.create_tensor([1, N], dtype=pl.FP32)
        b = pl.create_tensor([1, N], dtype=pl.FP32)
        add_one(x[0], a, device=0)
        add_one(a, b, device=1)
        add_one(b, y[0], device=2)
        add_one(x[1], y[1], device=3)

    x, y = floats(2, 1, N), np.zeros((2, 1, N), np.float32)
    program = run_host(host, 4, x, y)
    assert np.allclose(y[0], x[0] + 3) and np.array_equal(y[1], x[1] + 1)
    assert program.last_trace.edges == [((0, 0), (1, 0)), ((1, 0), (2, 0))]


def test_a_statement_in_a_loop_allocates_one_window():
    @pl.jit.host
    def host(y: pl.Out[pl.Tensor[[2, 1, N], pl.FP32]]):
        for r in pl.range(pld.world_size()):
            buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
            domain(pld.window(buf, [1, N], dtype=pl.FP32), y[r], device=r)

    y = np.zeros((2, 1, N), np.float32)
    program = run_host(host, 2, y)
    assert program.last_trace.domains == {"buf": (0, 1)}
    assert y[:, 0, :2].tolist() == [[0, 2], [1, 2]]


def test_a_callee_sees_the_window_as_it_declares_it():
    """``window(buf, [N])`` is passed to a [1, N] parameter."""

    @pl.jit.host
    def host(y: pl.Out[pl.Tensor[[1, 1, N], pl.FP32]]):
        buf = pld.alloc_window_buffer(N * pl.FP32.get_byte())
        for r in pl.range(pld.world_size()):
            domain(pld.window(buf, [N], dtype=pl.FP32), y[r], device=r)

    y = np.zeros((1, 1, N), np.float32)
    run_host(host, 1, y)
    assert y[0, 0, :2].tolist() == [0, 1]


# ---- intermediates and sub-workers ------------------------------------------------------------------

SCALE = 3.0


def build_with_sub_worker(tasks=None):
    """Chip task, sub-worker, chip task; what runs on the host is logged in ``tasks``."""
    log = tasks if tasks is not None else []

    @pl.program
    class Mixed:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def scale(src: pl.Tensor[[2, 1, N], pl.FP32], dst: pl.Out[pl.Tensor[[2, 1, N], pl.FP32]]):
            log.append(type(src).__module__)
            dst[:] = src * SCALE

        @pl.function(type=pl.FunctionType.InCore)
        def step(self, x: ROW, y: OUT):
            pl.store(pl.add(pl.load(x, [0, 0], [1, N]), 1.0), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, x: ROW, y: OUT):
            self.step(x, y)

        @pl.function(**HOST)
        def host(self, x: pl.Tensor[[2, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, N], pl.FP32]]):
            before = pl.create_tensor([2, 1, N], dtype=pl.FP32)
            after = pl.create_tensor([2, 1, N], dtype=pl.FP32)
            for r in pl.range(pld.world_size()):
                self.chip(x[r], before[r], device=r)
            self.scale(before, after)
            for r in pl.range(pld.world_size()):
                self.chip(after[r], y[r], device=r)

    return Mixed


def test_a_sub_worker_runs_between_the_chip_tasks_that_it_depends_on():
    log = []
    program = compiled(build_with_sub_worker(log), 2, num_sub_workers=1)
    x, y = floats(2, 1, N), np.zeros((2, 1, N), np.float32)
    program(x, y, config=MACHINE)
    assert np.array_equal(y, (x + 1) * np.float32(3) + 1)
    assert log == ["numpy"]
    # Both second dispatches follow both first ones, through the host.
    edges = set(program.last_trace.edges)
    assert {((0, 0), (3, 0)), ((1, 0), (3, 0)), ((0, 0), (4, 0)), ((1, 0), (4, 0))} <= edges


def test_sub_workers_need_processes():
    program = compiled(build_with_sub_worker(), 2)
    x, y = floats(2, 1, N), np.zeros((2, 1, N), np.float32)
    with pytest.raises(
        InvalidOperationError, match="sub-worker scale: num_sub_workers must be at least 1, got 0"
    ):
        program(x, y, config=MACHINE)


def test_an_error_of_a_sub_worker_names_it():
    @pl.program
    class Failing:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def fail(x: ROW):
            raise LookupError("nothing there")

        @pl.function(**HOST)
        def host(self, x: ROW):
            self.fail(x)

    program = compiled(Failing, 1, num_sub_workers=1)
    with pytest.raises(
        KernelError, match=r"test_host_body.py:\d+: sub-worker fail: the program raised LookupError"
    ):
        program(floats(1, N), config=MACHINE)


def test_timing_only_runs_leave_sub_workers_out():
    log = []
    program = compiled(build_with_sub_worker(log), 2, num_sub_workers=1)
    x, y = floats(2, 1, N), np.zeros((2, 1, N), np.float32)
    program(x, y, config=MACHINE)
    whole = program.last_run.kernel_ps
    log.clear()
    program(x, y, config=MACHINE.with_(timing_only=True))
    assert log == []
    assert program.last_run.kernel_ps == whole


# ---- what a host body refuses -----------------------------------------------------------------------


def refuses(host, error, message, ranks=2):
    with pytest.raises(error, match=message):
        run_host(host, ranks, np.zeros((ranks, 1, N), np.float32))


Y = pl.Out[pl.Tensor[[pl.dynamic("R"), 1, N], pl.FP32]]


def test_windows_must_be_viewed_and_dispatched():
    @pl.jit.host
    def never_viewed(y: Y):
        buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        return buf

    @pl.jit.host
    def never_dispatched(y: Y):
        buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        pld.window(buf, [1, N], dtype=pl.FP32)

    refuses(never_viewed, InternalError, "buf is allocated but never viewed")
    refuses(never_dispatched, RuntimeError, "buf is never passed to a dispatch")


def test_allocation_sizes():
    def refused(size, message, **dtype):
        @pl.jit.host
        def host(y: Y):
            buf = pld.alloc_window_buffer(size, **dtype)
            return buf

        refuses(host, ValueError, message)

    refused([1, N], "needs its dtype")
    refused([], r"extents must be positive, got \[\]", dtype=pl.FP32)
    refused([2, 0], r"extents must be positive, got \[2, 0\]", dtype=pl.FP32)
    refused(64, "takes no dtype", dtype=pl.FP32)
    refused(0, "size must be positive, got 0")
    refused("64", "size must be bytes or a shape, got '64'")


def test_a_view_must_fit_and_view_a_window():
    @pl.jit.host
    def too_large(y: Y):
        buf = pld.alloc_window_buffer(16)
        pld.window(buf, [1, N], dtype=pl.FP32)

    refuses(too_large, ValueError, r"a view \[1, 8\] of FP32 needs 32 B, but buf has 16 B")
    with pytest.raises(TypeError, match="takes a window buffer"):
        pld.window("buf", [1, N], dtype=pl.FP32)


def test_allocations_stand_alone_on_the_right_of_an_assignment():
    with pytest.raises(
        ParserSyntaxError, match=r"test_host_body.py:\d+: .* must be the right side of a plain assignment"
    ):

        @pl.jit.host
        def nested(y: Y):
            win = pld.window(pld.alloc_window_buffer([1, N], dtype=pl.FP32), [1, N], dtype=pl.FP32)
            domain(win, y[0], device=0)

    with pytest.raises(ParserSyntaxError, match="buf is allocated twice"):

        @pl.jit.host
        def twice(y: Y):
            buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
            buf = pld.alloc_window_buffer([2, N], dtype=pl.FP32)
            return buf

    with pytest.raises(ParserSyntaxError, match="name= is reserved"):
        pld.alloc_window_buffer(64, name="mine")


def test_device_is_a_constant_or_a_unit_step_loop_variable():
    with pytest.raises(ParserTypeError, match=r"got r \+ 1, an expression"):

        @pl.jit.host
        def expression(y: Y):
            for r in pl.range(1):
                add_one(y[r], y[r], device=r + 1)

    with pytest.raises(ParserTypeError, match="got r, whose loop has the step 2"):

        @pl.jit.host
        def stepping(y: Y):
            for r in pl.range(0, 4, 2):
                add_one(y[r], y[r], device=r)

    with pytest.raises(ParserTypeError, match="got target, which the body computes"):

        @pl.jit.host
        def computed(y: Y):
            target = pld.world_size() - 1
            add_one(y[0], y[0], device=target)

    @pl.jit.host
    def beyond(y: Y):
        add_one(y[0], y[1], device=2)

    refuses(beyond, InvalidOperationError, r"device=2 of add_one, but the program runs on ranks 0..1")


def test_the_host_dispatches_orchestrations():
    @pl.jit.host
    def host(y: Y):
        add_one_step(y[0], y[1], device=0)

    refuses(
        host,
        ParserTypeError,
        "calls add_one_step, a kernel; it can dispatch orchestrations only, and device=",
    )


def test_tensors_come_before_scalars():
    @pl.jit
    def scalar_first(n: pl.Scalar[pl.INT32], y: OUT):
        pl.write(y, [0, 0], n)

    @pl.jit.host
    def host(y: Y):
        scalar_first(3, y[0], device=0)

    refuses(host, RuntimeError, "cannot add tensor after scalar: y follows n")


def test_host_operations_belong_into_host_bodies():
    @pl.jit
    def kernel(y: OUT):
        pld.world_size()

    @pl.jit.host
    def host(y: Y):
        kernel(y[0], device=0)

    refuses(host, ParserSyntaxError, r"test_host_body.py:\d+: rank 0: pld.world_size stands in a kernel body")
    with pytest.raises(ParserSyntaxError, match="outside of a program"):
        pld.world_size()
    with pytest.raises(
        ParserSyntaxError, match=r"add_one is a function of a program|outside of a program|compile"
    ):
        from a2a3sim.language.host.functions import Function

        Function.call(add_one, None, (1, 2), {})


def test_errors_of_a_host_body_name_the_line():
    @pl.jit.host
    def host(y: Y):
        add_one(y[5], y[0], device=0)

    refuses(
        host, KernelError, r"test_host_body.py:\d+: out of bounds: y\[5\] on axis 0, which holds \[0, 2\)"
    )


def test_arguments_must_fit_the_callee():
    @pl.jit.host
    def wrong_number(y: Y):
        add_one(y[0], device=0)

    @pl.jit.host
    def wrong_shape(y: Y):
        add_one(y, y[0], device=0)

    @pl.jit.host
    def wrong_kind(y: Y):
        add_one(y[0], "y", device=0)

    @pl.jit.host
    def no_window(y: Y):
        domain(y[0], y[1], device=0)

    refuses(wrong_number, TypeError, r"add_one takes 2 arguments \(x, y\), got 1")
    refuses(
        wrong_shape, ValueError, r"argument x has shape \[2, 1, 8\] where \[1, 8\] FP32 is declared: rank 3"
    )
    refuses(wrong_kind, TypeError, "argument y must be a tensor, a window or a number, got 'y'")
    refuses(no_window, TypeError, "argument win must be a window")


def test_a_jit_function_with_kernel_operations_is_a_kernel():
    @pl.jit
    def direct(x: ROW, y: OUT):
        copy_tile(x, y)

    @pl.jit.host
    def host(x: pl.Tensor[[2, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, N], pl.FP32]]):
        for r in pl.range(pld.world_size()):
            direct(x[r], y[r], device=r)

    x, y = floats(2, 1, N), np.zeros((2, 1, N), np.float32)
    run_host(host, 2, x, y)
    assert np.array_equal(x, y)
    assert direct.kind == "kernel" and add_one.kind == "orchestration"


def test_a_host_body_reads_its_inputs_but_not_results_to_come():
    seen = []

    @pl.jit.host
    def host(x: ROW, y: OUT):
        seen.append(x[0, 3])
        add_one(x, y, device=0)
        seen.append(y[0, 0])

    x, y = floats(1, N), np.zeros((1, N), np.float32)
    with pytest.raises(InvalidOperationError, match=r"reads an element of y, which add_one writes"):
        run_host(host, 1, x, y)
    assert seen == [x[0, 3]]


def test_a_long_chain_of_host_tasks():
    """Each follows the one before through the same tensor; the last chip task follows the first."""

    @pl.program
    class Chain:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def bump(t: pl.InOut[ROW]):
            t[:] += 1

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, x: ROW, y: OUT):
            y[:] = pl.add(x, 1.0)

        @pl.function(**HOST)
        def host(self, x: ROW, y: OUT):
            middle = pl.create_tensor([1, N], dtype=pl.FP32)
            self.chip(x, middle, device=0)
            for _ in pl.range(300):
                self.bump(middle)
            self.chip(middle, y, device=1)

    program = compiled(Chain, 2, num_sub_workers=1)
    x, y = np.zeros((1, N), np.float32), np.zeros((1, N), np.float32)
    program(x, y, config=MACHINE)
    assert y[0, 0] == 302
    kernels = {lane.dispatch: lane.task for lane in program.last_trace.lanes}
    assert ((0, kernels[0]), (301, 0)) in program.last_trace.edges
