"""``a2a3sim timeline``: kernels and scripts, several runs on one axis, and zooming in."""

import json
import re
from pathlib import Path

import pytest
from running import command

from a2a3sim.experiments.timelines import zoom_text
from a2a3sim.reports import timeline

EXAMPLES = Path(__file__).parents[2] / "examples" / "distributed"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *args):
    return command(capsys, "timeline", *args)


def test_algorithms_stand_on_one_axis_in_the_order_in_which_they_are_named(here, capsys):
    args = ("allreduce", "--algorithms", "mesh,two_phase,ring", "-d", "0-3", "--size", "16KiB", "-o", "t.svg")
    status, out, err = run(capsys, *args)
    assert status == 0 and err == "wrote t.svg\n"
    assert [line.split(":")[0] for line in out.splitlines()] == ["mesh", "two_phase", "ring"]
    assert re.search(r"latency \d+ %.*% of bound.*links used", out)
    first = Path("t.svg").read_bytes()
    run(capsys, *args)
    assert Path("t.svg").read_bytes() == first


def test_zooming_shows_only_some_ranks_and_times(here, capsys, monkeypatch):
    panels = []
    real = timeline._Panel.draw

    def watched(self, axes, *args):
        real(self, axes, *args)
        panels.append((list(self.rows), axes.get_xlim()[0], axes.get_ylim()))

    monkeypatch.setattr(timeline._Panel, "draw", watched)
    args = (
        "allreduce",
        "--algorithms",
        "ring",
        "-d",
        "0-7",
        "--size",
        "16KiB",
        "--from",
        "3us",
        "--to",
        "9us",
    )
    assert run(capsys, *args, "--ranks", "2,5-6")[0] == 0
    assert panels == [([2, 5, 6], 3.0, (3.0, 0.0))]


def test_what_is_shown_is_said_in_the_title():
    assert zoom_text(None, None) == ""
    assert zoom_text((3_000_000, 9_500_000), [2, 3, 4]) == " (3 us to 9.5 us; ranks 2 to 4)"
    assert zoom_text(None, [5]) == " (rank 5)"


@pytest.mark.parametrize("ranks", [2, 4, 16, 64])
def test_any_number_of_ranks_is_drawn(here, capsys, ranks):
    args = (
        "allreduce",
        "--algorithms",
        "two_phase",
        "-d",
        f"0-{ranks - 1}",
        "--size",
        "4KiB",
        "--platform",
        "ideal",
    )
    zoom = ("--from", "1us", "--ranks", f"0-{ranks // 2}", "-o", "zoomed.png")
    assert run(capsys, *args, *zoom, "--timing-only", "--no-check")[0] == 0


def test_a_script_is_drawn_with_every_run_it_makes(here, capsys):
    script = next(EXAMPLES.glob("08*.py"), None) or next(EXAMPLES.glob("*.py"))
    status, out, err = run(capsys, str(script), "--json", "r.json", "--", "-p", "a2a3sim", "-d", "0,1")
    assert status == 0 and "wrote timeline.png" in err
    runs = json.loads(Path("r.json").read_text())["runs"]
    assert len(out.splitlines()) == len(runs) >= 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("allredcue",), "did you mean 'allreduce'"),
        (("nosuch.py",), "there is no script 'nosuch.py'"),
        (("allreduce", "--algorithms", "rnig"), "did you mean 'ring'"),
        (("allreduce", "-o", "t.pdf"), "-o must be a .png or .svg file"),
        (("allreduce", "-o", "/nowhere/t.png"), "there is no directory"),
        (("allreduce", "--from", "3"), "a time needs a unit"),
        (("allreduce", "--from", "5us", "--to", "3us"), "--to must be after --from"),
        (("allreduce", "--from", "9s"), "--from must be before"),
        (("allreduce", "--ranks", "4"), "there is no rank 4, ranks are 0..3"),
        (("allreduce", "--size", "3B"), "positive multiple of 4 B"),
        (("allreduce", "-d", "0-8"), "a3 has 16"),
        (("allreduce", "extra"), "takes no arguments"),
        (("allreduce", "--trace", "t.txt"), "a trace must be"),
    ],
)
def test_bad_input_is_one_line_exit_2_and_leaves_nothing(here, capsys, args, said):
    status, out, err = run(capsys, *args)
    assert status == 2 and out == "" and said in err and len(err.splitlines()) == 1
    assert not list(here.iterdir())
