"""PyPTO's own module names, and scripts run unmodified."""

import subprocess
import sys
import textwrap

import pytest

from a2a3sim import A2A3Error, ConfigError
from a2a3sim.errors import DeadlockError
from a2a3sim.pypto import aliases, run_script
from a2a3sim.run.settings import Session, session

PROGRAM = """
    import argparse
    import sys

    import numpy as np
    import pypto.language as pl
    import pypto.language.distributed as pld
    from pypto import ir
    from pypto.ir.distributed_compiled_program import DistributedConfig
    from pypto.runtime import RunConfig

    N = 16

    @pl.program
    class Shift:
        @pl.function(type=pl.FunctionType.InCore)
        def step(
            self,
            x: pl.Tensor[[1, N], pl.FP32],
            y: pl.Out[pl.Tensor[[1, N], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[1, 16], pl.INT32]],
        ) -> pl.Tensor[[1, N], pl.FP32]:
            ctx = pld.get_comm_ctx(data)
            me, ranks = pld.rank(ctx), pld.nranks(ctx)
            pld.tile.remote_store(pl.load(x, [0, 0], [1, N]), data, peer=(me + 1) % ranks, offsets=[0, 0])
            if NOTIFY:
                pld.system.notify(signal, (me + 1) % ranks, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
            y = pl.store(pl.load(data, [0, 0], [1, N]), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(
            self,
            x: pl.Tensor[[1, N], pl.FP32],
            y: pl.Out[pl.Tensor[[1, N], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[1, 16], pl.INT32]],
        ) -> pl.Tensor[[1, N], pl.FP32]:
            return self.step(x, y, data, signal)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def shift(self, x: pl.Tensor[[3, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[3, 1, N], pl.FP32]]):
            data_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([1, 16], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, N], dtype=pl.FP32)
                signal = pld.window(signal_buf, [1, 16], dtype=pl.INT32)
                self.per_rank(x[r], y[r], data, signal, device=r)

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("-p", "--platform", default="a2a3sim")
        parser.add_argument("-d", "--device", default="4,7,9")
        parser.add_argument("--compile-only", action="store_true")
        args = parser.parse_args()
        ids = [int(d) for d in args.device.split(",")]
        distributed = DistributedConfig(device_ids=ids)
        compiled = ir.compile(Shift, platform=args.platform, distributed_config=distributed)
        if args.compile_only:
            print(compiled.output_dir)
            return 0
        x = np.arange(3 * N, dtype=np.float32).reshape(3, 1, N)
        y = np.zeros_like(x)
        compiled(x, y, config=RunConfig(platform=args.platform))
        if not np.array_equal(y, np.roll(x, 1, axis=0)):
            print("MISMATCH")
            return 1
        print("OK")
        return 0

    if __name__ == "__main__":
        sys.exit(main())
"""


@pytest.fixture
def script(tmp_path):
    def write(text=PROGRAM, notify=True):
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(text).replace("NOTIFY", str(notify)))
        return path

    return write


def test_a_script_runs_unmodified(script, capsys):
    runs = []
    status = run_script(script(), ["-p", "a2a3sim"], on_run=lambda *run: runs.append(run))
    assert status == 0
    assert capsys.readouterr().out.splitlines()[-1] == "OK"
    ((program, result, trace),) = runs
    assert (program.name, result.ranks, result.device_labels) == ("Shift", 3, [4, 7, 9])
    assert len(trace.lanes) == 3


def test_compile_only_prints_the_directory(script, capsys, tmp_path):
    assert run_script(script(), ["--compile-only"]) == 0
    line = capsys.readouterr().out.strip()
    assert line.startswith(str(tmp_path / "Shift_"))


def test_everything_is_put_back(script):
    before = dict(sys.modules), sys.argv, list(sys.path)
    run_script(script(), [])
    assert "pypto" not in sys.modules
    assert sys.modules["__main__"] is before[0]["__main__"]
    assert (sys.argv, sys.path) == before[1:]


