"""A saved trace gives what the run gave: the same measures, findings, pictures; and a file that is not whole says so."""

import json
import shutil
import zlib
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hazards.harness import ADD, GE, me, others, results

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import ConfigError, RunConfig
from a2a3sim.checks.saved import check_again, follows_others
from a2a3sim.checks.verdict import verdict_on
from a2a3sim.cli import main
from a2a3sim.experiments.runner import Point, run_point
from a2a3sim.reports.chrome import trace_text
from a2a3sim.reports.story import Story, story_lines
from a2a3sim.reports.timeline import TimelineRun, draw_timeline
from a2a3sim.run.settings import Session, session
from a2a3sim.trace.critical_path import critical_path
from a2a3sim.trace.packing import pack
from a2a3sim.trace.record import Trace, resolve_site
from a2a3sim.trace.rounds import round_count

pytestmark = pytest.mark.filterwarnings("ignore::a2a3sim.errors.FindingsWarning")


def runs_of(body, **options):
    """(trace, result) of each call of a case."""
    seen = []
    with session(Session({}, [lambda program, result, trace: seen.append((trace, result))])):
        results(body, **options)
    return seen


def again(trace, result, folder):
    """What comes back from a file."""
    return Trace.load(trace.save(folder / "run.trace", result))


# ---- programs: a barrier that is reused, one that is not fenced, one that hangs, one that reads zeros -------------


def arrive(signal, value):
    for p in others(signal):
        pld.system.notify(signal, p, [me(signal), 0], 1, op=ADD)
    for p in others(signal):
        pld.system.wait(signal, [p, 0], value, cmp=GE)


def reused(x, y, data, signal, e):
    pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)
    arrive(signal, 1)
    pl.store(pld.tile.remote_load(data, others(data)[0], [0, 0], [1, 64]), [0, 0], y)
    arrive(signal, 1)
    pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)


def sound(x, y, data, signal, e):
    pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)
    with pl.phase("meet"):
        arrive(signal, 1)
    pl.store(pl.add(pld.tile.remote_load(data, others(data)[0], [0, 0], [1, 64]), 1.0), [0, 0], y)


def created(x, y, data, signal, e):
    pl.store(pl.mul(pl.create_tile([1, 64], dtype=pl.FP32), 2.0), [0, 0], y)


def stuck(x, y, data, signal, e):
    arrive(signal, 2)


def zeros(x, y, data, signal, e):
    pl.store(pld.tile.remote_load(data, others(data)[0], [0, 0], [1, 60]), [0, 0], y)


def partial(x, y, data, signal, e):
    pld.tensor.put(data, others(data)[0], x, [0, 0], [0, 0], [1, 30])
    pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], y)


