"""What the built-in collectives refuse; the message names operation, operand, the value and what is right."""

import re

import numpy as np
import pytest
from collective_programs import compiled_run, in_kernel, on_host, values

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.errors import InvalidOperationError, KernelError, ParserError, ParserSyntaxError

T = pld.tensor
SUM, MAX = pld.ReduceOp.Sum, pld.ReduceOp.Max
P = 3


def run_kernel(call, tmp_path, window=(1, 64), signal=(P, 1), dtype=pl.FP32, x=None):
    x_shape = list(x or window)
    data = values(P, x_shape, dtype)
    program = in_kernel(call, x_shape, list(window), list(signal), dtype, staged=x is None)
    return compiled_run(program, P, tmp_path, data, np.zeros((P, *window), dtype.numpy))


def run_host(call, tmp_path, window=(1, 60), signal=(P,), dtype=pl.FP32, source=None, **more):
    x_shape = list(source or window)
    data = values(P, x_shape, dtype)
    signal = None if signal is None else list(signal)
    program = on_host(call, x_shape, list(window), signal, dtype, same=source is None, **more)
    return compiled_run(program, P, tmp_path, data, np.zeros((P, *window), dtype.numpy))


ROWS = {"window": (P, 16)}

IN_KERNEL = {
    "signal left away": (
        lambda x, d, s: T.allreduce(d),
        {},
        "allreduce in a kernel: signal must be given, .* got nothing",
    ),
    "no signal": (lambda x, d, s: T.allreduce(d, None), {}, "signal must be a window .*, got None"),
    "signal is a tensor": (
        lambda x, d, s: T.barrier(x),
        {},
        "barrier in a kernel: signal must be a window .*got x",
    ),
    "target is a tensor": (
        lambda x, d, s: T.broadcast(x, s, root=0),
        {},
        "target must be a window .*, got x",
    ),
    "target is a number": (
        lambda x, d, s: T.broadcast(3, s, root=0),
        {},
        "target must be a window .*, got 3",
    ),
    "input is a tile": (
        lambda x, d, s: T.all_to_all(pl.load(d, [0, 0], [P, 16]), d, s),
        ROWS,
        "input must be a tensor or a window in global memory, got <Tile",
    ),
    "signal dtype": (lambda x, d, s: T.barrier(d), {}, r"signal must be INT32, got data_buf \[1, 64\] FP32"),
    "target dtype": (
        lambda x, d, s: T.allreduce(d, s),
        {"dtype": pl.INT32},
        r"allreduce in a kernel: target must be FP32 or FP16, got data_buf \[1, 64\] INT32",
    ),
    "target dtype of a ring": (
        lambda x, d, s: T.allreduce(d, s, mode="ring"),
        {"dtype": pl.BF16, "signal": (4, P)},
        "target must be FP32 or FP16, got data_buf",
    ),
    "core_num of a kernel": (lambda x, d, s: T.allreduce(d, s, core_num=2), {}, "core_num must be 1, got 2"),
    "core_num is no int": (
        lambda x, d, s: T.allreduce(d, s, core_num=1.0),
        {},
        "core_num must be an int, got 1.0",
    ),
    "core_num is a bool": (
        lambda x, d, s: T.allreduce(d, s, core_num=True),
        {},
        "core_num must be an int, got True",
    ),
    "core_num zero": (lambda x, d, s: T.allreduce(d, s, core_num=0), {}, "core_num must be positive, got 0"),
    "mode": (lambda x, d, s: T.allreduce(d, s, mode="tree"), {}, "mode must be 'mesh' or 'ring', got 'tree'"),
    "op": (lambda x, d, s: T.allreduce(d, s, op="sum"), {}, r"op must be a pld.ReduceOp \(Sum, .*got 'sum'"),
    "op of reduce_scatter": (
        lambda x, d, s: T.reduce_scatter(d, s, op=MAX),
        ROWS,
        "reduce_scatter in a kernel: op must be pld.ReduceOp.Sum, got pld.ReduceOp.Max",
    ),
    "negative root": (
        lambda x, d, s: T.broadcast(d, s, root=-1),
        {},
        "root must be a rank of the domain, from 0, got -1",
    ),
    "root too high": (
        lambda x, d, s: T.broadcast(d, s, root=P),
        {},
        "root must be a rank of the domain, 0 to 2, got 3",
    ),
    "root is no int": (lambda x, d, s: T.broadcast(d, s, root="0"), {}, "root must be an int, got '0'"),
    "flat signal": (
        lambda x, d, s: T.barrier(s),
        {"signal": (P,)},
        r"signal must have shape \[3, 1\] for 3 ranks, got signal_buf \[3\] INT32",
    ),
    "mesh on a ring's signal": (
        lambda x, d, s: T.broadcast(d, s, root=0),
        {"signal": (4, P)},
        r"must have shape \[3, 1\] .* got signal_buf \[4, 3\] INT32; \[k, 3\] is .* allreduce in mode='ring'",
    ),
    "ring on a mesh's signal": (
        lambda x, d, s: T.allreduce(d, s, mode="ring"),
        {},
        r"signal must have shape \[4, 3\], that is \[2\(NR-1\), NR\] for 3 ranks, got signal_buf \[3, 1\]",
    ),
    "ring with a row too many": (
        lambda x, d, s: T.allreduce(d, s, mode="ring"),
        {"signal": (5, P)},
        r"signal must have shape \[4, 3\]",
    ),
    "rows of a gathered target": (
        T.allgather,
        {"window": (P + 1, 16), "x": (1, 16)},
        r"target must have shape \[3, SIZE\], a row for each rank, got data_buf \[4, 16\]",
    ),
    "rows of the gathered input": (
        T.allgather,
        {"window": (P, 16), "x": (2, 16)},
        r"local_data must have shape \[1, 16\], one row of target, got x.*\[2, 16\]",
    ),
    "size of the gathered input": (
        T.allgather,
        {"window": (P, 16), "x": (1, 8)},
        r"local_data must have shape \[1, 16\]",
    ),
    "rows of reduce_scatter": (
        lambda x, d, s: T.reduce_scatter(d, s),
        {},
        r"reduce_scatter in a kernel: target must have shape \[3, SIZE\]",
    ),
    "shapes of all_to_all": (
        T.all_to_all,
        {"window": (P, 16), "x": (P, 8)},
        r"all_to_all in a kernel: input must have target's shape \[3, 16\], got x.*\[3, 8\]",
    ),
    "one window for input and target": (
        lambda x, d, s: T.all_to_all(d, d, s),
        ROWS,
        "target must lie apart from input, got data_buf for both",
    ),
    "overlapping input and target": (
        lambda x, d, s: T.allgather(d[0:1, 0:16], d, s),
        ROWS,
        "target must lie apart from local_data",
    ),
    "a part with gaps": (
        lambda x, d, s: T.broadcast(d[0:2, 0:8], s, root=0),
        ROWS,
        "target must be contiguous, got the part",
    ),
    "one window for signal and counts": (
        lambda x, d, s: T.all_to_all_v(x, d, s, s, s),
        {"window": (P, 16), "x": (P, 16)},
        "send_counts must lie apart from signal",
    ),
    "blocks of all_to_all_v": (
        lambda x, d, s: T.all_to_all_v(x, d, s[0:3], s[3:6], s[6:9]),
        {"window": (P + 1, 16), "x": (P + 1, 16), "signal": (9, 1)},
        r"target must have shape \[3 \* MAX_RECV, SIZE\], a block for each rank, got data_buf \[4, 16\]",
    ),
    "input of all_to_all_v": (
        lambda x, d, s: T.all_to_all_v(x, d, s[0:3], s[3:6], s[6:9]),
        {"window": (2 * P, 16), "x": (P, 16), "signal": (9, 1)},
        r"all_to_all_v in a kernel: input must have target's shape \[6, 16\], got x.*\[3, 16\]",
    ),
    "counts of all_to_all_v": (
        lambda x, d, s: T.all_to_all_v(x, d, s[0:3], s[3:6], s[6:8]),
        {"window": (2 * P, 16), "x": (2 * P, 16), "signal": (9, 1)},
        r"recv_counts must have shape \[3, 1\], got signal_buf.* \[2, 1\]",
    ),
    "dtype of the counts": (
        lambda x, d, s: T.all_to_all_v(x, d, s[0:3], x, s[6:9]),
        {"window": (P, 16), "x": (P, 16), "signal": (9, 1)},
        "send_counts must be INT32, got x",
    ),
    "dtype of the input": (
        lambda x, d, s: T.all_to_all(s[3:6], d, s[0:3]),
        {"window": (P, 1), "x": (P, 1), "signal": (9, 1)},
        "input must have target's dtype FP32, got signal_buf",
    ),
}


