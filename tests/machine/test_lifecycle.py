"""Runs that fail leave nothing behind, neither memory nor threads, and say what went wrong once."""

import gc
import sys
import threading
import tracemalloc

import greenlet
import numpy as np
import pytest
import running

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import A2A3Error, DeadlockError, KernelError, RunConfig
from a2a3sim.errors import ParserSyntaxError

from .programs import add, build, me, run, wait


def compiled(body, ranks=2, **shape):
    return running.compiled(build(body, ranks=ranks, **shape), ranks)


def call(program, ranks=2, **config):
    x = np.zeros((ranks, 1, 256), np.float32)
    program(x, np.zeros_like(x), config=RunConfig(**{"checks": False, "machine": "ideal-switch", **config}))


def facts(program):
    return program.last_run.model_dump(exclude={"cost": {"wall_s", "operations_per_s"}})


def good(x, y, data, signal):
    other = 1 - me(data)
    pld.tile.remote_load(data, other, [0, 0], [1, 256])
    add(signal, other)
    wait(signal, 1)


def deadlocked(x, y, data, signal):
    good(x, y, data, signal)
    with pl.phase("never over"):
        wait(signal, 2)


def failing_amid_transfers(x, y, data, signal):
    for _ in range(4):
        pld.tile.remote_load(data, 1 - me(data), [0, 0], [1, 256])
    if me(data) == 1:
        pl.read(x, [0, 0])
        raise ValueError("enough")
    wait(signal, 1)


def failing_at_once(x, y, data, signal):
    pl.load(x, [0, 250], [1, 8])


FAILURES = [deadlocked, failing_amid_transfers, failing_at_once]


@pytest.mark.parametrize("body", FAILURES)
def test_the_memory_of_many_failed_runs_is_flat(body):
    program = compiled(body)

    def fail():
        with pytest.raises(KernelError):
            call(program)

    def held():
        gc.collect()
        objects = gc.get_objects()
        return (
            tracemalloc.get_traced_memory()[0],
            len(objects),
            sum(isinstance(o, greenlet.greenlet) for o in objects),
        )

    for _ in range(20):
        fail()
    tracemalloc.start()
    try:
        fail()
        before = held()
        for _ in range(150):
            fail()
        after = held()
    finally:
        tracemalloc.stop()
    memory, objects, threads = (b - a for a, b in zip(before, after, strict=True))
    assert memory < 150 * 20_000  # a run that is kept is larger
    assert objects < 150
    assert threads == 0


@pytest.mark.parametrize("body", FAILURES)
def test_a_failed_run_does_not_change_the_next(body):
    program = compiled(good)
    call(program)
    before = facts(program)
    with pytest.raises(KernelError):
        call(compiled(body))
    call(program)
    assert facts(program) == before


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (lambda: 1 // 0, "the program raised ZeroDivisionError: integer division or modulo by zero"),
        (lambda: {}["a"], "the program raised KeyError: 'a'"),
        (lambda: next(iter(())), "the program raised StopIteration: "),
        (lambda: KernelError.no_such_name, "the program raised AttributeError: "),
    ],
)
def test_an_exception_in_a_kernel_is_one_error_with_its_place(what, told):
    def body(x, y, data, signal):
        wait(signal, 0)
        if me(data) == 1:
            what()
        wait(signal, 1)

    ran = run(body, raises=True)
    line = what.__code__.co_firstlineno
    assert isinstance(ran.error, KernelError)
    assert f"test_lifecycle.py:{line}: rank 1: {told}" in str(ran.error)
    assert ran.result.findings[0].kind == "program"


def test_an_error_in_one_block_ends_the_run():
    def body(x, y, data, signal):
        if pl.get_block_idx() == 1 and me(data) == 0:
            raise RuntimeError("block")
        pl.system.sync_all()
        wait(signal, 1)

    assert "rank 0: the program raised RuntimeError: block" in str(run(body, blocks=3, raises=True).error)


def test_an_endless_recursion_is_an_error_of_the_program():
    def body(x, y, data, signal):
        body(x, y, data, signal)

    assert "the program raised RecursionError" in str(run(body, raises=True).error)


@pytest.mark.parametrize("leave", [lambda: sys.exit(3), lambda: (_ for _ in ()).throw(KeyboardInterrupt)])
def test_leaving_the_interpreter_is_not_held_up(leave):
    def body(x, y, data, signal):
        if me(data) == 1:
            leave()
        wait(signal, 1)

    with pytest.raises((SystemExit, KeyboardInterrupt)):
        run(body)
    assert run(good).error is None


