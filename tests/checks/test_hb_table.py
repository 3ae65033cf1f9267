"""Which synchronisation patterns are sound on every schedule: each program on several random schedules.

A script's verdict is asserted to be the same on all of them. Every broken program has a sound twin.
"""

import pytest
from hb_machine import Script
from hb_programs import (
    barrier,
    central_counter,
    credit_barrier,
    dissemination,
    double_buffer,
    lock_step,
    mesh,
    peers,
    ring_pull,
    ring_push,
    two_phase,
)


def races(script, seed=0):
    """Number of racing pairs."""
    return sum(f.count for f in script.check(seed) if f.kind == "race")


@pytest.mark.parametrize("build", [mesh, two_phase])
@pytest.mark.parametrize("rows, values", [(("a", "b"), (1, 1)), (("a", "a"), (1, 2))], ids=["rows", "epochs"])
def test_two_barriers_are_sound_with_two_rows_or_two_counts(build, rows, values):
    assert build(4, rows, values).verdicts() == set()


@pytest.mark.parametrize("build", [mesh, two_phase])
def test_one_row_with_ge_1_serves_only_one_barrier(build):
    script = build(4, ("a", "a"), (1, 1))
    assert script.kinds() == {"race", "early-release"}
    assert races(script) == 12
    early = [f for f in script.check() if f.kind == "early-release"]
    assert [(f.severity, f.ranks, f.sites[0]) for f in early] == [("error", [0, 1, 2, 3], ("wait", 0))]


def test_a_result_stored_in_place_needs_the_second_barrier():
    script = mesh(4, second=False)
    assert script.kinds() == {"race"}
    assert races(script) == 12
    assert mesh(4, second=False, private=True).verdicts() == set()


@pytest.mark.parametrize("build", [ring_pull, ring_push])
def test_ring_with_a_row_per_round_or_a_count_per_round(build):
    assert build(4).verdicts() == set()
    assert build(4, row=lambda k: 0, value=lambda k: k + 1).verdicts() == set()


@pytest.mark.parametrize("build", [ring_pull, ring_push])
def test_ring_with_ge_1_on_one_row(build):
    assert build(4, row=lambda k: 0).kinds() == {"race", "early-release"}


def test_credit_barrier_that_takes_its_credits_off():
    assert credit_barrier(calls=3).verdicts() == set()
    assert credit_barrier(calls=1, launches=3).kinds() == set()


def test_credit_barrier_that_is_never_cleared():
    assert credit_barrier(calls=3, clear=None).kinds() == {"race", "early-release"}
    assert credit_barrier(calls=1, launches=3, clear=None).kinds() == {"race", "early-release", "residue"}


