"""Programs to diagnose: scripts of the ladder with a passage changed, and small kernels of one line each."""

import contextlib
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import A2A3Error, DistributedConfig, RunConfig, ir
from a2a3sim.pypto import run_script
from a2a3sim.run.settings import Session, session

LADDER = Path(__file__).parents[2] / "examples" / "distributed"
TWO_PHASE = "09_allreduce_two_phase"

_LOOP = """            for peer in pl.range(nranks):
                if peer != my_rank:
                    recv"""
LEFT_OUT = (_LOOP, _LOOP.replace("nranks", "nranks - 1"))  # the last rank's contribution to the sums
ONE_ROW = (("offsets=[1, my_rank]", "offsets=[0, my_rank]"), ("offsets=[1, src]", "offsets=[0, src]"))


def altered(folder: Path, script: str, *changes: tuple[str, str]) -> Path:
    """A copy of a script of the ladder with passages of its text replaced; each occurs once."""
    text = (LADDER / f"{script}.py").read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "common.py").write_text((LADDER / "common.py").read_text(encoding="utf-8"), encoding="utf-8")
    path = folder / f"{script}.py"
    path.write_text(text, encoding="utf-8")
    return path


class Ended(NamedTuple):
    """A finished script: exit code, and the results, traces and calls of its runs."""

    status: int
    runs: list
    traces: list
    calls: list
    error: Exception | None


def run(path: Path, *argv: str, forced=None, look=None) -> Ended:
    """Run a script as ``a2a3sim run`` would, its prints thrown away."""
    runs, traces, calls = [], [], []

    def observe(program, result, trace) -> None:
        runs.append(result)
        traces.append(trace)
        calls.append(program.last_call)
        if look is not None:
            look(program, result, trace)

    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        session(Session(forced or {}, [observe], keep_calls=True)),
    ):
        try:
            return Ended(run_script(path, argv), runs, traces, calls, None)
        except A2A3Error as error:
            return Ended(1, runs, traces, calls, error)


class Made(NamedTuple):
    """A finished call of a small program."""

    result: object
    trace: object
    call: object
    output: np.ndarray


def exchange(
    kernel, ranks=4, size=16, out_size=None, dtype=pl.FP32, golden=None, x=None, config=None, look=None
) -> Made:
    """Stage every rank's slice in a window, meet, then do what ``kernel`` does.

    Args:
        kernel: called as ``kernel(data, y, me, n)``; loads what it likes from ``data`` and stores to ``y``.
    """
    out_size = out_size or size

    @pl.program
    class Exchange:
        @pl.function(type=pl.FunctionType.InCore)
        def step(
            self,
            x: pl.Tensor[[1, size], dtype],
            y: pl.Out[pl.Tensor[[1, out_size], dtype]],
            data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
            signal: pl.InOut[pld.DistributedTensor[[1, ranks], pl.INT32]],
        ):
            ctx = pld.get_comm_ctx(data)
            me, n = pld.rank(ctx), pld.nranks(ctx)
            data = pl.store(pl.load(x, [0, 0], [1, size]), [0, 0], data)
            for peer in pl.range(n):
                if peer != me:
                    pld.system.notify(signal, peer=peer, offsets=[0, me], value=1, op=pld.NotifyOp.AtomicAdd)
            for src in pl.range(n):
                if src != me:
                    pld.system.wait(signal, offsets=[0, src], expected=1, cmp=pld.WaitCmp.Ge)
            kernel(data, y, me, n)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def device(
            self,
            x: pl.Tensor[[1, size], dtype],
            y: pl.Out[pl.Tensor[[1, out_size], dtype]],
            data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
            signal: pl.InOut[pld.DistributedTensor[[1, ranks], pl.INT32]],
        ):
            return self.step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self, x: pl.Tensor[[ranks, 1, size], dtype], y: pl.Out[pl.Tensor[[ranks, 1, out_size], dtype]]
        ):
            data_buf = pld.alloc_window_buffer([1, size], dtype=dtype)
            signal_buf = pld.alloc_window_buffer([1, ranks], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, size], dtype=dtype)
                signal = pld.window(signal_buf, [1, ranks], dtype=pl.INT32)
                self.device(x[r], y[r], data, signal, device=r)
            return y

    compiled = ir.compile(Exchange, distributed_config=DistributedConfig(device_ids=list(range(ranks))))
    if x is None:
        x = np.random.default_rng(3).integers(-5, 6, (ranks, 1, size)).astype(dtype.numpy)
    y = np.zeros((ranks, 1, out_size), dtype.numpy)
    wanted = golden(x) if callable(golden) else golden

    def observe(program, result, trace) -> None:
        made.append(Made(result, trace, program.last_call, y))
        if look is not None:
            look(program, result, trace)

    made: list[Made] = []
    with session(Session({}, [observe], keep_calls=True)):
        compiled(x, y, config=config or RunConfig(machine="ideal"), golden=wanted)
    return made[0]


def summed(peers=range, first=0, width=None):
    """A kernel that adds the slices of some ranks, on elements ``first`` to ``first + width``."""

    def kernel(data, y, me, n):
        shape = [1, width or data.shape[1] - first]
        total = None
        for peer in peers(n):
            got = pld.tile.remote_load(data, peer=peer, offsets=[0, first], shape=shape)
            total = got if total is None else pl.add(total, got)
        pl.store(total, [0, first], y)

    return kernel
