"""The cost card and the diff: what they say about runs whose numbers are known."""

import pytest
from built_traces import US, info, mesh, ring, two_phase
from rich.console import Console

from a2a3sim.reports.card import ClosedForm, cost_card, typical
from a2a3sim.reports.diff import diff, render_diff
from a2a3sim.reports.heading import header
from a2a3sim.trace.measures import measure

N = 4096
FORMS = {
    "mesh": ClosedForm("(P-1)·N", 3 * N),
    "two_phase": ("2(P-1)/P·N", 3 * N // 2),
    "ring": ("2(P-1)/P·N", 1),
}


def run(make, **changes):
    builder = changes.pop("builder", None) or make(4, N, rate=25000)
    about = {"algorithm": make.__name__, "bytes_per_rank": N} | changes
    return measure(builder.trace(), info(4, **about))


def text(renderable, width=80):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(renderable)
    return console.export_text()


def rows(card):
    return {line[:21].strip(): line[21:].split() for line in card.splitlines()}


def test_the_card_puts_measured_bytes_beside_the_closed_form():
    card = text(cost_card([run(mesh), run(two_phase), run(ring)], FORMS, title="all-reduce"))
    row = rows(card)
    assert card.startswith("all-reduce\n")
    assert row["remote bytes per rank"] == ["12", "KiB", "6", "KiB", "6", "KiB"]
    assert row["closed form"] == ["(P-1)·N", "2(P-1)/P·N", "2(P-1)/P·N"]
    assert row["its value"] == ["12288", "B,", "exact", "6144", "B,", "exact", "≠", "1", "B"]
    assert row["bytes saved"] == ["50", "%", "50", "%"]
    assert row["rounds"] == ["1", "2", "6"]
    assert row["barriers"] == ["1", "2", "6"]
    assert row["findings"] == ["none"] * 3
    assert all(len(line) <= 80 for line in card.splitlines())


def test_the_header_states_the_premises():
    result = run(
        mesh, seed=3, skew_ps=US, fences="notify", overrides={"link.latency": "2us"}, timing_only=True
    )
    assert header(result) == (
        f"a2a3sim {result.version} · platform a2 (0123abcd) · 4 ranks × 1 core · seed 3 · skew 1 us"
        " · fences notify · timing only · link.latency=2us"
    )
    assert "5 seeds" in header(result, 5)
    assert "platform a2 (0123abcd)" in text(cost_card([result]), 200)


def test_bound_speed_up_and_numerics():
    slow, fast = run(mesh, bound_ps=4 * US, numerics={"ok": False, "wrong": 7}), run(two_phase)
    assert fast.percent_of_bound is None
    assert slow.percent_of_bound == pytest.approx(100 * 4 * US / slow.kernel_ps)
    row = rows(text(cost_card([slow, fast])))
    assert row["numerics"] == ["7", "wrong"]
    assert row["% of bound"][0] == f"{slow.percent_of_bound:.1f}"
    assert row["speed-up"] == [f"{slow.kernel_ps / fast.kernel_ps:.2f}×"]


def test_several_seeds_show_the_median_and_the_range():
    runs = [
        run(mesh, seed=k, builder=mesh(4, N, rate=25000, latency=latency * US))
        for k, latency in enumerate((3, 1, 2))
    ]
    assert typical(runs).seed == 2
    card = text(cost_card([runs]))
    assert "3 seeds" in card
    assert "over seeds" in card


def test_many_algorithms_go_into_several_tables():
    card = text(cost_card([run(mesh)] * 5))
    assert card.count("rounds") == 2


def test_no_run_is_refused():
    with pytest.raises(ValueError, match="at least one run"):
        cost_card([])


def test_two_equal_runs_do_not_differ():
    a, b = run(mesh, wall_s=1.0), run(mesh, wall_s=2.0)
    assert diff(a, b) == []
    assert "no difference" in text(render_diff([]))


def test_a_diff_names_what_changed():
    race = {"kind": "race", "severity": "error", "message": "m", "sites": [{"file": "a.py", "line": 3}]}
    a = run(mesh, overrides={"x": 1}, findings=[race])
    b = run(two_phase, seed=5, overrides={"y": 2}, numerics={"ok": True})
    changes = {(c.group, c.where): (c.before, c.after) for c in diff(a, b)}
    assert changes["parameters", "algorithm"] == ("mesh", "two_phase")
    assert changes["parameters", "seed"] == (0, 5)
    assert changes["parameters", "overrides.x"] == (1, None)
    assert changes["times", "kernel_ps"] == (a.kernel_ps, b.kernel_ps)
    assert changes["bytes", "per_rank[*].remote_read_bytes"] == (12288, 6144)
    assert changes["bytes", "pairs[*]"] == (4096, 2048)
    assert changes["counts", "rounds"] == (1, 2)
    assert changes["findings", "error race at a.py:3"] == (1, 0)
    assert changes["numerics", "ok"] == (None, True)
    shown = text(render_diff(diff(a, b)), 120)
    assert "per_rank[*].remote_read_bytes" in shown
    assert "-50.0 %" in shown
    assert "gone" in shown


def test_a_diff_keeps_ranks_apart_that_changed_differently():
    a, b = run(mesh), run(mesh)
    b.per_rank[2].wait_ps += 5
    assert [(c.where, c.after - c.before) for c in diff(a, b)] == [("per_rank[2].wait_ps", 5)]