CASES = {
    "reused": (reused, {"ranks": 3}),
    "explicit": (sound, {"ranks": 2, "config": {"fences": "explicit"}}),
    "sound": (sound, {"ranks": 3, "blocks": 2}),
    "created": (created, {"ranks": 2}),
    "stuck": (stuck, {"ranks": 2}),
    "zeros": (zeros, {"ranks": 2}),
    "partial": (partial, {"ranks": 2, "launches": 2}),
    "wrong": (sound, {"ranks": 2, "golden": np.zeros_like}),
    "kept": (sound, {"ranks": 2, "calls": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_saved_trace_gives_everything_the_run_gave(case, tmp_path):
    body, options = CASES[case]
    for trace, result in runs_of(body, **options):
        loaded, told = again(trace, result, tmp_path)
        assert (told, told.verdict) == (result, result.verdict)
        assert json.dumps(pack(loaded, resolve_site)) == json.dumps(pack(trace, resolve_site))
        checked = check_again(loaded, told)
        assert (checked.findings, checked.verdict) == (result.findings, result.verdict)
        assert trace_text([("run", loaded, told)]) == trace_text([("run", trace, result)])
        assert critical_path(loaded) == critical_path(trace)
        assert round_count(loaded.table) == round_count(trace.table)
        assert list(story_lines(Story(told, loaded))) == list(story_lines(Story(result, trace)))


def test_findings_are_found_anew_and_not_copied(tmp_path):
    (checked,) = runs_of(reused, ranks=3)
    (unchecked,) = runs_of(reused, ranks=3, config={"checks": False})
    loaded, told = again(*unchecked, tmp_path)
    assert told.findings == []
    assert check_again(loaded, told).findings == checked[1].findings != []
    (safe,) = runs_of(sound, ranks=2, config={"checks": False})
    loaded, told = again(*safe, tmp_path)
    assert (told.verdict, check_again(loaded, told).verdict) == (None, verdict_on(safe[0], []))


def test_what_was_accepted_stays_accepted_and_what_no_check_finds_goes(tmp_path):
    ((trace, result),) = runs_of(reused, ranks=3)
    accepted = result.findings[0].model_copy(update={"suppressed": "known"})
    moved = result.findings[0].model_copy(update={"ranks": [7]})
    stated = result.model_copy(update={"findings": [accepted, moved]})
    loaded, told = again(trace, stated, tmp_path)
    assert check_again(loaded, told).findings == [accepted, *result.findings[1:]]


def test_a_later_call_on_kept_windows_keeps_the_findings_of_the_run(tmp_path):
    first, second = runs_of(reused, ranks=2, calls=2)
    assert [follows_others(again(*run, tmp_path)[0]) for run in (first, second)] == [False, True]


def test_places_stand_in_the_file(tmp_path):
    ((trace, result),) = runs_of(sound, ranks=2)
    loaded, _ = again(trace, result, tmp_path)
    place = Trace.site(loaded.lanes[0].operations[0])
    assert place == Trace.site(trace.lanes[0].operations[0])
    assert (place.file.rpartition("/")[2], place.function) == ("test_saved_traces.py", "sound")


def test_the_timeline_of_a_saved_trace_has_the_same_bytes(tmp_path):
    outcome = run_point(Point("two_phase", 4, 4096, config=RunConfig(machine="ideal-switch"), cores=2))
    loaded, told = again(outcome.trace, outcome.result, tmp_path)
    live = draw_timeline([TimelineRun(outcome.trace, outcome.result)], tmp_path / "live.png")
    drawn = draw_timeline([TimelineRun(loaded, told)], tmp_path / "saved.png")
    assert live.read_bytes() == drawn.read_bytes()


# ---- files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def whole(tmp_path):
    outcome = run_point(Point("mesh", 2, 1024, config=RunConfig(machine="ideal"), cores=1))
    return outcome.trace.save(tmp_path / "run.trace", outcome.result)


def refusal(path):
    with pytest.raises(ConfigError) as caught:
        Trace.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value).replace(str(path), "FILE")


def test_a_file_that_is_not_whole_says_so(whole):
    data = whole.read_bytes()
    line, _, body = data.partition(b"\n")
    whole.write_bytes(data[:-10])
    assert f"{len(body)} B must follow its first line, got {len(body) - 10} B" in refusal(whole)
    whole.write_bytes(data + b"x")
    assert "goes on too long" in refusal(whole)
    whole.write_bytes(line[:40])
    assert "cut within its first line" in refusal(whole)
    whole.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "SHA-256" in refusal(whole)


def test_another_version_and_another_file_are_told(whole):
    whole.write_bytes(whole.read_bytes().replace(b"trace/1 ", b"trace/2 ", 1))
    assert "must be a trace of schema a2a3sim.trace/1, got a2a3sim.trace/2" in refusal(whole)
    whole.write_bytes(b"\x89PNG")
    assert "is no saved trace: one begins with a2a3sim.trace/1" in refusal(whole)
    whole.unlink()
    assert "must be readable" in refusal(whole)


@pytest.mark.parametrize("header", [{}, {"columns": [["kind", "|O", 1]]}, {"columns": [], "words": 3}, []])
def test_contents_that_make_no_sense_are_told(whole, header):
    head = json.dumps(header).encode()
    body = zlib.compress(len(head).to_bytes(8, "little") + head)
    whole.write_bytes(f"a2a3sim.trace/1 {len(body)} {sha256(body).hexdigest()}\n".encode() + body)
    assert "must hold a trace as --save-trace writes it" in refusal(whole)


# ---- the command line -------------------------------------------------------------------------------------------

COMPARE = ["compare", "-d", "0,1", "--size", "4KiB", "--cores", "1", "--platform", "ideal"]


def test_commands_on_saved_traces(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*COMPARE, "--save-trace", "a.trace", "--trace", "live.json", "--json", "live.report"]) == 0
    assert (tmp_path / "a-2.trace").exists()
    assert main(["trace", "a.trace", "a-2.trace", "-o", "saved.json"]) == 0
    assert (tmp_path / "saved.json").read_bytes() == (tmp_path / "live.json").read_bytes()
    assert main(["timeline", "a.trace", "a-2.trace", "-o", "both.png"]) == 0
    assert "mesh: " in capsys.readouterr().out
    assert main(["check-trace", "a-2.trace", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert "safe on every schedule" in err
    assert json.loads(out)["runs"] == json.loads((tmp_path / "live.report").read_text())["runs"][1:]
    assert main(["diff", "a.trace", "a.trace"]) == 0
    assert main(["diff", "a.trace", "a-2.trace"]) == 1
    (tmp_path / "one.json").write_text(Trace.load("a.trace")[1].to_json())
    assert main(["diff", "a.trace", "one.json"]) == 0


def test_a_saved_trace_takes_no_settings(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert (
        main(["perf", "allreduce", "--algorithm", "mesh", "-b", "1KiB", "-e", "1KiB", "--save-trace", "a"])
        == 0
    )
    capsys.readouterr()
    assert main(["timeline", "a", "--skew", "1us"]) == 2
    assert "not simulated again: leave --skew away" in capsys.readouterr().err
    assert main(["perf", "allreduce", "-j", "2", "--save-trace", "a"]) == 2
    assert main(["check-trace", "nothing"]) == 2
    assert main(["trace", "a", "-o", "a.txt"]) == 2


def test_run_saves_each_run_of_a_script_and_its_findings_return(tmp_path, capsys):
    ladder = Path(__file__).parents[1] / "examples" / "distributed"
    shutil.copy(ladder / "common.py", tmp_path)
    bad = tmp_path / "one_row.py"
    bad.write_text((ladder / "09_allreduce_two_phase.py").read_text().replace("offsets=[1, ", "offsets=[0, "))
    saved = tmp_path / "bad.trace"
    status = main(["run", "--save-trace", str(saved), str(bad), "-d", "0,1"])
    live = capsys.readouterr().err.replace(f"wrote {saved}\n", "")
    assert (status, main(["check-trace", str(saved)])) == (1, 1)
    assert capsys.readouterr().err == live
