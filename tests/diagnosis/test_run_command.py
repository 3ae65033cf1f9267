"""The flags of ``a2a3sim run`` that reach, show and accept."""

import json

import pytest
from running import LADDER, altered, command

from .programs import ONE_ROW, TWO_PHASE

ALL = ("-d", "0,1,2,3")
STORE = "            result = pl.store(acc, [0, my_rank * chunk], result)\n"
WAIT = "            # Barrier B, on row 1: "


def run(capsys, *args):
    return command(capsys, "run", *args)


def test_links_can_be_stretched(capsys):
    _, out, _ = run(capsys, "--json", "-", "--jitter", "4x", "--seed", "1", LADDER / f"{TWO_PHASE}.py", *ALL)
    (result,) = json.loads(out)["runs"]
    assert result["overrides"] == {"jitter": "4x"}
    assert result["findings"] == [] or {f["severity"] for f in result["findings"]} == {"note"}


def test_a_core_can_be_held(capsys):
    script = LADDER / f"{TWO_PHASE}.py"
    times = []
    for flags in ((), ("--delay", f"1@{script}:39#0=50us"), ("--delay", "1@1=50us")):
        _, out, _ = run(capsys, "--json", "-", *flags, script, *ALL)
        times.append(json.loads(out)["runs"][0]["kernel_ps"])
    # Rank 1's first load is its first operation, so both ways hold the same, and everybody waits for it.
    assert times[1] == times[2]
    assert 49_000_000 < times[1] - times[0] <= 50_000_000


def test_a_witness_is_printed_and_carried(capsys, tmp_path):
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW)
    status, _, err = run(capsys, "--witness", path, *ALL)
    assert status == 1 and "witness: shown: with rank 0 held for" in err
    _, out, _ = run(capsys, "--witness", "--json", "-", path, *ALL)
    (race,) = [f for f in json.loads(out)["runs"][0]["findings"] if f["kind"] == "race"]
    assert race["witness"]["shown"] and race["witness"]["changes"][0]["memory"] == "result_buf"


def test_accepted_findings_decide_nothing(capsys, tmp_path):
    store = STORE.rstrip("\n") + "  # a2a3sim: ok race - to see the report\n"
    wait = "offsets=[0, my_rank], value=1, op=pld.NotifyOp.AtomicAdd\n"
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW, (STORE, store))
    text = path.read_text()
    before, barrier, after = text.partition(WAIT)
    assert wait in after
    path.write_text(
        before + barrier + after.replace(wait, wait.rstrip("\n") + "  # a2a3sim: ok early-release - too\n")
    )
    status, out, err = run(capsys, path, *ALL)
    assert (status, out) == (0, "OK\n")
    assert "2 accepted" in err
    assert "accepted error: race" in err and "reason: to see the report" in err
    assert "not used" not in err


def test_what_silences_nothing_is_noted(capsys, tmp_path):
    store = STORE.rstrip("\n") + "  # a2a3sim: ok race - no longer true\n"
    path = altered(tmp_path, TWO_PHASE, (STORE, store))
    status, _, err = run(capsys, path, *ALL)
    assert status == 0
    (line,) = [line for line in err.splitlines() if "not used" in line]
    assert line.endswith("race - no longer true") and f"{TWO_PHASE}.py:60" in line


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--delay", "1@1"], "RANK@FILE:LINE"),
        (["--suppress", "/nowhere.toml"], "cannot be read"),
    ],
)
def test_bad_flags_are_one_line_and_exit_2(capsys, flags, words):
    status, out, err = run(capsys, *flags, LADDER / f"{TWO_PHASE}.py", *ALL)
    assert (status, out, len(err.strip().splitlines())) == (2, "", 1)
    assert words in err


def test_a_suppression_without_reason_is_found_before_anything_runs(capsys, tmp_path):
    path = altered(tmp_path, TWO_PHASE, (STORE, STORE.rstrip("\n") + "  # a2a3sim: ok race\n"))
    status, out, err = run(capsys, path, *ALL)
    assert (status, out) == (2, "")
    assert "must give its reason" in err