@pytest.mark.parametrize("case", IN_KERNEL)
def test_a_kernels_call_is_refused(case, tmp_path):
    call, more, message = IN_KERNEL[case]
    with pytest.raises(InvalidOperationError, match=message) as caught:
        run_kernel(call, tmp_path, **more)
    text = str(caught.value)
    assert re.match(r"tests/\w+\.py:\d+: rank \d: pld\.tensor\.", text)
    # Upstream raises ValueError or TypeError, and inside of a program a ParserError.
    assert isinstance(caught.value, (ParserError, ValueError, TypeError))


OWN_ROWS = {"window": (P, 20), "source": (P, 20)}
GATHER = {"window": (P, 20), "source": (1, 20)}

ON_HOST = {
    "no signal": (
        lambda x, d, s: T.allreduce(d, None),
        {},
        "allreduce in the host body: signal must be a window .*, got None",
    ),
    "barrier without": (lambda x, d, s: T.barrier(None), {}, "signal must be a window"),
    "ring without signal": (
        lambda x, d, s: T.allreduce(d, mode="ring"),
        {"signal": None},
        "signal must be given, .* got nothing; only a host body's allreduce in mode='mesh' has one",
    ),
    "ring of other reductions": (
        lambda x, d, s: T.allreduce(d, s, mode="ring", op=MAX),
        {"signal": (5, P)},
        "op must be pld.ReduceOp.Sum in mode='ring', got pld.ReduceOp.Max",
    ),
    "ring of FP16": (
        lambda x, d, s: T.allreduce(d, s, mode="ring"),
        {"signal": (5, P), "dtype": pl.FP16},
        "target must be FP32 in mode='ring', got data_buf",
    ),
    "ring on many cores": (
        lambda x, d, s: T.allreduce(d, s, mode="ring", core_num=2),
        {"signal": (5, P)},
        "core_num must be 1 in mode='ring', got 2",
    ),
    "ring with a row too few": (
        lambda x, d, s: T.allreduce(d, s, mode="ring"),
        {"signal": (4, P)},
        r"signal must have shape \[5, 3\], that is \[2\(NR-1\)\+1, NR\] for 3 ranks, got signal_buf \[4, 3\]",
    ),
    "ring of an indivisible length": (
        lambda x, d, s: T.allreduce(d, s, mode="ring"),
        {"signal": (5, P), "window": (1, 64)},
        r"target must have a multiple of 3 elements in mode='ring', got data_buf \[1, 64\] FP32, 64 elements",
    ),
    "more cores than the device": (
        lambda x, d, s: T.allreduce(d, s, core_num=49),
        {"signal": (P, 64)},
        "core_num must be at most 48, the vector cores of a device, got 49",
    ),
    "flat signal for many cores": (
        lambda x, d, s: T.allreduce(d, s, core_num=2),
        {},
        r"signal must have shape \[3, at least 2\], .* got signal_buf \[3\]",
    ),
    "narrow signal": (
        lambda x, d, s: T.allreduce(d, s, core_num=4),
        {"signal": (P, 2)},
        r"\[3, at least 4\]",
    ),
    "column signal for a barrier": (
        lambda x, d, s: T.broadcast(d, s, root=0),
        {"signal": (P, 1)},
        r"broadcast in the host body: signal must have shape \[3\] for 3 ranks, got signal_buf \[3, 1\]",
    ),
    "column signal for reduce_scatter": (
        lambda x, d, s: T.reduce_scatter(d, s),
        {"signal": (P, 1), "window": (P, 20)},
        r"signal must have shape \[3\]",
    ),
    "signal of another length": (
        lambda x, d, s: T.allreduce(d, s),
        {"signal": (4,)},
        r"\[3, at least 1\] or \[3\]",
    ),
    "allgather's signal": (
        T.allgather,
        {"signal": (P, P), **GATHER},
        r"allgather in the host body: signal must have shape \[3\] or \[3, 1\]",
    ),
    "FP16 outside of allreduce": (
        lambda x, d, s: T.broadcast(d, s, root=0),
        {"dtype": pl.FP16},
        "target must be FP32, got data_buf",
    ),
    "integers": (
        lambda x, d, s: T.allreduce(d, s),
        {"dtype": pl.INT32},
        "target must be FP32 or FP16, got data_buf",
    ),
    "same window twice": (
        lambda x, d, s: T.all_to_all(d, d, s),
        {"window": (P, 20)},
        "another allocation than input",
    ),
    "part of a window": (
        lambda x, d, s: T.broadcast(d[0:1], s, root=0),
        {},
        "target must come from pld.window itself, got data_buf.*, made by a subscript",
    ),
    "result of a barrier": (
        lambda x, d, s: T.allreduce(d, T.barrier(s)),
        {},
        "signal must come from pld.window itself, got signal_buf, made by pld.tensor.barrier",
    ),
    "root of a subset": (
        lambda x, d, s: T.broadcast(d, s, root=2),
        {"signal": (2,), "ranks": (0, 1)},
        "root must be a rank of the domain, 0 to 1, got 2",
    ),
    "own signal in a loop": (
        lambda x, d, s: T.allreduce(d),
        {"signal": None, "repeats": 2},
        "signal must be given where the call stands in a loop",
    ),
    "input of allgather": (
        lambda x, d, s: T.allgather(np.zeros((1, 20), np.float32), d, s),
        GATHER,
        r"local_data must be a window \(pld.window\), got array",
    ),
    "reduce_scatter's op": (
        lambda x, d, s: T.reduce_scatter(d, s, op=MAX),
        {"window": (P, 20)},
        "op must be pld.ReduceOp.Sum",
    ),
}


