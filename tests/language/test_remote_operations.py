"""One-sided access and signals: signatures, rules and errors. What they cost is tested with the machine."""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import DistributedConfig
from a2a3sim.errors import InvalidOperationError, KernelError

from .programs import MACHINE, floats

N = 16
ADD, SET = pld.NotifyOp.AtomicAdd, pld.NotifyOp.Set
GE, EQ = pld.WaitCmp.Ge, pld.WaitCmp.Eq


def run(body, ranks=3, dtype=pl.FP32, x=None, window=(2, N)):
    """``body(x, y, win, signal)`` in a kernel on every rank; returns (x, y)."""
    nr = pl.dynamic("NR")
    row, win_t = pl.Tensor[[2, N], dtype], pld.DistributedTensor[list(window), dtype]

    @pl.jit
    def kernel(x: row, y: pl.Out[row], win: win_t, signal: pld.DistributedTensor[[4, 16], pl.INT32]):
        body(x, y, win, signal)

    @pl.jit.host
    def host(x: pl.Tensor[[nr, 2, N], dtype], y: pl.Out[pl.Tensor[[nr, 2, N], dtype]]):
        buf = pld.alloc_window_buffer(list(window), dtype=dtype)
        cells = pld.alloc_window_buffer([4, 16], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            win = pld.window(buf, list(window), dtype=dtype)
            kernel(x[r], y[r], win, pld.window(cells, [4, 16], dtype=pl.INT32), device=r)

    if x is None:
        x = floats(ranks, 2, N).astype(dtype.numpy)
    y = np.zeros_like(x)
    host(x, y, config=MACHINE.with_(distributed_config=DistributedConfig(device_ids=list(range(ranks)))))
    return x, y


def refused(body, message, error=InvalidOperationError, **more):
    with pytest.raises(error, match=message):
        run(body, **more)


def here(win):
    ctx = pld.get_comm_ctx(win)
    return pld.rank(ctx), pld.nranks(ctx)


def meet(win, signal, row=0):
    """All ranks have come."""
    me, ranks = here(win)
    for peer in pl.range(ranks):
        pld.system.notify(target=signal, peer=peer, offsets=[row, me], value=1, op=ADD)
    for peer in pl.range(ranks):
        pld.system.wait(signal=signal, offsets=[row, peer], expected=1, cmp=GE)


def stage(x, win):
    pl.store(pl.load(x, [0, 0], [2, N]), [0, 0], win)


def test_rank_and_size_of_the_domain():
    def body(x, y, win, signal):
        me, ranks = here(win)
        pl.write(y, [0, 0], me * 10 + ranks)

    assert run(body)[1][:, 0, 0].tolist() == [3, 13, 23]
    with pytest.raises(TypeError, match=r"pld.rank takes the result of pld.get_comm_ctx"):
        pld.rank(3)
    with pytest.raises(TypeError, match=r"pld.get_comm_ctx: dt must be a window"):
        pld.get_comm_ctx("win")


def test_remote_loads():
    def body(x, y, win, signal):
        me, ranks = here(win)
        stage(x, win)
        meet(win, signal)
        part = pld.tile.remote_load(
            win, peer=(me + 1) % ranks, offsets=[1, 4], shape=[1, 8], valid_shape=[1, 4]
        )
        pl.store(part, [0, 0], y)

    x, y = run(body)
    assert np.array_equal(y[:, 0, :4], np.roll(x, -1, axis=0)[:, 1, 4:8])
    assert not y[:, 0, 4:].any()


def test_remote_stores_of_tiles_and_tensors():
    def body(x, y, win, signal):
        me, ranks = here(win)
        right = (me + 1) % ranks
        pld.tile.remote_store(pl.load(x, [0, 0], [1, N]), target=win, peer=right, offsets=[0, 0])
        pld.tensor.remote_store(x[1:2], win, right, [1, 0])
        pld.remote_store(x[1:2], win, right, [1, 0], atomic=pld.AtomicType.Add)
        pld.remote_store(pl.load(x, [0, 0], [1, 8]), win, right, [0, 0])
        meet(win, signal)
        pl.store(pl.load(win, [0, 0], [2, N]), [0, 0], y)

    x, y = run(body)
    before = np.roll(x, 1, axis=0)
    assert np.array_equal(y, np.stack([before[:, 0], 2 * before[:, 1]], axis=1))


def test_put_and_get_of_regions_and_whole_slices():
    def body(x, y, win, signal):
        me, ranks = here(win)
        right = (me + 1) % ranks
        pld.tensor.put(win, peer=right, src=x)
        pld.tensor.put(win, right, x, [0, 0], [1, 8], [1, 8], chunk_rows=1, chunk_cols=4, pipeline=True)
        meet(win, signal)
        pld.tensor.get(y, peer=right, src=win)
        pld.tensor.get(dst=y, peer=me, src=win, dst_offsets=[1, 0], src_offsets=[0, 0], shape=[1, 4])

    x, y = run(body)
    win = np.roll(x, 1, axis=0).copy()  # what each rank's right neighbour got from it
    win[:, 0, :8] = win[:, 1, 8:]
    expected = np.roll(win, -1, axis=0).copy()
    expected[:, 1, :4] = win[:, 0, :4]
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("chunks", [(1, 0), (0, 4), (1, 5), (100, 100)])
def test_chunks_change_no_result(chunks):
    rows, cols = chunks

    def body(x, y, win, signal):
        me, ranks = here(win)
        pld.tensor.put(win, (me + 1) % ranks, x, chunk_rows=rows, chunk_cols=cols)
        meet(win, signal)
        pl.store(pl.load(win, [0, 0], [2, N]), [0, 0], y)

    x, y = run(body)
    assert np.array_equal(y, np.roll(x, 1, axis=0))


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16, pl.BF16, pl.INT32, pl.INT16, pl.INT8])
def test_atomic_adds_by_dtype(dtype):
    def body(x, y, win, signal):
        _, ranks = here(win)
        for peer in pl.range(ranks):
            pld.tensor.put(win, peer=peer, src=x, atomic=pld.AtomicType.Add)
        meet(win, signal)
        pl.store(pl.load(win, [0, 0], [2, N]), [0, 0], y)

    x = np.random.default_rng(0).integers(-9, 9, (3, 2, N)).astype(dtype.numpy)
    _, y = run(body, dtype=dtype, x=x)
    assert np.array_equal(y, np.broadcast_to(x.astype(int).sum(axis=0).astype(dtype.numpy), y.shape))


