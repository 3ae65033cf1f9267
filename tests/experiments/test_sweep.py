"""Sweeps: every combination once, in a fixed order, checked before they start and whole at the end."""

import csv
import itertools
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from a2a3sim import A2A3Error, ConfigError
from a2a3sim.cli import main
from a2a3sim.experiments.sweep_file import build_sweep, read_sweep_file, shipped_sweeps
from a2a3sim.experiments.sweep_journal import Journal, journal_path
from a2a3sim.experiments.sweep_output import read_rows
from a2a3sim.experiments.sweep_plan import Plan
from a2a3sim.experiments.sweep_run import run_sweep

TINY = {"platform": "ideal", "timing_only": True, "check": False}
COMMAND = [sys.executable, "-c", "from a2a3sim.cli import main; main()", "sweep"]


def plan_of(**axes):
    return Plan.of(build_sweep(TINY | axes))


def sweep(capsys, *args):
    status = main(["sweep", *args])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- what a sweep consists of ------------------------------------------------------------------------


def test_rows_stand_in_the_order_of_the_axes():
    plan = plan_of(
        algorithms="two_phase,mesh",
        ranks="4,2",
        size="1KiB,4KiB",
        seed="3,1",
        set={"link.latency": "1us,2us"},
    )
    seen = [
        (p.algorithm, p.config.platform_overrides["link.latency"], p.ranks, p.nbytes, p.config.seed)
        for p in (plan.point(n) for n in range(len(plan)))
    ]
    axes = (["two_phase", "mesh"], ["1us", "2us"], [4, 2], [1024, 4096], [3, 1])
    assert seen == list(itertools.product(*axes))


def test_all_algorithms_of_several_collectives():
    plan = plan_of(collective="allgather,broadcast", algorithms="all", ranks="4")
    assert [(p.collective, p.algorithm) for p in (plan.point(n) for n in range(len(plan)))] == [
        ("allgather", "mesh"), ("allgather", "mesh_rotated"), ("allgather", "ring"),
        ("broadcast", "flat"), ("broadcast", "binomial"),
    ]  # fmt: skip


def test_what_an_algorithm_cannot_do_is_left_out_and_said():
    plan = plan_of(algorithms="mesh,halving_doubling", ranks="2:5")
    assert len(plan) == 4 + 2
    assert list(plan.left_out.values()) == [2]
    assert "power of two" in next(iter(plan.left_out))


def test_every_result_and_parameter_is_a_column(here):
    plan = plan_of(algorithms="mesh", ranks="4", size="4KiB", set={"link.latency": "2us"})
    run_sweep(plan, "a.csv")
    (row,) = read_rows("a.csv")
    # L + (P-1)(2L + N/B) = 2 us + 3·(4 us + 163.84 ns)
    assert row["kernel_ps"] == 2_000_000 + 3 * (4_000_000 + 163_840)
    assert row["overrides.link.latency"] == "2us"
    assert (row["algorithm"], row["ranks"], row["bytes_per_rank"], row["seed"]) == ("mesh", 4, 4096, 0)
    assert row["per_rank.remote_read_bytes.sum"] == 4 * 3 * 4096
    assert row["max_remote_bytes"] == row["closed_form_bytes"] == 3 * 4096
    assert row["numerics.ok"] is None and row["timing_only"] is True
    assert sum(v for k, v in row.items() if k.startswith("critical_path.")) == pytest.approx(100)
    assert not any("wall" in name or "per_s" in name for name in row)  # equal sweeps, equal files


def test_full_runs_have_their_numerics(here):
    run_sweep(
        Plan.of(build_sweep({"platform": "ideal", "algorithms": "ring", "ranks": "3", "size": "1KiB"})),
        "a.csv",
    )
    (row,) = read_rows("a.csv")
    assert row["numerics.ok"] is True and row["numerics.wrong"] == 0 and row["findings.error"] == 0


# ---- the same file whatever happens ------------------------------------------------------------------


def test_workers_and_parquet_hold_the_same_rows(here):
    plan = plan_of(ranks="2:4", size="256B:4KiB:x4")
    run_sweep(plan, "one.csv", jobs=1)
    ran = run_sweep(plan, "two.csv", jobs=2)
    assert (ran.rows, ran.resumed, ran.workers) == (18, 0, 2)
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
    pytest.importorskip("pyarrow")
    run_sweep(plan, "one.parquet")
    assert read_rows("one.parquet") == read_rows("one.csv")
    run_sweep(plan, "again.parquet")
    assert Path("one.parquet").read_bytes() == Path("again.parquet").read_bytes()