@pytest.mark.parametrize("case", ON_HOST)
def test_a_hosts_call_is_refused(case, tmp_path):
    call, more, message = ON_HOST[case]
    with pytest.raises(InvalidOperationError, match=message):
        run_host(call, tmp_path, **more)


def test_rules_that_need_the_last_dispatch_still_name_the_line(tmp_path):
    with pytest.raises(
        InvalidOperationError, match=r"test_collective_rules\.py:\d+: pld\.tensor\.broadcast in the host"
    ):
        run_host(lambda x, d, s: T.broadcast(d, s, root=7), tmp_path)


def test_more_than_16_ranks_on_the_host(tmp_path):
    x = values(17, (1, 8), pl.FP32)
    program = on_host(lambda _, d, s: T.allreduce(d, s), [1, 8], [1, 8], [17], pl.FP32)
    with pytest.raises(InvalidOperationError, match="the domain must have at most 16 ranks, got 17"):
        compiled_run(program, 17, tmp_path, x, np.zeros_like(x))


def test_a_ring_of_one(tmp_path):
    x = values(1, (1, 8), pl.FP32)
    program = in_kernel(lambda _, d, s: T.allreduce(d, s, mode="ring"), [1, 8], [1, 8], [1, 1], pl.FP32)
    with pytest.raises(
        InvalidOperationError, match="the domain must have at least 2 ranks in mode='ring', got 1"
    ):
        compiled_run(program, 1, tmp_path, x, np.zeros_like(x))