@pytest.mark.parametrize("launches", [1, 3])
def test_credit_barrier_cleared_with_set(launches):
    script = credit_barrier(calls=3 // launches, launches=launches, clear="set")
    for seed in range(8):  # some of these schedules hang
        assert "lost-credit" in {f.kind for f in script.check(seed)}


def test_central_counter_and_dissemination():
    assert central_counter(4, 6).verdicts() == set()
    assert dissemination(4).verdicts() == set()
    assert dissemination(5).verdicts() == set()


def test_double_buffer_needs_credits():
    assert double_buffer().verdicts() == set()
    assert double_buffer(credits=False).kinds() == {"race"}


def test_double_buffer_over_launches():
    assert double_buffer(launches=3, count="subtract").kinds() == set()
    assert double_buffer(launches=3, count="argument").kinds() == set()
    restarted = double_buffer(launches=3, count="restart")
    assert restarted.kinds() == {"race", "early-release", "residue"}
    cleared = double_buffer(launches=3, count="restart", clear=True)
    for seed in range(8):
        assert "lost-credit" in {f.kind for f in cleared.check(seed)}


@pytest.mark.parametrize("need, pairs", [(1, 3), (2, 3), (3, 0)])
def test_a_cell_with_three_writers_tells_how_many_not_which(need, pairs):
    s = Script()
    reader = s.core(0)
    for rank in (1, 2, 3):
        s.core(rank).write("D", 0, 32 * rank, 32 * rank + 32, at="put").notify(0, "c")
    reader.wait("c", need).read("D", 0, 0, 128, at="read")
    assert s.kinds() == ({"race"} if pairs else set())
    assert races(s) == pairs


def test_set_by_two_writers_on_one_cell():
    s = Script()
    reader = s.core(0)
    for rank in (1, 2):
        s.core(rank).write("D", 0, 32 * rank, 32 * rank + 32, at="put").set(0, "c", rank)
    reader.wait("c", 1).read("D", 0, 0, 128, at="read")
    assert s.kinds() == {"lost-credit", "race"}
    assert races(s) == 2


@pytest.mark.parametrize("equal", [False, True])
def test_round_numbers_by_set_in_lock_step(equal):
    assert lock_step(equal).verdicts() == set()


def test_round_numbers_that_nobody_acknowledges():
    script = lock_step(True, free_running=True)
    for seed in range(8):  # the slow worker hangs on most of them
        assert {f.kind for f in script.check(seed)} >= {"overshoot"}
    monotone = lock_step(False, free_running=True)  # Ge k holds for every later k too: only the data race
    assert monotone.kinds() == {"race"}


def test_relay_through_a_third_rank():
    s = Script()
    a, b, c = s.core(0), s.core(1), s.core(2)
    a.write("D", 2, at="put").notify(1, "go").notify(2, "c")
    b.wait("go").notify(2, "c")
    c.wait("c", 1).read("D", 2, at="read")  # whichever arrives, the put came before it
    assert s.verdicts() == set()


def test_a_negative_add_from_elsewhere_weakens_a_count():
    s = Script()
    a, b, c = s.core(0), s.core(1), s.core(2)
    a.write("D", 2, 0, 32, at="put").notify(2, "c")
    b.notify(2, "c").notify(2, "c", -1).notify(2, "c").write("E", 2, at="late").notify(2, "c")
    c.wait("c", 2).read("D", 2, 0, 32, at="read")
    assert "race" in s.kinds()


def test_barrier_that_also_notifies_itself():
    s = Script()
    for rank in range(4):
        c = s.core(rank).write("D", rank, at="stage")
        for p in range(4):
            c.notify(p, "all")
        c.wait("all", 4)
        for p in peers(4, rank):
            c.read("D", p, at="read")
    assert s.verdicts() == set()


def lapped_barrier(ranks=3, rounds=3):
    s = Script()
    for rank in range(ranks):
        c = s.core(rank)
        for _ in range(rounds):
            for p in peers(ranks, rank):
                c.notify(p, "c", at="arrive")
            c.wait("c", ranks - 1, at="wait", equal=True)
            c.set(rank, "c", 0, at="reset")
    return s


def test_fast_rank_laps_a_barrier_that_resets_its_counter():
    script = lapped_barrier()
    for seed in range(8):
        assert {f.kind for f in script.check(seed)} >= {"lost-credit", "overshoot"}


def cleaned_flags(clean_first, ops=4):
    """Two buffers with a flag each; every call cleans the flag of the other buffer."""
    s = Script()
    for rank in range(2):
        c = s.core(rank)
        for k in range(ops):
            c.write("buffer", 1 - rank, 64 * (k % 2), 64 * (k % 2) + 64, at="put")
            if clean_first:
                c.set(rank, ("flag", (k + 1) % 2), 0, at="clean")
            c.set(1 - rank, ("flag", k % 2), 1, at="flag")
            if not clean_first:
                c.set(rank, ("flag", (k + 1) % 2), 0, at="clean")
            c.wait(("flag", k % 2), 1, at="wait")
            c.read("buffer", rank, 64 * (k % 2), 64 * (k % 2) + 64, at="take")
    return s


def test_flags_of_the_other_buffer_cleaned_by_each_call():
    late = cleaned_flags(clean_first=False)
    for seed in range(8):
        assert "lost-credit" in {f.kind for f in late.check(seed)}
    assert cleaned_flags(clean_first=True).verdicts() == set()


def test_set_1_twice_with_ge_1():
    s = Script()
    for rank in range(3):
        c = s.core(rank)
        for _ in range(2):
            c.write("D", rank, at="stage")
            barrier(c, 3, "f", 1, use=1, way="set")
            for p in peers(3, rank):
                c.read("D", p, at="read")
    assert s.kinds() == {"race", "early-release"}