def test_signals_count_set_and_wait():
    def body(x, y, win, signal):
        me, _ = here(win)
        if me == 0:
            pld.system.notify(signal, 1, [2, 5], 7, op=SET)
            pld.system.notify(signal, 1, [2, 5], -3, op=ADD)
            pld.system.notify(signal, 0, [3, 0], 2, op=ADD)  # to itself
            pld.system.wait(signal, [3, 0], 2, cmp=EQ)
        elif me == 1:
            pld.system.wait(signal, [2, 5], 4, cmp=EQ)
            pl.write(y, [0, 0], pl.read(signal, [2, 5]))

    assert run(body)[1][1, 0, 0] == 4


# ---- what is refused --------------------------------------------------------------------------------


def tile(x):
    return pl.load(x, [0, 0], [1, N])


@pytest.mark.parametrize(
    "body, message, error",
    [
        (lambda x, y, w, s: pld.tile.remote_load(x, 0, [0, 0], [1, N]), r"target must be a window .* got the tensor x\[0\]", TypeError),
        (lambda x, y, w, s: pld.tile.remote_load(w, 0, [0], [N]), "has rank 2", ValueError),
        (lambda x, y, w, s: pld.tile.remote_load(w, 0, [0, 1], [1, N]), r"out of bounds: pld.tile.remote_load touches \[1, 17\) of axis 1 of buf", KernelError),
        (lambda x, y, w, s: pld.tile.remote_load(w, 3, [0, 0], [1, N]), r"addresses peer 3 of buf, .* ranks 0..2", KernelError),
        (lambda x, y, w, s: pld.tile.remote_load(w, -1, [0, 0], [1, N]), "addresses peer -1", KernelError),
        (lambda x, y, w, s: pld.tile.remote_load(w, 0, [0, 0], [1, 8], [1, 9]), "must fit into shape", ValueError),
        (lambda x, y, w, s: pld.tile.remote_store(x, w, 0, [0, 0]), "src_tile must be a tile", TypeError),
        (lambda x, y, w, s: pld.tile.remote_store(tile(x), x, 0, [0, 0]), "target must be a window", TypeError),
        (lambda x, y, w, s: pld.tile.remote_store(tile(x), s, 0, [0, 0]), "the tile is FP32 but cells is INT32", ValueError),
        (lambda x, y, w, s: pld.tile.remote_store(tile(x), w[0], 0, [0]), "target must have rank >= 2", ValueError),
        (lambda x, y, w, s: pld.tensor.remote_store(w, w, 0, [0, 0]), "src must be a plain tensor, got the window buf; use pld.tensor.put", TypeError),
        (lambda x, y, w, s: pld.tensor.put(x, 0, x), "dst must be a window", TypeError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, tile(x)), "src must be a tensor in global memory, got a tile", TypeError),
        (lambda x, y, w, s: pld.tensor.get(y, 0, x), "src must be a window", TypeError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, x[0:1]), r"a full-slice copy needs equal shapes, got src \[1, 16\]", ValueError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, x[0]), "ranks must be equal", ValueError),
        (lambda x, y, w, s: pld.tensor.put(s, 0, x), "src is FP32 but dst is INT32", ValueError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, x, shape=[1, 1]), "together or none of them", ValueError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, x, [0, 0], [0, 0], [1, 0]), "sizes must be positive", ValueError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, x, [0, 0], [0, 8], [1, 9]), "out of bounds: pld.tensor.put src", KernelError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, x, [2, 0], [0, 0], [1, 1]), "out of bounds: pld.tensor.put dst", KernelError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, x, [-1, 0], [0, 0], [1, 1]), "out of bounds", KernelError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, x, chunk_rows=True), "chunk_rows must be an int, got True", TypeError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, x, chunk_cols=-1), "chunk_cols must be >= 0", ValueError),
        (lambda x, y, w, s: pld.tensor.put(w, 0, x, chunk_rows=1, pipeline=True), "needs chunk_rows and chunk_cols > 0", ValueError),
        (lambda x, y, w, s: pld.system.notify(w, 0, [0, 0], 1, op=ADD), "signal cells are INT32, buf is FP32", ValueError),
        (lambda x, y, w, s: pld.system.notify(s, 0, [0], 1, op=ADD), "has rank 2", ValueError),
        (lambda x, y, w, s: pld.system.notify(s, 0, [4, 0], 1, op=ADD), "out of bounds", KernelError),
        (lambda x, y, w, s: pld.system.notify(s, 0, [0, 0], 1, op=pld.AtomicType.Add), "op must be pld.NotifyOp.AtomicAdd", ValueError),
        (lambda x, y, w, s: pld.system.wait(s, [0, 0], 1, cmp=1), "cmp must be pld.WaitCmp.Ge or pld.WaitCmp.Eq, got 1", ValueError),
        (lambda x, y, w, s: pld.system.wait(x, [0, 0], 1, cmp=GE), "signal must be a window", TypeError),
    ],
)  # fmt: skip
def test_errors_name_operation_operand_line_and_rank(body, message, error):
    with pytest.raises(error, match=r"test_remote_operations.py:\d+: rank \d: .*" + message):
        run(body)