def test_what_must_not_stand_in_a_loop_of_one_round_either(tmp_path):
    def exchange(x, data, signal):
        for _ in pl.range(1):
            T.all_to_all_v(x, data, signal, None, None)

    def reduce(_, data, signal):
        for _ in pl.range(1):
            T.allreduce(data)

    message = "all_to_all_v in the host body: the call must stand outside of loops"
    with pytest.raises(InvalidOperationError, match=message):
        run_host(exchange, tmp_path, **OWN_ROWS)
    with pytest.raises(InvalidOperationError, match="signal must be given where the call stands in a loop"):
        run_host(reduce, tmp_path, signal=None)


def test_collectives_belong_into_kernels_and_host_bodies(tmp_path):
    with pytest.raises(ParserSyntaxError, match=r"pld\.tensor\.barrier stands outside of a program"):
        T.barrier(None)

    signal_t = pld.DistributedTensor[[2, 1], pl.INT32]

    @pl.program
    class Misplaced:
        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, signal: pl.InOut[signal_t]):
            pld.tensor.barrier(signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor):
            signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.per_rank(signal, device=r)

    with pytest.raises(ParserSyntaxError, match="of the kind orchestration; it belongs into a kernel"):
        compiled_run(Misplaced, 2, tmp_path, np.zeros(4, np.float32))


# ---- faults inside --------------------------------------------------------------------------------


def test_what_the_machine_refuses_inside_is_reported_at_the_call(tmp_path):
    """The vector unit of a2 has no int64: the built-in's own addition fails, on the user's line."""

    def call(_, data, signal):
        T.reduce_scatter(data, signal)  # sum of int64

    with pytest.raises(KernelError, match=r"test_collective_rules\.py:\d+: rank \d: type: pl\.add on int64"):
        run_kernel(call, tmp_path, window=(P, 8), dtype=pl.INT64)
