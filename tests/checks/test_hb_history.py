"""Signal cells that live on from call to call of one worker."""

import pytest
from hb_machine import Script
from hb_programs import barrier, credit_barrier, peers

from a2a3sim.checks.happens_before.history import HistoryState


def calls(scripts, history=None, reset=False):
    """Findings of each call in turn, on windows that live on; a list of (kind, severity) sets."""
    history, values, found = history or HistoryState(), {}, []
    for k, script in enumerate(scripts):
        if reset:
            history.reset()
            values = {}
        findings = script.check(k, values, history=history, kept=True)
        found.append({(f.kind, f.severity) for f in findings})
    return found


def epoch_calls(first, steps=3):
    """Two ranks exchange a slot a step, counting from ``first``."""
    s = Script()
    for rank in range(2):
        c = s.core(rank)
        for e in range(first, first + steps):
            c.write("slot", 1 - rank, at="put").notify(1 - rank, "full", at="full").wait(
                "full", e, at="wait full"
            )
            c.read("slot", rank, at="take").notify(1 - rank, "free", at="free").wait(
                "free", e, at="wait free"
            )
    return s


def test_credits_taken_off_leave_the_next_call_clean():
    assert calls([credit_barrier(calls=1) for _ in range(3)]) == [set(), set(), set()]


def test_credits_left_over_release_the_next_call_early():
    first, second, third = calls([credit_barrier(calls=1, clear=None) for _ in range(3)])
    assert first == {("residue", "note")}
    assert second >= {("early-release", "error"), ("race", "error"), ("residue", "warning")}
    assert third >= {("early-release", "error"), ("race", "error")}


def test_an_epoch_that_goes_on_is_sound_and_one_that_restarts_is_not():
    went_on = calls([epoch_calls(1), epoch_calls(4), epoch_calls(7)])
    assert went_on == [{("residue", "note")}] * 3
    restarted = calls([epoch_calls(1), epoch_calls(1)])
    assert restarted[1] >= {("early-release", "error"), ("race", "error"), ("residue", "warning")}


def test_fresh_windows_forget():
    assert calls([epoch_calls(1), epoch_calls(1)], reset=True) == [{("residue", "note")}] * 2


def test_reset_of_one_memory_object():
    history = HistoryState()
    epoch_calls(1).check(0, {}, history=history, kept=True)
    history.reset([("full", 0)])
    assert history.get(("full", 0), 0) is None
    assert history.get(("full", 1), 0).value == 3
    assert history.get(("full", 1), 0).needed == 3


def test_a_credit_that_nobody_has_needed_yet_may_be_used_by_the_next_call():
    def step(e):
        s = Script()
        a, b = s.core(0), s.core(1)
        a.wait("free", e - 2, at="wait free").write("slot", 1, 32 * (e % 2), 32 * (e % 2) + 32).notify(
            1, "full"
        )
        b.wait("full", e).read("slot", 1, 32 * (e % 2), 32 * (e % 2) + 32).notify(0, "free")
        return s

    assert all(kinds <= {("residue", "note")} for kinds in calls([step(e) for e in range(1, 6)]))


@pytest.mark.parametrize("values, clean", [((1, 2, 3), True), ((1, 1, 1), False)])
def test_set_and_eq_over_calls(values, clean):
    def call(value):
        s = Script()
        for rank in range(3):
            c = s.core(rank).write("D", rank, at="stage")
            barrier(c, 3, "f", value, use=value, way="set")
            for p in peers(3, rank):
                c.read("D", p, at="read")
        return s

    found = calls([call(v) for v in values])
    assert found[0] == {("residue", "note")}
    for kinds in found[1:]:
        assert (("early-release", "error") in kinds) != clean


def test_an_early_release_over_calls_says_where_its_credits_come_from():
    history, values = HistoryState(), {}
    epoch_calls(1).check(0, values, history=history, kept=True)
    findings = epoch_calls(1).check(0, values, history=history, kept=True)
    early = [f for f in findings if f.kind == "early-release"]
    assert {f.subtype for f in early} == {"an earlier launch"}
    assert "argument" in early[0].fix
