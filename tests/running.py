"""The one way in which the tests compile and run programs, scripts and commands."""

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import A2A3Error, DistributedConfig, RunConfig, ir
from a2a3sim.cli import main
from a2a3sim.pypto import run_script
from a2a3sim.run.settings import Session, session

LADDER = Path(__file__).parents[1] / "examples" / "distributed"


def compiled(program, ranks, **config):
    """A program compiled for devices 0 .. ranks-1, which leaves no directory behind."""
    devices = DistributedConfig(device_ids=list(range(ranks)), **config)
    with tempfile.TemporaryDirectory() as scratch:
        return ir.compile(program, output_dir=scratch, distributed_config=devices)


class Ran:
    """A finished (or failed) call of a program on arrays, x first and y last, and how to look at it."""

    def __init__(self, program, arrays, error=None):
        self.program, self.error = program, error
        self.x, self.y = arrays[0], arrays[-1]
        self.result = program.last_run
        self.trace = program.last_trace

    def ops(self, rank, kind=None, core=0):
        """A rank's operations (of one kind) in program order."""
        return [
            op
            for lane in self.trace.lanes
            if lane.rank == rank and lane.core == core
            for op in lane.operations
            if kind is None or op.kind == kind
        ]

    def log(self, rank, *kinds, core=0):
        """(kind, start, end) in ps, counted from the run's first kernel start."""
        zero = min(lane.start for lane in self.trace.lanes)
        return [
            (op.kind, op.start - zero, op.end - zero) for op in self.ops(rank, core=core) if op.kind in kinds
        ]


def run(program, ranks, *arrays, raises=False, golden=None, **config) -> Ran:
    """Compile and call a program once; ``config`` are RunConfig fields.

    Args:
        raises: an error of the run is kept instead of raised (but for one that leaves no result).
    """
    bound = compiled(program, ranks)
    try:
        bound(*arrays, config=RunConfig(**{"keep_trace": True} | config), golden=golden)
    except A2A3Error as error:
        if not raises or bound.last_run is None:
            raise
        return Ran(bound, arrays, error)
    return Ran(bound, arrays)


def one_kernel(
    body,
    ranks,
    x,
    y,
    data,
    signal,
    dtype=pl.FP32,
    blocks=lambda rank: 1,
    launches=1,
    arg=lambda launch: launch,
):
    """A program that runs ``body(x, y, data, signal, e)`` on every rank.

    Args:
        x, y: extents of a rank's input and output; ``data``, ``signal``: of the windows.
        blocks: cores of a rank.
        launches: dispatches to each device, one after the other.
        arg: from the number of a launch to the kernel's scalar ``e``.
    """
    x_t, y_t = pl.Tensor[list(x), dtype], pl.Out[pl.Tensor[list(y), dtype]]
    data_t = pl.InOut[pld.DistributedTensor[list(data), dtype]]
    signal_t = pl.InOut[pld.DistributedTensor[list(signal), pl.INT32]]
    all_x, all_y = pl.Tensor[[ranks, *x], dtype], pl.Out[pl.Tensor[[ranks, *y], dtype]]
    int_t = pl.Scalar[pl.INT32]

    @pl.program
    class OneKernel:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: x_t, y: y_t, data: data_t, signal: signal_t, e: int_t):
            body(x, y, data, signal, e)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: x_t, y: y_t, data: data_t, signal: signal_t, e: int_t, n: int_t):
            with pl.spmd(n):
                self.kernel(x, y, data, signal, e)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: all_x, y: all_y):
            data_buf = pld.alloc_window_buffer(list(data), dtype=dtype)
            signal_buf = pld.alloc_window_buffer(list(signal), dtype=pl.INT32)
            for launch in pl.range(launches):
                for r in pl.range(pld.world_size()):
                    window = pld.window(data_buf, list(data), dtype=dtype)
                    cells = pld.window(signal_buf, list(signal), dtype=pl.INT32)
                    self.per_rank(x[r], y[r], window, cells, arg(launch), blocks(int(r)), device=r)

    return OneKernel


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
    """A finished script: exit code, what it printed, and the results, traces and calls of its runs."""

    status: int
    out: str
    err: str
    runs: list
    traces: list
    calls: list
    error: Exception | None


def script(path: Path, *argv: str, forced=None, look=None) -> Ended:
    """Run a script as ``a2a3sim run`` would.

    Args:
        forced: RunConfig fields that come before the script's own.
        look: called with (program, result, trace) after each run.
    """
    out, err, runs, traces, calls = io.StringIO(), io.StringIO(), [], [], []

    def observe(program, result, trace) -> None:
        runs.append(result)
        traces.append(trace)
        calls.append(program.last_call)
        if look is not None:
            look(program, result, trace)

    status, failed = 1, None
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        session(Session(forced or {}, [observe], keep_calls=True)),
    ):
        try:
            status = run_script(path, argv)
        except A2A3Error as error:
            failed = error
    return Ended(status, out.getvalue(), err.getvalue(), runs, traces, calls, failed)


def command(capsys, *args) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of ``a2a3sim args``, run in this process."""
    status = main(list(map(str, args)))
    out, err = capsys.readouterr()
    return status, out, err


def calls_of(work) -> int:
    """Function calls, of Python and of C, that ``work()`` makes: a cost that no busy machine changes."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
