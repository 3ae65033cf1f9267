"""Whole tensors: tiles in a kernel, small kernels in an orchestration, views everywhere."""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig
from a2a3sim.errors import InvalidOperationError, KernelError, ParserSyntaxError
from a2a3sim.language.kernel.tensors import pieces

from .programs import MACHINE, compiled, copy_tile, floats, operations, run


def test_pieces_cover_a_tensor_once():
    # 3 x 5 in at most 4 elements: rows one by one, each as 4 + 1.
    assert list(pieces((3, 5), 4)) == [((r, c), (1, e)) for r in range(3) for c, e in ((0, 4), (4, 1))]
    assert list(pieces((4, 2), 4)) == [((0, 0), (2, 2)), ((2, 0), (2, 2))]
    assert list(pieces((7,), None)) == [((0,), (7,))]


@pytest.mark.parametrize("kernel", [True, False])
def test_arithmetic_on_whole_tensors(kernel):
    x = floats(2, 16)

    def body(x, y):
        z = pl.tensor.add(x, pl.mul(x, 2.0) if not kernel else x)
        z = pl.cast(z, pl.INT32)
        pl.assemble(y, z, [0, 0])

    y = run(body, x, out_dtype=pl.INT32, kernel=kernel)
    total = x + (x if kernel else x * np.float32(2))
    assert np.array_equal(y, np.trunc(total + np.copysign(np.float32(0.5), total)).astype(np.int32))


def test_an_operation_in_an_orchestration_is_a_kernel_of_its_own():
    keep = []

    def body(x, y):
        y[:] = pl.add(x, 1.0)

    x = floats(2, 16)
    assert np.array_equal(run(body, x, kernel=False, keep=keep), x + 1)
    trace = keep[0].last_trace
    assert [lane.kernel for lane in trace.lanes] == ["add", "assemble"]
    assert trace.edges == [((0, 0), (0, 1))]
    assert [m.kind for m in trace.memories] == ["tensor", "tensor", "created"]


def test_large_tensors_are_worked_off_piece_by_piece():
    # 1 MiB per operand in 184 KiB of UB.
    x = floats(64, 4096)

    def body(x, y):
        y[:] = pl.add(x, x)

    assert np.array_equal(run(body, x, kernel=False, config=RunConfig(machine="a2", checks=False)), x + x)


def test_a_slice_in_an_orchestration_is_a_view():
    x = floats(4, 16)

    def body(x, y):
        part = pl.tensor.slice(y, [2, 8], [1, 4])
        row = pl.slice(x, [1, 8], [3, 0], drop_dims=[0])
        assert (part.shape, row.shape) == ([2, 8], [8])
        part[0, :] = row
        part[1] = x[0, 8:16]

    y = run(body, x, kernel=False)
    expected = np.zeros_like(x)
    expected[1, 4:12], expected[2, 4:12] = x[3, :8], x[0, 8:]
    assert np.array_equal(y, expected)


def test_a_slice_in_a_kernel_is_a_tile():
    x = floats(4, 16)

    def body(x, y):
        part = pl.slice(x, [4, 16], [2, 0], clamp=True)
        assert isinstance(part, pl.Tile)
        assert part.valid == (2, 16)
        pl.store(part, [0, 0], y)

    assert np.array_equal(run(body, x, (2, 16)), x[2:])


def test_assemble_writes_in_place_and_returns_the_target():
    x = floats(2, 16)

    def body(x, y):
        assert pl.assemble(y, pl.load(x, [0, 0], [1, 16]), [2, 0]) is y
        pl.assemble(y, x[1], [0, 0])
        pl.assemble(y, pl.load(x, [0, 0], [1, 16]), [2, 0], atomic=pld.AtomicType.Add)

    y = run(body, x, (3, 16))
    assert np.array_equal(y, [x[1], np.zeros(16), 2 * x[0]])


def test_assembling_what_stands_there_already_costs_nothing():
    keep = []

    def body(x, y):
        pl.assemble(y, y[1:2, 0:16], [1, 0])

    run(body, floats(2, 16), kernel=False, keep=keep)
    assert operations(keep[0]) == []