def test_direct_calls_check_kinds_first():
    for call in (
        lambda: pld.tile.remote_load("w", 0, [0], [1]),
        lambda: pld.tensor.put("w", 0, "x"),
        lambda: pld.system.notify("s", 0, [0], 1, op=ADD),
        lambda: pl.load("x", [0], [1]),
        lambda: pl.store("t", [0], "y"),
    ):
        with pytest.raises(TypeError):
            call()


def test_required_keywords():
    with pytest.raises(TypeError, match="op"):
        pld.system.notify("s", 0, [0], 1)
    with pytest.raises(TypeError, match="cmp"):
        pld.system.wait("s", [0], 1)


def test_enumerations_have_the_numbers_of_the_interface():
    assert (ADD, SET, EQ, GE) == (0, 1, 0, 1)
    assert (pld.AtomicType.None_, pld.AtomicType.Add) == (0, 1)
    assert [int(op) for op in (pld.ReduceOp.Sum, pld.ReduceOp.Max, pld.ReduceOp.Min, pld.ReduceOp.Prod)] == [
        0,
        1,
        2,
        3,
    ]
    assert [d.get_byte() for d in (pl.FP32, pl.FP16, pl.BF16, pl.INT32, pl.INDEX, pl.INT8, pl.BOOL)] == [
        4,
        2,
        2,
        4,
        8,
        1,
        1,
    ]


def test_short_forms_exist_for_some_operations_only():
    assert pld.remote_load is pld.tile.remote_load
    for name in ("notify", "wait", "put", "get", "allreduce", "defer_wait"):
        with pytest.raises(AttributeError, match=f"pld has no '{name}'"):
            getattr(pld, name)
    with pytest.raises(AttributeError, match=r"pld.tensor has no 'all_reduce' .did you mean 'allreduce'"):
        pld.tensor.all_reduce  # noqa: B018


def test_whole_slices_of_dynamic_extent_need_chunks():
    rows, cols = pl.dynamic("ROWS"), pl.dynamic("COLS")

    def program(**chunks):
        @pl.jit
        def kernel(x: pl.Tensor[[rows, cols], pl.FP32], win: pld.DistributedTensor[[rows, cols], pl.FP32]):
            pld.tensor.put(win, 0, x, **chunks)

        @pl.jit.host
        def host(x: pl.Tensor[[rows, cols], pl.FP32]):
            buf = pld.alloc_window_buffer([rows, cols], dtype=pl.FP32)
            kernel(x, pld.window(buf, [rows, cols], dtype=pl.FP32), device=0)

        host(floats(4, 8), config=MACHINE)

    with pytest.raises(InvalidOperationError, match="axis 0 of buf is dynamic, so chunk_rows must be given"):
        program()
    with pytest.raises(InvalidOperationError, match="axis 1 of buf is dynamic, so chunk_cols must be given"):
        program(chunk_rows=2)
    program(chunk_rows=2, chunk_cols=8)
    program(dst_offsets=[0, 0], src_offsets=[0, 0], shape=[4, 8])
