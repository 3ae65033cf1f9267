"""``a2a3sim explain`` as a user runs it."""

import json
from pathlib import Path

import pytest
from running import LADDER, altered, command

from .programs import LEFT_OUT, ONE_ROW, TWO_PHASE

ALL = ("-d", "0,1,2,3")
HAND_WRITTEN = str(Path(__file__).parent / "scripts" / "hand_written.py")


def explain(capsys, *args):
    return command(capsys, "explain", *args)


def test_the_story_of_two_phase(capsys, monkeypatch):
    monkeypatch.chdir(LADDER)
    status, out, err = explain(capsys, f"{TWO_PHASE}.py", *ALL)
    assert (status, err) == (0, "OK\n")
    for words in (
        "AllReduceTwoPhase: 5.9",  # us from the first start to the last end
        "4 ranks × 1 core · seed 0 · skew 1 us · fences statement",
        "rank 0 starts first, rank 2 last",
        "phase 1, 0 ns to",
        "each rank: 1 load, 3 remote_load, 3 add, 1 store, reads 768 B from peers",
        "barrier 1,",
        "waits longest",
        "most of it for rank",
        f"'s notify ({TWO_PHASE}.py:45)",
        "critical path: latency",
        f"{TWO_PHASE}.py:56 `recv = pld.tile.remote_load(`",
        "findings: none",
        "result: right",
        "y: each rank holds the sum over all ranks, element by element (all-reduce)",
    ):
        assert words in out
    assert [line for line in out.splitlines() if len(line) > 200] == []


def test_named_phases_appear_by_name(capsys, tmp_path):
    script = tmp_path / "named.py"
    script.write_text(
        "import numpy as np\nimport a2a3sim.language as pl\nfrom a2a3sim import DistributedConfig, ir\n"
        "from a2a3sim.kernels import find\nfrom a2a3sim.kernels.collective import Job\n"
        "program = find('allreduce', 'two_phase').build(Job(ranks=4, count=1024, dtype=pl.FP32))\n"
        "compiled = ir.compile(program, distributed_config=DistributedConfig(device_ids=[0, 1, 2, 3]))\n"
        "x = np.ones((4, 1, 1024), np.float32)\ncompiled(x, np.zeros_like(x))\n"
    )
    status, out, _ = explain(capsys, script)
    assert status == 0
    assert "reduce-scatter, " in out and "all-gather, " in out
    assert "the sum over all ranks, element by element (all-reduce)" in out


def test_a_fault_is_told_with_its_finding_and_its_cause(capsys, tmp_path):
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW)
    status, out, err = explain(capsys, "--slow", "2=20x", path, *ALL)
    assert status == 1
    assert err.endswith("MISMATCH\n")
    assert "nobody has to wait" in out  # at the barrier that is none
    assert "race (" in out and "early-release" in out
    assert "a race explains it" in out
    assert "y should be the sum over all ranks, element by element (all-reduce), but" in out
    assert "no rank contributes, memory that nobody had written (0) stands there" in out


def test_a_script_without_golden_is_held_against_what_most_of_it_does(capsys, tmp_path):
    golden = (", golden=expected)", ")")
    path = altered(tmp_path, TWO_PHASE, LEFT_OUT, golden)
    status, out, _ = explain(capsys, path, *ALL)
    assert status == 1  # the script's own verdict
    assert "y would be, if that is what is meant, the sum over all ranks" in out
    assert "elements 0..191 (blocks 0..2): contribution of rank 3 missing" in out


def test_a_reduce_scatter_alone_is_called_so_without_golden(capsys, tmp_path):
    change = ("for c in pl.range(nranks):", "for c in pl.range(my_rank, my_rank + 1):")
    path = altered(tmp_path, TWO_PHASE, change, (", golden=expected)", ")"))
    _, out, _ = explain(capsys, path, *ALL)
    assert "only the reduce-scatter was done" in out


def test_a_deadlock_is_told_too(capsys, tmp_path):
    path = altered(tmp_path, "04_barrier", ("offsets=[src, 0]", "offsets=[my_rank, 0]"))
    status, out, err = explain(capsys, path, *ALL)
    assert status == 1
    assert "wait for ever" in out
    assert "deadlock" in out
    assert "near miss" in out + err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("between", "words"),
    [
        (
            "none",
            [
                "issued but not drained",
                "after the notify was applied: a reader may see what stood there before",
            ],
        ),
        ("drain", ["drained but not visible", "before the notify was applied, by luck"]),
        ("fence", ["every write was visible when the notify after it left"]),
    ],
)
def test_issued_drained_and_visible_are_told_apart(capsys, between, words):
    status, out, _ = explain(capsys, HAND_WRITTEN, between)
    assert status == (0 if between == "fence" else 1)
    assert "writes and their notifies (explicit fences" in out
    for word in words:
        assert word in out


def test_json_has_a_row_for_each_run(capsys, tmp_path):
    path = altered(
        tmp_path, TWO_PHASE, ("y = pl.store(recv, [0, c * chunk], y)", "y = pl.store(recv, [0, 0], y)")
    )
    status, out, _ = explain(capsys, "--json", "-", path, *ALL)
    report = json.loads(out)
    assert (status, report["command"], len(report["runs"])) == (1, "explain", 1)
    (row,) = report["rows"]
    assert [b["number"] for b in row["barriers"]] == [1, 2]
    assert all(
        b["file"].endswith(f"{TWO_PHASE}.py") and b["wait_ps"].keys() == set("0123") for b in row["barriers"]
    )
    (told,) = row["results"]
    assert (told["name"], told["law"], told["certain"]) == ("y", "all-reduce", True)
    assert {"rank": 0, "elements": [0, 64], "what": "block 3 stands where block 0 belongs"} in told["wrong"]
    assert row["story"][0].startswith("AllReduceTwoPhase: ")


def test_witness_and_suppress_work_here_too(capsys, tmp_path):
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW)
    status, out, _ = explain(capsys, "--witness", path, *ALL)
    assert status == 1 and "witness: shown: with rank" in out
    accepted = tmp_path / "accepted.toml"
    accepted.write_text(
        "".join(
            f'[[suppress]]\nkind = "{kind}"\nfile = "{TWO_PHASE}.py"\nsource = "{text}"\n'
            'reason = "on purpose"\n'
            for kind, text in (
                ("race", "pl.store(acc"),
                ("early-release", "pld.system.wait"),
                ("residue", "x = 1"),
            )
        )
    )
    status, out, err = explain(capsys, "--suppress", accepted, path, *ALL)
    assert status == 0
    assert "accepted error: race" in out and "reason: on purpose" in out
    assert "suppression not used" in err and "residue - on purpose" in err


def test_usage_errors_are_one_line(capsys, tmp_path):
    for args, words in (
        (["nowhere.py"], "nowhere.py"),
        (["--fail-on", "note", "x.py"], "error or warning"),
        (["--suppress", "/nowhere.toml", "x.py"], "/nowhere.toml"),
        (["--delay", "2@x.py:3", "x.py"], "RANK@FILE:LINE"),
        (["--json", "/nowhere/x.json", "x.py"], "/nowhere"),
    ):
        status, out, err = explain(capsys, *args)
        assert (status, out, len(err.strip().splitlines())) == (2, "", 1)
        assert words in err