def test_assigning_to_parts():
    x = floats(4, 8)

    def body(x, y):
        y[1:3, 0:8] = pl.load(x, [0, 0], [2, 8])
        y[0] = x[3]
        y[3, 7] = 5.0

    y = run(body, x)
    assert np.array_equal(y[:3], [x[3], x[0], x[1]])
    assert y[3].tolist() == [0] * 7 + [5.0]
    with pytest.raises(InvalidOperationError, match=r"extents must be \[2, 8\], got \[1, 8\]"):
        run(lambda x, y: y.__setitem__(slice(0, 2), pl.load(x, [0, 0], [1, 8])), x)


def test_scratch_tensors_of_a_device():
    x = floats(1, 16)

    def body(x, y):
        scratch = pl.create_tensor([1, 16], dtype=pl.FP32)
        assert scratch.name == "scratch"
        copy_tile(x, scratch)
        copy_tile(scratch, y)

    assert np.array_equal(run(body, x, ranks=2), x)


def test_an_orchestration_reads_scalars():
    x = np.array([[3, 1, 4, 1, 5, 9, 2, 6]], np.int32)
    keep = []

    def body(x, y):
        total = 0
        for k in pl.range(x[0, 0]):
            total = total + pl.read(x, [0, k])
        pl.write(y, [0, 0], total)

    assert run(body, x, kernel=False, keep=keep)[0, 0] == 3 + 1 + 4
    # Everything after a read may depend on it.
    edges = keep[0].last_trace.edges
    assert {((0, 0), (0, k)) for k in range(1, 5)} <= set(edges)


def test_a_timing_only_run_cannot_read_scalars_of_tensors_that_are_not_kept():
    def body(x, y):
        pl.write(y, [0, 0], pl.read(x, [0, 0]) + 1)

    x = np.array([[3] * 8], np.int32)
    with pytest.raises(KernelError, match=r"keep=\['x\[0\]'\]|keep=\['x'\]"):
        run(body, x, config=MACHINE.with_(timing_only=True))
    assert run(body, x, config=MACHINE.with_(timing_only=True, keep=["x", "y"]))[0, 0] == 4


def test_views_of_windows_in_a_kernel():
    """``win[a:b, c:d]`` is a window: its peers see the same part of theirs."""
    x_t, out_t = pl.Tensor[[4, 8], pl.FP32], pl.Out[pl.Tensor[[2, 4], pl.FP32]]
    nr = 3

    @pl.program
    class Corners:
        @pl.function(type=pl.FunctionType.InCore)
        def step(
            self,
            x: x_t,
            y: out_t,
            win: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 16], pl.INT32]],
        ):
            me = pld.rank(pld.get_comm_ctx(win))
            copy_tile(x, win)
            pld.system.notify(signal, (me + nr - 1) % nr, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
            corner = win[2:4, 4:8]
            assert isinstance(corner, pld.DistributedTensor)
            pl.store(pld.tile.remote_load(corner, (me + 1) % nr, [0, 0], [2, 4]), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: x_t,
            y: out_t,
            win: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 16], pl.INT32]],
        ):
            self.step(x, y, win, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[nr, 4, 8], pl.FP32], y: pl.Out[pl.Tensor[[nr, 2, 4], pl.FP32]]):
            buf = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
            cells = pld.alloc_window_buffer([nr, 16], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                win = pld.window(buf, [4, 8], dtype=pl.FP32)
                self.per_rank(x[r], y[r], win, pld.window(cells, [nr, 16], dtype=pl.INT32), device=r)

    x, y = floats(nr, 4, 8), np.zeros((nr, 2, 4), np.float32)
    compiled(Corners, nr)(x, y, config=MACHINE)
    assert np.array_equal(y, np.roll(x, -1, axis=0)[:, 2:4, 4:8])


def test_what_is_not_supported_says_so():
    x = floats(2, 16)
    with pytest.raises(InvalidOperationError, match="pad_value= is not supported"):
        run(lambda x, y: pl.slice(x, [1, 16], [0, 0], pad_value=0), x)
    with pytest.raises(
        ParserSyntaxError, match=r"pl.load stands in a orchestration body|pl.load stands in an orch"
    ):
        run(lambda x, y: pl.load(x, [0, 0], [1, 16]), x, kernel=False)
    with pytest.raises(InvalidOperationError, match="source is FP32 but target is INT32"):
        run(lambda x, y: pl.assemble(y, x, [0, 0]), x, out_dtype=pl.INT32, kernel=False)
