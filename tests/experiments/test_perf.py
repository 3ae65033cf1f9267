"""``a2a3sim perf``: the tables of nccl-tests and hccl_test, CSV and JSON."""

import csv
import io
import json

import pytest
from running import command

from a2a3sim.errors import ConfigError
from a2a3sim.experiments.perf import sizes_between

IDEAL = ("--platform", "ideal", "--skew", "none")


def run(capsys, *args):
    return command(capsys, "perf", *args)


def test_the_table_has_the_columns_of_nccl_tests(capsys):
    # On `ideal` (25 GB/s, 1 us) mesh takes L + (P-1)(2L + N/B): with 2 ranks and 1000 kB 3 us + 40 us.
    status, out, err = run(
        capsys, "allreduce", "--algorithm", "mesh", "-b", "1MB", "-e", "1MB", "-d", "0,1", *IDEAL
    )
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("# a2a3sim") and "platform ideal" in lines[0]
    assert lines[3].split() == [
        "#",
        "size",
        "count",
        "type",
        "redop",
        "root",
        "time",
        "algbw",
        "busbw",
        "#wrong",
        "bound",
    ]
    assert lines[4].split() == ["#", "(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)", "(%)"]
    assert lines[5].split() == [
        "1000000",
        "250000",
        "float",
        "sum",
        "-1",
        "43.00",
        "23.26",
        "23.26",
        "0",
        "100.0",
    ]
    assert lines[6] == "# Avg bus bandwidth mesh: 23.26 GB/s"
    assert lines[8] == (
        "#   mesh 1000000 B: link bandwidth 93 %, latency 7 % · 100.0 % of bound · "
        "2 links used 93 to 93 % (median 93 %, most dev0->dev1)"
    )


def test_several_algorithms_stand_side_by_side(capsys):
    args = (
        "allreduce",
        "--algorithm",
        "two_phase,mesh",
        "-b",
        "1KiB",
        "-e",
        "4KiB",
        "-f",
        "2",
        "-d",
        "0-3",
        *IDEAL,
    )
    _, out, _ = run(capsys, *args)
    lines = out.splitlines()
    assert lines[2].split() == ["#", "two_phase", "mesh"]
    rows = [line.split() for line in lines if line.startswith("  ")]
    assert [row[0] for row in rows] == ["1024", "2048", "4096"]
    assert all(len(row) == 5 + 2 * 5 for row in rows)
    assert len({len(line) for line in lines[2:8]}) == 1  # columns stand under their headings


def test_the_table_of_hccl_test_is_verbatim(capsys):
    args = (
        "allreduce",
        "--algorithm",
        "mesh",
        "-b",
        "1MB",
        "-e",
        "1MB",
        "-d",
        "0,1",
        "--format",
        "hccl",
        *IDEAL,
    )
    _, out, _ = run(capsys, *args)
    assert out == (
        "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n"
        "1000000           | 43.00          | 23.25581             | success\n"
    )
    assert "NULL" in run(capsys, *args, "--timing-only")[1]