def test_helpers_beside_a_script_are_its_own(tmp_path, capsys):
    for folder, word in (("a", "first"), ("b", "second")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper_of_script.py").write_text(f"WORD = {word!r}\n")
        (tmp_path / folder / "main.py").write_text("import helper_of_script\nprint(helper_of_script.WORD)\n")
    for folder in "ab":
        run_script(tmp_path / folder / "main.py")
    assert capsys.readouterr().out.split() == ["first", "second"]
    assert "helper_of_script" not in sys.modules


@pytest.mark.parametrize(
    "text, status",
    [
        ("", 0),
        ("raise SystemExit", 0),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('gone wrong')", 1),
        ("1 / 0", 1),
        ("(", 1),
    ],
)
def test_exit_status(script, text, status, capsys):
    assert run_script(script(text)) == status
    err = capsys.readouterr().err
    if text == "1 / 0":
        assert "ZeroDivisionError" in err and "pypto.py" not in err
    if "gone" in text:
        assert err.strip() == "gone wrong"


def test_errors_of_the_simulator_are_the_callers(script):
    runs = []
    with pytest.raises(DeadlockError, match=r"program.py:\d+"):
        run_script(script(notify=False), [], on_run=lambda *run: runs.append(run))
    assert len(runs) == 1  # the run that failed is observed too
    with pytest.raises(ConfigError, match=r"script nowhere.py cannot be read"):
        run_script("nowhere.py")


def test_what_a_command_imposes_stays_in_force(script):
    seen, mine = [], []
    imposed = Session({"machine": "ideal"}, [lambda program, result, trace: seen.append(result.platform)])
    with session(imposed):
        run_script(script(), [], on_run=lambda program, result, trace: mine.append(result.platform))
    assert seen == mine == ["ideal"]


IMPORTS = """
    import pypto
    import pypto.language as pl
    import pypto.language.distributed as pld
    from pypto import InternalError, ir
    from pypto.ir import CompiledProgram
    from pypto.ir.compiled_program import CompiledProgram
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram, DistributedConfig
    from pypto.jit import JITFunction
    from pypto.language.parser.diagnostics import InvalidOperationError, ParserError
    from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
    from pypto.runtime import DistributedWorker, RunConfig, StackedDeviceTensor
    from pypto.runtime import distributed_runner

    distributed_runner._tensor_from_continuous
    assert pypto.language is pl and pl.distributed is pld and pypto.ir is ir
    import a2a3sim.language
    assert a2a3sim.language is pl
    assert not issubclass(ParserError, ValueError)
    assert issubclass(InvalidOperationError, ParserError) and issubclass(InvalidOperationError, ValueError)
    assert issubclass(InternalError, RuntimeError)
"""


def test_the_names_that_programs_import(script):
    assert run_script(script(IMPORTS)) == 0


def test_unknown_names_say_what_there_is(script, capsys):
    assert run_script(script("from pypto.runtime import Nothing")) == 1
    assert "Nothing" in capsys.readouterr().err
    assert run_script(script("import pypto.nothing")) == 1
    assert "No module named 'pypto.nothing'" in capsys.readouterr().err


def test_an_installed_pypto_is_hidden_only_meanwhile(tmp_path, monkeypatch):
    package = tmp_path / "pypto"
    package.mkdir()
    (package / "__init__.py").write_text("REAL = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import pypto

    assert pypto.REAL
    with aliases():
        import pypto as ours

        assert not hasattr(ours, "REAL")
    assert sys.modules["pypto"] is pypto
    del sys.modules["pypto"]


def test_the_same_program_in_a_process_of_its_own(script, tmp_path):
    code = f"import sys; from a2a3sim.pypto import run_script; sys.exit(run_script({str(script())!r}, []))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "OK")


def test_the_simulators_errors_have_one_base():
    assert issubclass(DeadlockError, A2A3Error)
