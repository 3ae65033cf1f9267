"""B48 - B50: what the simulator itself must not do."""

import contextlib
import gc
import tracemalloc

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import A2A3Error, RunConfig
from a2a3sim.kernels import find
from a2a3sim.kernels.collective import Job

from .harness import ADD, GE, build, compiled, found, inputs, me, others, results, verdicts

ROW = [1, 64]


def exchange(skips=None):
    def body(x, y, data, signal, e):
        rank = me(data)
        acc = pl.load(x, [0, 0], ROW)
        pl.store(acc, [0, 0], data)
        for p in others(data):
            if rank != skips:
                pld.system.notify(signal, p, [rank, 0], 1, op=ADD)
        for p in others(data):
            pld.system.wait(signal, [p, 0], 1, cmp=GE)
        for p in others(data):
            acc = pl.add(acc, pld.tile.remote_load(data, p, [0, 0], ROW))
        pl.store(acc, [0, 0], y)

    return body


# ---- B48: no wall clock, no state that leaks -----------------------------------------------------------------


def test_B48_64_ranks_on_one_cpu():
    (run,) = results(exchange(), ranks=64, cells=(64, 16), machine="ideal")
    assert run.findings == []


def test_B48_a_rank_that_is_a_hundred_times_slower_is_no_deadlock():
    (run,) = results(exchange(), ranks=4, config={"slow": {2: "100x"}})
    assert [f for f in run.findings if f.severity != "note"] == []


def test_B48_a_failed_run_does_not_spoil_the_next():
    clean = [verdicts(run, {}) for run in results(exchange(), ranks=3)]
    (stuck,) = results(exchange(skips=1), ranks=3)
    assert [f.kind for f in stuck.findings] == ["deadlock"]
    assert [verdicts(run, {}) for run in results(exchange(), ranks=3)] == clean


def racing(x, y, data, signal, e):
    pl.store(pl.load(x, [0, 0], ROW), [0, 0], data)
    pld.tile.remote_load(data, 1 - me(data), [0, 0], ROW)


def failing(x, y, data, signal, e):
    racing(x, y, data, signal, e)
    pl.load(x, [0, 60], [1, 8])


@pytest.mark.parametrize("body", [exchange(skips=1), failing, racing], ids=["deadlock", "failure", "races"])
def test_B48_memory_stays_flat_over_50_such_runs(body):
    program, whole, dtype = build(body, 2)
    bound = compiled(program, 2)
    x, y = inputs(whole, dtype)

    def call():
        with contextlib.suppress(A2A3Error):
            bound(x, y, config=RunConfig(machine="a2"))

    for _ in range(5):
        call()
    gc.collect()
    tracemalloc.start()
    try:
        call()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(50):
            call()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 100_000


def test_B48_memory_stays_flat_over_calls_of_a_worker():
    """The history is a value for each cell and the operations of one call."""

    def body(x, y, data, signal, e):
        rank = me(data)
        pl.store(pl.load(x, [0, 0], ROW), [0, 0], data)
        calls = pl.read(signal, [2, 16 * rank])
        pl.write(signal, [2, 16 * rank], calls + 1)
        pld.system.notify(signal, 1 - rank, [0, 0], 1, op=ADD)
        pld.system.wait(signal, [0, 0], calls + 1, cmp=GE)
        pl.store(pld.tile.remote_load(data, 1 - rank, [0, 0], ROW), [0, 0], y)
        pld.system.notify(signal, 1 - rank, [1, 0], 1, op=ADD)
        pld.system.wait(signal, [1, 0], calls + 1, cmp=GE)

    program, whole, dtype = build(body, 2, cells=(3, 32))
    x, y = inputs(whole, dtype)
    with compiled(program, 2).prepare(RunConfig(), persistent=True, reset_persistent_windows=False) as worker:
        for _ in range(5):
            worker(x, y)
        gc.collect()
        tracemalloc.start()
        try:
            worker(x, y)
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(50):
                worker(x, y)
                assert all(f.severity == "note" for f in worker.last_run.findings)
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
    assert grown < 100_000


# ---- B49: no pass where the hardware fails, no silent no-op ----------------------------------------------------


def test_B49_a_wait_on_a_row_that_nobody_writes_is_a_deadlock():
    def body(x, y, data, signal, e):
        pld.system.wait(signal, [3, 0], 1, cmp=GE)
        pl.store(pl.load(x, [0, 0], ROW), [0, 0], y)

    (run,) = results(body)
    assert [f.kind for f in run.findings] == ["deadlock"]
    assert run.cost.events < 100  # there is no budget of polls that has to run out
    assert run.verdict is None


def test_B49_what_is_not_modelled_is_an_error():
    def body(x, y, data, signal, e):
        pl.no_such_operation(x)

    (run,) = results(body)
    assert [(f.kind, f.severity) for f in run.findings] == [("program", "error")]


# ---- B50: topology matters, and a sound program is exonerated ----------------------------------------------------


def duration(algorithm, machine, nbytes=1 << 20, ranks=8):
    form = find("allreduce", algorithm)
    job = Job(ranks, nbytes // 4, pl.FP32, cores=1, tile_bytes=1 << 16)
    bound = compiled(form.build(job), ranks)
    x, y = inputs([ranks, 1, nbytes // 4], pl.FP32)
    bound(x, y, config=RunConfig(machine=machine, timing_only=True, checks=False))
    return bound.last_run.kernel_ps


def test_B50_the_topology_changes_the_time_where_the_formula_does():
    ring, mesh = ({m: duration(a, m) for m in ("ideal", "ideal-switch")} for a in ("ring", "mesh"))
    assert mesh["ideal"] != mesh["ideal-switch"] or ring["ideal"] != ring["ideal-switch"]
    assert ring != mesh


def test_B50_a_sound_program_is_pronounced_safe_with_its_premises():
    (run,) = results(exchange(), ranks=4)
    assert run.verdict.startswith("safe on every schedule")
    assert "signals are used as Add and Ge" in run.verdict
    assert run.placement == [0, 1, 2, 3]
    assert found(exchange(), ranks=4) == set()