def test_csv_and_json_hold_the_same_rows(capsys):
    args = ("allgather", "--algorithm", "all", "-b", "1KiB", "-e", "4KiB", "-d", "0-3", *IDEAL)
    _, text, _ = run(capsys, *args, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    report = json.loads(run(capsys, *args, "--format", "json")[1])
    assert report["schema"] == "a2a3sim.report/1" and report["command"] == "perf"
    assert len(report["runs"]) == len(report["rows"]) == len(rows)
    assert rows == [{k: "" if v is None else str(v) for k, v in row.items()} for row in report["rows"]]
    assert {row["redop"] for row in rows} == {"none"}
    shares = [float(value) for key, value in rows[0].items() if key.startswith("critical_path.")]
    assert sum(shares) == pytest.approx(100)


def test_wrong_elements_are_counted_by_the_check(capsys, monkeypatch):
    import dataclasses

    from a2a3sim.experiments import perf, runner

    mesh = runner.find("allreduce", "mesh")
    broken = dataclasses.replace(
        mesh, reference=lambda job, inputs: [x + 1 for x in mesh.reference(job, inputs)]
    )
    monkeypatch.setattr(runner, "find", lambda *_: broken)
    monkeypatch.setattr(perf, "find", lambda *_: broken)
    status, out, _ = run(
        capsys, "allreduce", "--algorithm", "mesh", "-b", "64B", "-e", "64B", "-d", "0,1", *IDEAL
    )
    row = next(line.split() for line in out.splitlines() if line.startswith("  "))
    assert status == 1 and row[8] == "32"  # 16 elements on each of two ranks


def test_processes_give_the_same_table(capsys):
    args = ("allreduce", "--algorithm", "mesh,ring", "-b", "1KiB", "-e", "4KiB", "-d", "0-3", *IDEAL)
    assert run(capsys, *args, "-j", "2")[1] == run(capsys, *args)[1]


def test_all_leaves_out_what_an_algorithm_cannot_do(capsys):
    args = ("allreduce", "-b", "1KiB", "-e", "1KiB", "-d", "0-2", *IDEAL)
    status, out, err = run(capsys, *args, "--algorithm", "all")
    assert status == 0 and "left out: allreduce halving_doubling" in err and "halving_doubling" not in out
    status, _, err = run(capsys, *args, "--algorithm", "halving_doubling")
    assert status == 2 and "power of two" in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("allredcue",), "did you mean 'allreduce'"),
        (("allreduce", "--algorithm", "ringg"), "did you mean 'ring'"),
        (("allreduce", "--algorithm", "mesh,mesh"), "'mesh' is named twice"),
        (("allreduce", "-b", "1024"), "a size needs a unit, got '1024'"),
        (("allreduce", "-b", "2KiB", "-e", "1KiB"), "-e must not be below -b"),
        (("allreduce", "-b", "0"), "-b must be above 0"),
        (("allreduce", "-f", "0"), "-f must be at least 1"),
        (("allreduce", "--format", "cvs"), "did you mean 'csv'"),
        (("allreduce", "-d", "0-15"), "a3 has 16"),
        (("allreduce", "-d", "0"), "ranks must be at least 2"),
        (("allreduce", "-b", "2B", "-e", "2B"), "nothing to run"),
        (("allreduce", "--set", "link.bandwidht=1GB/s"), "did you mean 'link.bandwidth'"),
        (("allreduce", "--set", "link.latency=3"), "a time needs a unit"),
        (("allreduce", "--trace", "x.txt"), "a trace must be a .json or .json.gz file"),
        (("allreduce", "--json", "/nowhere/x.json"), "there is no directory"),
        (("allreduce", "-j", "0"), "-j must be at least 1"),
        (("allreduce", "-j", "2", "--trace", "x.json"), "--trace needs the runs in this process"),
        (("allreduce", "--dtype", "fp33"), "did you mean 'fp32'"),
        (("allreduce", "--fail-on", "note"), "--fail-on must be error or warning"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(capsys, args, said):
    status, out, err = run(capsys, *args)
    assert status == 2 and out == ""
    assert said in err and len(err.splitlines()) == 1


def test_steps_multiply_or_add():
    assert sizes_between(1024, 65536, 4) == [1024, 4096, 16384, 65536]
    assert sizes_between(1000, 3000, 4, 1000) == [1000, 2000, 3000]
    assert sizes_between(5, 900, 1) == [5]
    with pytest.raises(ConfigError, match="at most 1000 sizes"):
        sizes_between(1, 1 << 30, None, 1)


def test_json_and_a_trace_at_once(capsys, tmp_path):
    args = ("allreduce", "--algorithm", "mesh", "-b", "1KiB", "-e", "1KiB", "-d", "0,1", *IDEAL)
    status, out, err = run(capsys, *args, "--json", "-", "--trace", str(tmp_path / "t.json"))
    assert status == 0 and len(json.loads(out)["runs"]) == 1
    assert (tmp_path / "t.json").exists() and "wrote" in err
