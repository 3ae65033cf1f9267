"""The public face of a run's record: keeping it, its kinds, and its text."""

import numpy as np
import pytest
from running import one_kernel, run

import a2a3sim
import a2a3sim.language as pl
from a2a3sim.models.operation import Lane, operation
from a2a3sim.trace import KINDS, UNKNOWN, Trace, ends, kind_of, line_trace, remote, side, took


def test_a_trace_is_kept_when_asked_for():
    x, y = np.ones((1, 8), np.float32), np.zeros((1, 8), np.float32)

    def body(x, y, data, signal, e):
        pl.store(pl.load(x, [0], [8]), [0], y)

    program = one_kernel(body, 1, [8], [8], [8], [8])
    assert run(program, 1, x, y, keep_trace=False).trace is None
    kept = run(program, 1, x, y, machine="a2").trace
    assert isinstance(kept, a2a3sim.trace.Trace)
    assert [op.kind for op in kept.operations()] == ["load", "store"]
    assert [line.split()[:6] for line in line_trace(kept)] == [
        ["0", "0", "0", "load", "-", "32"],
        ["0", "0", "0", "store", "-", "32"],
    ]


def made(kind, pipe, peer=None, times=(UNKNOWN,) * 4, nbytes=0):
    lane = Lane(0, 0, 5, 0, 2, 2, 1, "kernel")
    op = operation(lane, kind, pipe, None)
    op.begun, op.issued, op.start, op.end = times
    if peer is not None:
        op.peer = peer
    if nbytes:
        op.nbytes = nbytes
    lane.operations.append(op)
    return op


def test_a_line_states_who_what_whom_how_much_and_when():
    load = made("remote_load", "MTE2", 3, (1100, 1120, 1120, 1500), 64)
    load.lane.start = 1000
    stuck = made("wait", "S", None, (1700, 1710, 1710, UNKNOWN))
    unstarted = made("add", "V")
    assert list(line_trace(Trace([load.lane, stuck.lane, unstarted.lane]))) == [
        "2 1 5 remote_load 3 64 100 120 120 500",
        "2 1 5 wait - 0 700 710 710 -",
        "2 1 5 add - 0 - - - -",
    ]
    assert list(line_trace(Trace())) == []


@pytest.mark.parametrize(
    "op, far, way, pair",
    [
        (made("load", "MTE2"), False, "read", (2, 2)),
        (made("remote_load", "MTE2", 3), True, "read", (3, 2)),
        (made("remote_load", "MTE2", 2), False, "read", (2, 2)),  # a rank may ask itself
        (made("remote_store", "MTE3", 3), True, "write", (2, 3)),
        (made("put", "MTE2"), False, "read", (2, 2)),
        (made("put", "MTE3", 0), True, "write", (2, 0)),
        (made("get", "MTE2", 0), True, "read", (0, 2)),
        (made("get", "MTE3"), False, "write", (2, 2)),
        (made("read", "S"), False, "read", (2, 2)),
        (made("write", "S"), False, "write", (2, 2)),
        (made("notify", "S", 1), True, None, (2, 1)),
        (made("add", "V"), False, None, (2, 2)),
    ],
)  # fmt: skip
def test_which_way_bytes_go(op, far, way, pair):
    assert (remote(op), side(op), ends(op)) == (far, way, pair)
    assert kind_of(op.kind).moves == (way is not None)


def test_what_never_ended_took_no_time():
    assert took(made("add", "V", times=(10, 20, 20, 50))) == 30
    assert took(made("wait", "S", times=(10, 20, 20, UNKNOWN))) == took(made("add", "V")) == 0


def test_every_kind_says_what_it_is_once():
    def named(quality):
        return {kind.name for kind in KINDS.values() if getattr(kind, quality)}

    assert named("moves") == {"load", "store", "remote_load", "remote_store", "put", "get", "read", "write"}
    assert named("transparent") == {"phase", "fence", "drain", "sync_all"}
    assert named("synchronises") == {"wait", "sync_all"}
    assert named("signal") == {"notify", "fence", "drain"}
    assert (named("waits"), named("notifies"), named("marker")) == ({"wait"}, {"notify"}, {"phase"})
    assert kind_of("add") is kind_of("an instruction of tomorrow")
    assert kind_of("add").vector and not named("vector")
