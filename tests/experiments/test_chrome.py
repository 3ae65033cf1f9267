"""Chrome traces: valid for every shipped kernel, exact in time, and with the vendor's names."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from running import calls_of

from a2a3sim import ConfigError, RunConfig
from a2a3sim.cli import main
from a2a3sim.experiments.runner import Point, run_point
from a2a3sim.kernels import CATALOGUE
from a2a3sim.reports.chrome import trace_text, write_trace

from .trace_rules import check, load

TIMING = {"timing_only": True, "checks": False}


def run(algorithm, ranks, nbytes, machine="a2", collective="allreduce", **more):
    config = RunConfig(machine=machine, **TIMING)
    return run_point(Point(algorithm, ranks, nbytes, collective=collective, config=config, **more))


def document(outcome, name="run"):
    return json.loads(trace_text([(name, outcome.trace, outcome.result)]), parse_float=Decimal)


@pytest.mark.parametrize(("collective", "algorithm"), [(c, a) for c in CATALOGUE for a in CATALOGUE[c]])
def test_every_kernel_gives_a_valid_trace(collective, algorithm):
    outcome = run(algorithm, 4, 8192, collective=collective, cores=2)
    by = check(document(outcome))
    moved = sum(e["args"]["size(Byte)"] for e in by["b"] if e["args"]["src rank"] != e["args"]["dst rank"])
    assert moved == sum(use.remote_bytes for use in outcome.result.per_rank)
    assert max(e["ts"] + e["dur"] for e in by["X"]) * 1_000_000 == outcome.result.kernel_ps


@pytest.mark.parametrize("machine", ["a3", "ideal", "ideal-switch"])
@pytest.mark.parametrize("algorithm", ["mesh", "two_phase_push", "ring"])
def test_every_machine_gives_a_valid_trace(machine, algorithm):
    check(document(run(algorithm, 5, 4096, machine)))


def test_names_and_arguments_are_those_of_the_vendors_profiler():
    # Ideal machine, 1 us and 25 GB/s: after the barrier at 1 us rank 0 reads 1,000 B of rank 1,
    # which takes 1 us + 40 ns + 1 us.
    by = check(document(run("mesh", 2, 1000, "ideal")))
    move = next(e for e in by["b"] if e["args"]["src rank"] == 1)
    assert (move["name"], move["cat"], move["ts"]) == ("remote_load", "MTE2", Decimal("1.000000"))
    assert move["args"] == {
        "src rank": 1, "dst rank": 0, "size(Byte)": 1000, "bandwidth(GB/s)": Decimal("0.4902"),
    }  # fmt: skip
    end = next(e for e in by["e"] if e["id"] == move["id"])
    assert end["ts"] == Decimal("3.040000")
    wait = next(e for e in by["X"] if e["name"] == "wait" and e["pid"] == 1)
    assert wait["args"] == {"src rank": 1, "dst rank": 0, "notify id": "signal_buf[0, 1]"}
    assert (wait["ts"], wait["dur"]) == (0, 1)
    names = {e["args"]["name"] for e in by["M"] if e["name"] in ("process_name", "thread_name")}
    assert {
        "run: device 0 (rank 0)",
        "run: links",
        "S",
        "MTE2",
        "V",
        "MTE3",
        "phases",
        "memory, serving peers",
    } <= names


def test_link_counters_follow_the_transfers():
    by = check(document(run("mesh", 2, 1_000_000, "ideal")))
    counts = [(e["ts"], e["args"]["GB/s"]) for e in by["C"] if e["name"] == "dev1->dev0 GB/s"]
    assert counts == [(Decimal("2.000000"), 25), (Decimal("42.000000"), 0)]


def test_two_phase_on_64_ranks_is_written_in_few_steps_an_operation(tmp_path):
    outcome = run("two_phase", 64, 1 << 20, "ideal")
    path, runs = tmp_path / "t.json.gz", [("two_phase", outcome.trace, outcome.result)]
    assert calls_of(lambda: write_trace(path, runs)) < 100 * len(list(outcome.trace.operations()))
    by = check(load(path))
    assert len([e for e in by["s"] if e["name"] == "transfer"]) == 64 * 63 * 2
    assert len([e for e in by["s"] if e["name"] == "signal"]) > 64


def test_several_runs_have_their_own_processes_and_equal_runs_equal_bytes(tmp_path):
    runs = [(name, o.trace, o.result) for name in ("mesh", "ring") for o in [run(name, 3, 4096)]]
    first, second = tmp_path / "a.json.gz", tmp_path / "b.json.gz"
    write_trace(first, runs)
    write_trace(second, runs)
    assert first.read_bytes() == second.read_bytes()
    by = check(load(first))
    names = [e["args"]["name"] for e in by["M"] if e["name"] == "process_name"]
    assert len(names) == len({e["pid"] for e in by["M"]}) == 2 * (3 + 1)
    assert names[0] == "mesh: device 0 (rank 0)" and names[4] == "ring: device 0 (rank 0)"


@pytest.mark.parametrize(
    "command",
    [
        ("perf", "allreduce", "--algorithm", "mesh", "-b", "1KiB", "-e", "4KiB", "-d", "0,1"),
        ("compare", "-d", "0,1", "--size", "4KiB"),
        ("sweep", "--ranks", "2", "--size", "1KiB", "-j", "1"),
        ("timeline", "allreduce", "-d", "0,1", "--size", "4KiB"),
        ("check", "allreduce", "--algorithm", "mesh", "--ranks", "2,3", "--dtypes", "fp32"),
    ],
    ids=lambda c: c[0],
)
def test_every_command_that_runs_something_writes_a_trace(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--trace", "t.json"]) == 0
    by = check(load("t.json"))
    assert by["X"] and by["b"] and by["s"]


@pytest.mark.parametrize(
    "command", [("run",), ("explain",), ("stress", "--seeds", "2", "-j", "1")], ids=lambda c: c[0]
)
def test_a_script_writes_a_trace_of_its_runs(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    script = Path(__file__).parents[2] / "examples" / "distributed" / "08_allreduce_mesh.py"
    assert main([*command, "--trace", "t.json.gz", str(script), "-p", "a2a3sim", "-d", "0,1"]) == 0
    assert check(load("t.json.gz"))["b"]


def test_a_deadlocked_run_still_gives_a_valid_trace(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--trace", "t.json", str(Path(__file__).with_name("stuck.py"))]) == 1
    by = check(load("t.json"))
    (wait,) = (e for e in by["X"] if e["name"] == "wait")
    assert wait["args"] == {"dst rank": 0, "notify id": "buffer[0, 0]"} and not by["s"]


def test_another_suffix_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(ConfigError, match=r"a trace must be a \.json or \.json\.gz file"):
        write_trace(tmp_path / "t.trace", iter(()))
    assert not list(tmp_path.iterdir())
