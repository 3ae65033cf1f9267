"""Findings: folding over ranks, order, wording."""

import pytest
from hb_machine import Script
from hb_programs import mesh

from a2a3sim.checks.happens_before.checker import check_execution


def test_symmetric_findings_fold_into_one():
    findings = mesh(4, second=False).check()
    assert len(findings) == 1
    race = findings[0]
    assert (race.ranks, race.count, len(race.pairs)) == ([0, 1, 2, 3], 12, 12)
    assert race.pairs[:3] == [(0, 1), (0, 2), (0, 3)]
    assert "12 such pairs between every two of ranks 0..3" in race.message


def test_lines_and_memory_objects_keep_findings_apart():
    s = Script()
    s.core(0).write("A", 0, at="a").write("A", 0, 32, 64, at="b").write("B", 0, at="a")
    s.core(1).read("A", 0, 0, 64, at="r").read("B", 0, at="r")
    found = [(f.sites[0][0], f.where["memory"], f.where["bytes"]) for f in s.check()]
    assert sorted(found) == [("a", "A", [0, 32]), ("a", "B", [0, 32]), ("b", "A", [32, 64])]


def test_a_write_comes_first_and_two_writes_are_sorted_by_line():
    s = Script()
    s.core(0).read("A", 0, at="read").write("B", 0, at="z")
    s.core(1).write("A", 0, at="write").write("B", 0, at="y")
    assert [f.sites for f in s.check()] == [[("write", 0), ("read", 0)], [("y", 0), ("z", 0)]]


@pytest.mark.parametrize("seed", range(6))
def test_subtype_follows_the_observed_order(seed):
    s = Script()
    s.core(0).write("A", 0, at="write")
    s.core(1).read("A", 0, at="read")
    (race,) = s.check(seed)
    write, read = s.cores[0].ops[0].when, s.cores[1].ops[0].when
    assert race.subtype == ("RAW" if write < read else "WAR")
    assert ("gets the old bytes" in race.message) == (write < read)
    assert ("already overwritten" in race.message) == (write > read)


def test_errors_come_before_warnings_and_notes():
    s = mesh(3, ("a", "a"), (1, 1))
    s.cores[0].wait(("a", 1)).ops[-1].at = "idle"
    severities = [f.severity for f in s.check(kept=True)]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert {"error", "note"} <= set(severities)


def test_the_race_that_an_early_release_explains_says_so():
    findings = mesh(3, ("a", "a"), (1, 1)).check()
    race = next(f for f in findings if f.kind == "race")
    early = next(f for f in findings if f.kind == "early-release")
    assert "released early" in race.message
    assert "race" in early.message and early.severity == "error"
    assert early.fix and race.fix


def test_an_empty_program_has_no_findings():
    assert check_execution(Script().program()) == []
    assert Script(explicit=True).check() == []