def test_a_run_inside_a_kernel_is_refused_and_the_outer_run_goes_on():
    refused = []

    def body(x, y, data, signal):
        try:
            call(inner)
        except A2A3Error as error:
            refused.append(str(error))
        good(x, y, data, signal)

    inner = compiled(good)
    assert run(body).error is None
    assert len(refused) == 2
    assert all("cannot be run from inside a kernel: call it from the host" in text for text in refused)


def test_a_thread_of_the_host_may_run_while_a_kernel_waits_for_it():
    def body(x, y, data, signal):
        thread = threading.Thread(target=lambda: call(inner))
        thread.start()
        thread.join()
        good(x, y, data, signal)

    inner = compiled(good)
    assert run(body).error is None
    assert inner.last_run is not None


@pytest.mark.parametrize("kind", ["generator", "coroutine"])
def test_a_function_that_would_run_nothing_is_refused(kind):
    with pytest.raises(
        ParserSyntaxError, match="kernel must be a plain function, got one with yield or async"
    ):
        if kind == "generator":

            @pl.program
            class Yields:
                @pl.function(type=pl.FunctionType.InCore)
                def kernel(self, y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
                    yield y

        else:

            @pl.program
            class Awaits:
                @pl.function(type=pl.FunctionType.InCore)
                async def kernel(self, y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
                    pass


def deadlock_of(body):
    ran = run(body, raises=True)
    assert isinstance(ran.error, DeadlockError)
    return ran


def test_what_a_kernel_does_while_it_is_ended_is_not_part_of_the_run():
    def body(x, y, data, signal):
        try:
            wait(signal, 1)
        finally:
            add(signal, 0, 3)
            wait(signal, 7)

    ran = deadlock_of(body)
    assert "signal_buf[0, 0] >= 1" in str(ran.error)
    assert [op.kind for op in ran.ops(0)] == ["wait"]


def test_a_kernel_that_will_not_end_does_not_hold_up_the_host():
    caught = []

    def body(x, y, data, signal):
        while True:
            try:
                wait(signal, 1)
            except BaseException as end:  # what a careless program does
                caught.append(type(end).__name__)

    deadlock_of(body)
    assert set(caught) == {"GreenletExit"} and len(caught) < 10_000


def test_an_exception_raised_while_a_kernel_is_ended_does_not_hide_the_deadlock():
    def body(x, y, data, signal):
        try:
            wait(signal, 1)
        finally:
            raise ValueError("on the way out")

    deadlock_of(body)


@pytest.mark.parametrize("machine", ["a2", "ideal"])
def test_reading_a_scalar_that_never_changes_is_a_livelock(machine):
    def body(x, y, data, signal):
        if me(data) == 0:
            while pl.read(signal, [0, 0]) == 0:
                pass
        else:
            wait(signal, 1)

    ran = run(body, machine=machine, raises=True)
    assert "rank 0: livelock: the program reads signal_buf over and over" in str(ran.error)
    assert (ran.result.findings[0].kind, ran.result.findings[0].severity) == ("livelock", "error")


@pytest.mark.parametrize(("machine", "spent"), [("a2", None), ("ideal", 3_001_280)])
def test_reading_a_scalar_until_it_changes_is_not(machine, spent):
    # On `ideal`: the load of rank 1 takes 2,001,280 ps, then the notify 1 us; reading takes no time there.
    def body(x, y, data, signal):
        if me(data) == 0:
            while pl.read(signal, [0, 0]) == 0:
                pass
            pl.store(pl.load(x, [0, 0], [1, 256]), [0, 0], y)
        else:
            pld.tile.remote_load(data, 0, [0, 0], [1, 8])
            add(signal, 0)

    ran = run(body, machine=machine)
    assert np.array_equal(ran.y[0], ran.x[0])
    if spent is not None:
        assert ran.ops(0, "load")[0].begun == ran.result.kernel_ps == spent


def test_working_through_a_table_again_and_again_is_not():
    def body(x, y, data, signal):
        if me(data) == 0:
            found = [sum(pl.read(x, [0, k]) == wanted for k in range(256)) for wanted in range(100)]
            assert sum(found) == 100

    assert run(body).error is None
