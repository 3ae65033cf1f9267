"""``a2a3sim stress`` as a user runs it, and the schedules behind it."""

import contextlib
import io
import json
import shlex

import pytest
from running import LADDER, altered, command

from a2a3sim.cli import main
from a2a3sim.experiments.stress import schedule_of
from a2a3sim.reports.spread import histogram, spread_lines

from .programs import ONE_ROW, TWO_PHASE

ALL = ("-d", "0,1,2,3")


def stress(capsys, *args):
    return command(capsys, "stress", *args)


def test_a_right_program_is_clean(capsys, monkeypatch):
    monkeypatch.chdir(LADDER)
    status, out, err = stress(capsys, "--seeds", "12", "-j", "1", f"{TWO_PHASE}.py", *ALL)
    assert (status, err) == (0, "")
    assert "12 seeds" in out
    assert "time of AllReduceTwoPhase: min " in out and ", median " in out and ", max " in out
    assert "wrong results: none" in out
    assert "findings: none" in out
    assert out.endswith("verdict: clean under 12 schedules\n")


def test_wrong_results_come_with_what_reproduces_them(capsys, tmp_path):
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW)
    status, out, _ = stress(capsys, "--seeds", "30", "-j", "1", path, *ALL)
    assert status == 1
    assert "found under every schedule; results were wrong under" in out
    assert "verdict: wrong under" in out
    commands = [line.strip() for line in out.splitlines() if line.strip().startswith("a2a3sim run")]
    assert commands
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        assert main(shlex.split(commands[0])[1:]) == 1
    assert "MISMATCH" in sink.getvalue()


def test_a_finding_without_damage_is_still_a_finding(capsys, tmp_path):
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW)
    status, out, _ = stress(capsys, "--seeds", "1", path, *ALL)
    assert status == 1
    assert "none of the 1 turned it into damage: it is still a finding" in out
    assert "right under all 1 schedule, but not safe: 2 findings" in out
    status, out, _ = stress(capsys, "--seeds", "1", "--witness", path, *ALL)
    assert "confirmed by its witness" in out


def test_rows_do_not_depend_on_the_number_of_processes(capsys, tmp_path):
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW)
    one, two = (
        json.loads(stress(capsys, "--seeds", "8", "-j", jobs, "--json", "-", path, *ALL)[1])["rows"]
        for jobs in ("1", "2")
    )
    assert one == two
    assert [row["seed"] for row in one] == list(range(8))
    assert one[0]["jitter"] is None and one[0]["slow"] == {} and one[0]["skew"] is None
    assert all(
        len(row["kernel_ps"]) == 1 and row["findings"] == ["error early-release", "error race"] for row in one
    )
    assert {row["ok"] for row in one} == {row["wrong"] is None for row in one}


def test_a_script_that_compares_nothing_is_held_against_its_first_run(capsys, tmp_path):
    path = altered(
        tmp_path,
        TWO_PHASE,
        *ONE_ROW,
        (", golden=expected)", ")"),
        ("return verdict(y, expected)", "return 0"),
    )
    status, out, _ = stress(capsys, "--seeds", "30", "-j", "1", path, *ALL)
    assert status == 1
    assert "elements differ from those on the machine's own schedule" in out


def test_a_deadlock_is_a_wrong_result(capsys, tmp_path):
    path = altered(tmp_path, "04_barrier", ("offsets=[src, 0]", "offsets=[my_rank, 0]"))
    status, out, err = stress(capsys, "--seeds", "3", "-j", "1", path, *ALL)
    assert status == 1
    assert "ends with deadlock" in out
    assert "verdict: wrong under 3 of 3 schedules" in out
    assert "Traceback" not in err


def test_an_accepted_finding_does_not_count(capsys, tmp_path):
    accepted = "  # a2a3sim: ok race, early-release - accepted for this test\n"
    path = altered(
        tmp_path,
        TWO_PHASE,
        *ONE_ROW,
        ("            result = pl.store(acc, [0, my_rank * chunk], result)\n",
         "            result = pl.store(acc, [0, my_rank * chunk], result)" + accepted),
        ("            for c in pl.range(nranks):\n", "            for c in pl.range(nranks):\n"),
    )  # fmt: skip
    _, out, _ = stress(capsys, "--seeds", "1", path, *ALL)
    assert "accepted error: race" in out
    assert "1 finding" in out


def test_usage(capsys, tmp_path):
    empty = tmp_path / "empty.py"
    empty.write_text("print('nothing')\n")
    for args, words in (
        (["--seeds", "0", "x.py"], "--seeds must be at least 1"),
        (["-j", "0", "x.py"], "-j must be at least 1"),
        (["nowhere.py"], "nowhere.py"),
        ([empty], "ran no compiled program"),
        ([LADDER / f"{TWO_PHASE}.py", "-d", "0,1,2"], "multiple of the number of devices"),
    ):
        status, out, err = stress(capsys, *args)
        assert (status, out) == (2, "")
        assert words in err


# ---- schedules


def test_schedules_are_fixed_by_their_seed():
    assert schedule_of(0, 10**6, 4).settings == {"seed": 0}
    assert [schedule_of(s, 10**6, 4).settings for s in range(20)] == [
        schedule_of(s, 10**6, 4).settings for s in range(20)
    ]
    kinds = [set(schedule_of(s, 10**6, 4).settings) for s in range(1, 60)]
    assert {"seed", "skew", "jitter", "slow"} in kinds and {"seed"} in kinds
    assert all(0 <= rank < 4 for s in range(60) for rank in schedule_of(s, 10**6, 4).settings.get("slow", {}))


def test_what_the_user_fixes_is_not_explored():
    fixed = {"skew": "none", "jitter": "1x", "slow": {0: "2x"}}
    assert all(set(schedule_of(s, 10**6, 4, fixed).settings) == {"seed"} for s in range(30))


def test_flags_say_the_schedule():
    settings = schedule_of(2, 10**6, 4).settings
    words = schedule_of(2, 10**6, 4).flags
    assert words[:2] == ["--seed", "2"]
    for name in ("skew", "jitter"):
        assert (name in settings) == (f"--{name}" in words)


@pytest.mark.parametrize(
    ("values", "bars"), [([3], "█"), ([1, 2, 2, 2, 2, 2, 2, 2, 2], "▁█"), ([0, 10], "█  █")]
)
def test_a_histogram_is_one_line(values, bars):
    assert histogram(values, len(bars)) == bars


def test_the_spread_names_its_ends_and_its_middle():
    assert spread_lines([3, 1, 2], str)[0] == "min 1, median 2, max 3"
