"""Witnesses: the schedule on which a race bites, and its bytes; or the word that none was found."""

import re
from pathlib import Path

import pytest
from running import altered
from running import script as run

from a2a3sim.experiments.witness import attach_witnesses, look_for_witness

from .programs import ONE_ROW, TWO_PHASE

ALL = "0,1,2,3"
HAND_WRITTEN = Path(__file__).parent / "scripts" / "hand_written.py"


def races(ended):
    return [f for f in ended.runs[0].findings if f.kind == "race"]


def test_one_row_for_both_barriers_is_shown_to_bite(tmp_path):
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW)
    ended = run(path, "-d", ALL, look=attach_witnesses)
    assert ended.runs[0].numerics.ok  # on its own schedule nothing is wrong
    (race,) = races(ended)
    witness = race.witness
    assert witness.shown and witness.tries == 1
    read = witness.changes[0]
    assert (read["memory"], read["operation"], read["after"]) == ("result_buf", "remote_load", 0.0)
    assert read["before"] != 0
    assert read["bytes"][1] - read["bytes"][0] == 256
    assert "gets other bytes" in witness.message
    # What it says reproduces it.
    where, _, time = witness.delay.rpartition("=")
    again = run(path, "-d", ALL, forced={"delay": {where: time}})
    assert (again.status, again.runs[0].numerics.ok) == (1, False)
    assert again.runs[0].overrides == {"delay.0": witness.delay}


def test_a_witness_of_two_writes_shows_what_stays(tmp_path):
    path = altered(tmp_path, "13_allgather", ("dst_offsets=[my_rank, 0]", "dst_offsets=[0, 0]"))
    (race,) = races(run(path, "-d", ALL, look=attach_witnesses))
    assert race.witness.shown
    assert race.witness.changes[0]["operation"] == "put"
    assert "in the end there stand other bytes: table_buf of rank" in race.witness.message


@pytest.mark.parametrize("between", ["none", "drain"])
def test_an_unfenced_write_is_late_by_itself(between):
    """With explicit fences a notify overtakes the bytes: holding the core would hold both."""
    ended = run(HAND_WRITTEN, between, look=attach_witnesses)
    race = races(ended)[0]
    assert race.witness.shown
    assert race.witness.delay.endswith(":flight")
    assert "under way" in race.witness.message


def test_looking_changes_nothing(tmp_path):
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW)
    plain, looked = run(path, "-d", ALL), run(path, "-d", ALL, look=attach_witnesses)
    times = [(r.kernel_ps, r.numerics.max_abs_error) for ended in (plain, looked) for r in ended.runs]
    assert times[0] == times[1]


def test_equal_bytes_show_nothing(tmp_path):
    """Everybody stages the same: the race is there, and no schedule shows it."""
    same = (
        "rng(9).standard_normal((nr, 1, SIZE), dtype=np.float32)",
        "rng(9).standard_normal((1, 1, SIZE), dtype=np.float32)",
    )
    path = altered(
        tmp_path,
        "08_allreduce_mesh",
        (
            "y = pl.store(acc, [0, 0], y)",
            "y = pl.store(acc, [0, 0], pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data) and y)",
        ),
    )
    assert same
    ended = run(path, "-d", ALL, look=attach_witnesses)
    (race,) = races(ended)
    assert not race.witness.shown
    assert re.fullmatch(r"not shown in \d+ tries", race.witness.message)


def test_without_its_call_a_race_is_not_tried(tmp_path):
    ended = run(altered(tmp_path, TWO_PHASE, *ONE_ROW), "-d", ALL)
    witness = look_for_witness(None, ended.traces[0], races(ended)[0])
    assert not witness.shown and witness.message.startswith("not tried")


def test_json_carries_the_witness_only_where_there_is_one(tmp_path):
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW)
    plain = run(path, "-d", ALL).runs[0].to_json()
    looked = run(path, "-d", ALL, look=attach_witnesses).runs[0].to_json()
    assert '"witness"' not in plain and '"witness":{"shown":true' in looked