def test_a_sweep_goes_on_where_it_was_interrupted(here, monkeypatch):
    from a2a3sim.experiments import sweep_run

    plan = plan_of(ranks="2", size="1KiB:4KiB:x2", seeds="50")
    run_sweep(plan, "whole.csv")
    real, calls = sweep_run.run_chunk, []

    def interrupted(points, keys):
        calls.append(len(points))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(points, keys)

    monkeypatch.setattr(sweep_run, "run_chunk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, "cut.csv")
    assert not Path("cut.csv").exists()
    journal = journal_path("cut.csv")
    with journal.open("ab") as file:
        file.write(b'[299,["cut sh')  # as a kill in the middle of a write would leave it
    monkeypatch.setattr(sweep_run, "run_chunk", real)
    ran = run_sweep(plan, "cut.csv")
    assert ran.resumed == sum(calls[:2])
    assert Path("cut.csv").read_bytes() == Path("whole.csv").read_bytes()
    assert not journal.exists()


KILLED = """
import os, signal
from a2a3sim.cli import main
from a2a3sim.experiments.sweep_journal import Journal

def add(self, rows, whole=Journal.add):
    whole(self, rows)
    if len(self) >= 300:
        os.kill(os.getpid(), signal.SIGKILL)

Journal.add = add
main()
"""


def test_a_thousand_points_killed_at_any_moment_and_on_dask(here):
    """Killed with SIGKILL after a third of the rows, resumed, and once more on a cluster."""
    args = [
        "--ranks",
        "2",
        "--size",
        "256B:64KiB:x4",
        "--platform",
        "ideal",
        "--timing-only",
        "--no-check",
        "--seeds",
        "100",
    ]
    subprocess.run([*COMMAND, *args, "-o", "one.csv", "-j", "1"], check=True, capture_output=True)
    assert len(read_rows("one.csv")) == 1000
    command = [sys.executable, "-c", KILLED, "sweep", *args, "-o", "killed.csv", "-j", "2"]
    assert subprocess.run(command, stderr=subprocess.DEVNULL).returncode == -signal.SIGKILL
    assert not Path("killed.csv").exists()
    again = subprocess.run(
        [*COMMAND, *args, "-o", "killed.csv", "-j", "2"], check=True, capture_output=True, text=True
    )
    assert "from before" in again.stderr
    assert Path("killed.csv").read_bytes() == Path("one.csv").read_bytes()
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        assert main(["sweep", *args, "-o", "dask.csv", "--dask", cluster.scheduler_address]) == 0
    assert Path("dask.csv").read_bytes() == Path("one.csv").read_bytes()


def test_another_sweep_is_not_mixed_in(here, monkeypatch):
    monkeypatch.setattr("a2a3sim.experiments.sweep_output.write_rows", None)
    plan = plan_of(ranks="2", size="1KiB")
    with Journal(journal_path("a.csv"), plan.sweep.about(), 2) as journal:
        journal.add([(0, [1])])
    other = plan_of(ranks="2", size="2KiB")
    with pytest.raises(ConfigError, match=r"another size \(\[1024\], now \[2048\]\).*--restart"):
        run_sweep(other, "a.csv")
    assert run_sweep(other, "b.csv").rows == 2
    assert run_sweep(other, "a.csv", restart=True).resumed == 0


def test_two_sweeps_do_not_share_an_output(here):
    pytest.importorskip("fcntl")
    plan = plan_of(ranks="2", size="1KiB")
    with (
        Journal(journal_path("a.csv"), plan.sweep.about(), 2),
        pytest.raises(ConfigError, match="another sweep is writing"),
    ):
        run_sweep(plan, "a.csv")


def test_rows_before_a_failure_are_kept(here, monkeypatch):
    from a2a3sim.experiments import sweep_worker

    real = sweep_worker.run_point

    def fail(point):
        if point.nbytes == 4096:
            raise A2A3Error("it broke")
        return real(point)

    plan = plan_of(algorithms="mesh", ranks="2", size="1KiB,2KiB,4KiB")
    monkeypatch.setattr(sweep_worker, "run_point", fail)
    with pytest.raises(
        A2A3Error, match=r"point 3 of 3 \(allreduce mesh on ideal, 2 ranks, 4096 B fp32, seed 0\): it broke"
    ):
        run_sweep(plan, "a.csv")
    assert not Path("a.csv").exists()
    monkeypatch.setattr(sweep_worker, "run_point", real)
    assert run_sweep(plan, "a.csv").resumed == 2


# ---- the command ---------------------------------------------------------------------------------------


def test_the_command_prints_time_bound_links_and_causes(here, capsys):
    args = (
        "--ranks",
        "2",
        "--size",
        "1MB",
        "--algorithms",
        "mesh",
        "--platform",
        "ideal",
        "--seeds",
        "3",
        "-j",
        "1",
    )
    status, out, err = sweep(capsys, *args)
    assert status == 0 and "wrote sweep.csv: 3 rows" in err
    assert "median of 3 seeds" in out
    assert "100.0 %" in out and "link bandwidth 93 %, latency 7 %" in out
    assert Path("sweep.csv").exists() and not list(here.glob("*.journal"))


def test_rows_as_json_and_a_trace(here, capsys):
    args = ("--ranks", "2", "--size", "1KiB", "--platform", "ideal", "--json", "-", "--trace", "t.json.gz")
    status, out, _ = sweep(capsys, *args)
    report = json.loads(out)
    assert status == 0 and [row["algorithm"] for row in report["rows"]] == ["mesh", "two_phase"]
    assert Path("t.json.gz").exists()
    assert sweep(capsys, *args[:6], "--save-trace", "saved")[0] == 0
    assert Path("saved").exists() and Path("saved-2").exists()
    status, _, err = sweep(
        capsys, "--ranks", "2:35", "--size", "4KiB", "--platform", "ideal", "--save-trace", "saved"
    )
    assert status == 2 and "--save-trace: at most 32 runs, the sweep has " in err


def test_a_sweep_file_under_flags(here, capsys):
    Path("s.toml").write_text(
        'algorithms = ["mesh"]\nranks = [2, 3]\nsize = "1KiB"\nplatform = "ideal"\noutput = "named.csv"\n'
        'seeds = 2\ntiming_only = true\n[set]\n"link.latency" = ["1us", "2us"]\n'
    )
    flags = ("--ranks", "2", "--set", "link.bandwidth=10GB/s", "--seed", "5", "-j", "1")
    assert sweep(capsys, "s.toml", *flags)[0] == 0
    with Path("named.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = ("ranks", "overrides.link.latency", "overrides.link.bandwidth", "seed")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("2", "1us", "10GB/s", "5"),
        ("2", "2us", "10GB/s", "5"),
    ]


@pytest.mark.parametrize("name", shipped_sweeps())
def test_shipped_sweeps_are_sound(name):
    assert len(Plan.of(build_sweep(read_sweep_file(name)))) > 10


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--ranks", "16"), "a3 has 16 (--platform)"),
        (
            ("--ranks", "2:64:x2", "--platform", "a3"),
            "devices must be at most 16 on platform a3, got 32; ideal has any",
        ),
        (("--ranks", "1"), "at least 2"),
        (("--size", "1024"), "a size needs a unit"),
        (("--size", "1KiB:1MiB"), "a range must be first:last:xFACTOR"),
        (("--size", "6B"), "must be a positive multiple of 4 B"),
        (("--size", "1B:1GiB:+1B"), "more than the 1000000 points"),
        (
            ("--size", "4B:40KiB:+4B", "--seeds", "100000"),
            "the sweep has 2048000000 points, more than 1000000",
        ),
        (("--algorithms", "two_fase"), "did you mean 'two_phase'"),
        (("--algorithms", "all,mesh"), "all stands alone"),
        (("--algorithms", "halving_doubling", "--ranks", "3"), "the sweep has no points"),
        (("--collective", "reduce"), "collective must be one of"),
        (("--dtype", "fp8"), "dtype must be one of"),
        (("--set", "link.bandwith=1GB/s"), "did you mean 'link.bandwidth'"),
        (("--set", "link.bandwidth=10"), "a rate needs a unit, got '10'"),
        (("--set", "link.bandwidth"), "--set: must look like key=value"),
        (("--platform", "a4"), "a4"),
        (("--cores", "999"), "cores must be at most 48 on a2"),
        (("--fences", "all"), "fences must be one of"),
        (("--skew", "5"), "a time needs a unit"),
        (("--seed", "1", "--seeds", "2"), "say the same thing"),
        (("--seeds", "0"), "at least 1"),
        (("-j", "0"), "-j must be at least 1"),
        (("-o", "out.txt"), "-o must be a .csv or .parquet file"),
        (("-o", "/nowhere/out.csv"), "there is no directory"),
        (("--dask", "nobody"), "--dask must be the address of a scheduler"),
        (("--trace", "t.json", "--seeds", "20"), "a trace holds at most 32 runs, the sweep has 40 points"),
        (("nosuch.toml",), "sweep must be a TOML file or one of crossover"),
        (("crosover",), "did you mean 'crossover'"),
    ],
)
def test_bad_input_is_one_line_exit_2_and_leaves_nothing(here, capsys, args, said):
    status, out, err = sweep(capsys, *args)
    lines = [line for line in err.splitlines() if not re.match(r"\d+ points: ", line)]
    assert status == 2 and out == ""
    assert said in err and len(lines) == 1
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rank = 2", "did you mean 'ranks'"),
        ("ranks = true", "ranks must be a text, a number or a list"),
        ("check = 1", "check must be true or false"),
        ("set = 3", "set must be a table"),
        ("ranks = ", "must be a TOML file"),
    ],
)
def test_bad_sweep_files_say_what_is_wrong(here, capsys, text, said):
    Path("s.toml").write_text(text)
    status, _, err = sweep(capsys, "s.toml")
    assert status == 2 and said in err and len(err.splitlines()) == 1
