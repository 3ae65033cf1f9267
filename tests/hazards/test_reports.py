"""How findings read, in terminals and pictures: source lines, who, what other schedule breaks it, what to do."""

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.reports.findings import finding_lines, finding_title
from a2a3sim.reports.marks import finding_marks, mark_titles
from a2a3sim.reports.summary import summary_lines

from .harness import ADD, GE, SET, me, others, results

ROW = [1, 64]


def stale(x, y, data, signal, e):
    for _ in range(2):
        acc = pl.load(x, [0, 0], ROW)
        pl.store(acc, [0, 0], data)
        for p in others(data):
            pld.system.notify(signal, p, [me(data), 0], 1, op=SET)
        for p in others(data):
            pld.system.wait(signal, [p, 0], 1, cmp=GE)
        for p in others(data):
            acc = pl.add(acc, pld.tile.remote_load(data, p, [0, 0], ROW))
        pl.store(acc, [0, 0], y)


def run(body=stale, **options):
    return results(body, **{"ranks": 4, **options})[0]


def test_a_finding_in_a_few_lines():
    early, race = run().findings
    lines = list(finding_lines([race]))
    assert lines[0].startswith("error: race (W") or lines[0].startswith("error: race (R")
    assert lines[0].endswith("): bytes 0-255 of data_buf of ranks 0..3")
    assert (
        lines[1].startswith("    (1) ") and "pl.store(acc, [0, 0], data)" in lines[1] and "rank 0" in lines[1]
    )
    assert lines[2].startswith("    (2) ") and "remote_load" in lines[2] and "rank 1" in lines[2]
    assert max(len(line) for line in lines[3:]) <= 110
    text = " ".join(line.strip() for line in lines[3:])
    assert "24 such pairs between every two of ranks 0..3. 12 of them arise because the wait at" in text
    assert "if rank 0 is late, rank 1 gets the old bytes" in text
    assert "fix: after (1) notify the reader" in text
    assert "Rank 0's wait (1), Ge 1 on signal_buf[1, 0], is met by credits" in early.message


def test_ranges_are_those_of_each_owner():
    def chunks(x, y, data, signal, e):
        rank = me(data)
        pl.store(pl.load(x, [0, 16 * rank], [1, 16]), [0, 16 * rank], data)
        for p in others(data):
            pld.tile.remote_load(data, p, [0, 16 * p], [1, 16])

    (race,) = [f for f in run(chunks).findings if f.kind == "race"]
    assert race.where["bytes"] == [0, 256]
    assert race.where["pieces"] == {str(r): [[64 * r, 64 * r + 64]] for r in range(4)}


def test_the_verdict_is_part_of_the_summary():
    def sound(x, y, data, signal, e):
        pld.system.notify(signal, (me(data) + 1) % 4, [0, 0], 1, op=ADD)
        pld.system.wait(signal, [0, 0], 1, cmp=GE)

    lines = list(summary_lines(run(sound)))
    assert any(line.strip().startswith("safe on every schedule") for line in lines)
    assert not any("safe on every schedule" in line for line in summary_lines(run()))


def test_no_verdict_without_checks():
    assert run(config={"checks": False}).verdict is None
    assert run(config={"checks": False}).findings == []


def test_timing_only_runs_are_checked_too():
    assert {f.kind for f in run(config={"timing_only": True}).findings} == {"early-release", "race"}


def test_findings_survive_json():
    from a2a3sim.result import RunResult

    result = run()
    assert RunResult.from_json(result.to_json()) == result


def test_pictures_mark_the_operations():
    result = run()
    marks = finding_marks(result)
    assert [m.label for m in marks] == ["A1", "A2", "B1", "B2"]
    assert [m.pipe for m in marks] == ["S", "S", "MTE3", "MTE2"]
    assert {m.severity for m in marks} == {"error"}
    titles = mark_titles(result)
    assert [severity for severity, _ in titles] == ["error", "error"]
    assert titles[1][1] == f"B: {finding_title(result.findings[1])}"
