"""Pictures of a sweep: which ones there are, equal for equal data, and with labels that do not collide."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from a2a3sim import ConfigError
from a2a3sim.cli import main
from a2a3sim.experiments import plots_axes
from a2a3sim.experiments.plots import draw_sweep
from a2a3sim.experiments.plots_axes import spread
from a2a3sim.experiments.plots_data import entries_of, facets, select
from a2a3sim.experiments.sweep_file import build_sweep
from a2a3sim.experiments.sweep_output import read_rows
from a2a3sim.experiments.sweep_plan import Plan
from a2a3sim.experiments.sweep_run import run_sweep


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Three sweeps: over ranks and size, over a machine's parameters, and over seeds."""
    folder = tmp_path_factory.mktemp("sweeps")
    common = {"platform": "ideal", "timing_only": True, "check": False}
    axes = {
        "grid": {"algorithms": "all", "ranks": "2,4,16", "size": "1KiB:256KiB:x16"},
        "fabric": {"set": {"link.bandwidth": "5GB/s:40GB/s:x2", "link.latency": "1us:4us:x2"}, "ranks": "4"},
        "seeds": {"ranks": "2,4", "size": "1KiB,4KiB", "seeds": "3", "skew": "5us"},
    }
    paths = {}
    for name, own in axes.items():
        paths[name] = folder / f"{name}.csv"
        run_sweep(Plan.of(build_sweep(common | own)), paths[name])
    return paths


def names(paths):
    return sorted(path.name for path in paths)


def test_the_axes_of_a_sweep_decide_what_is_drawn(swept, tmp_path):
    drawn = {name: names(draw_sweep(read_rows(path), tmp_path, name)) for name, path in swept.items()}
    assert drawn == {
        "grid": ["grid_bytes.png", "grid_crossover.png", "grid_scaling.png", "grid_time.png"],
        "fabric": ["fabric_heatmap.png"],
        "seeds": ["seeds_bytes.png", "seeds_crossover.png", "seeds_scaling.png", "seeds_time.png"],
    }


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_equal_data_give_equal_bytes(swept, tmp_path, suffix):
    kinds = {"grid": ["crossover"], "seeds": ["time"], "fabric": ["heatmap"]}
    for name, own in kinds.items():
        rows = read_rows(swept[name])
        for first in draw_sweep(rows, tmp_path, "a", own, suffix):
            second = first.with_name("b" + first.name[1:])
            draw_sweep(rows, tmp_path, "b", own, suffix)
            assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(("name", "kind"), [
    ("grid", "time"), ("grid", "crossover"), ("grid", "scaling"), ("grid", "bytes"), ("seeds", "time"),
    ("fabric", "heatmap"),
])  # fmt: skip
def test_labels_do_not_collide_and_lie_in_the_picture(swept, tmp_path, monkeypatch, name, kind):
    figures = []
    real = plots_axes.drawing

    @contextmanager
    def watched(*size):
        with real(*size) as figure:
            figures.append(figure)
            yield figure
            figure.canvas.draw()
            figure.boxes = _boxes(figure)

    monkeypatch.setattr(plots_axes, "drawing", watched)
    draw_sweep(read_rows(swept[name]), tmp_path, name, [kind])
    for figure in figures:
        whole = figure.bbox
        for text, box in figure.boxes:
            assert whole.x0 - 1 <= box.x0 and box.x1 <= whole.x1 + 1, f"{text!r} leaves the picture"
            assert whole.y0 - 1 <= box.y0 and box.y1 <= whole.y1 + 1, f"{text!r} leaves the picture"
        for k, (text, box) in enumerate(figure.boxes):
            for other, its in figure.boxes[k + 1 :]:
                assert not (box.shrunk(0.96, 0.9).overlaps(its)), f"{text!r} lies on {other!r}"


def _boxes(figure):
    """Every text that is seen, with its place in pixels."""
    renderer = figure.canvas.get_renderer()
    found = []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            for tick in axis._update_ticks():  # those within the view
                for label in (tick.label1, tick.label2):
                    if label.get_visible() and label.get_text():
                        found.append((label.get_text(), label.get_window_extent(renderer)))
            if axis.label.get_text():
                found.append((axis.label.get_text(), axis.label.get_window_extent(renderer)))
    others = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    others += [text for axes in figure.axes for text in (*axes.texts, axes.title, axes._left_title)]
    found += [(text.get_text(), text.get_window_extent(renderer)) for text in others if text.get_text()]
    return found


def test_seeds_fold_into_median_and_range(swept):
    rows = read_rows(swept["seeds"])
    entries = entries_of(rows)
    assert len(entries) == len(rows) // 3
    for entry in entries:
        same = [
            r for r in rows if all(r[k] == entry.row[k] for k in ("algorithm", "ranks", "bytes_per_rank"))
        ]
        times = sorted(row["kernel_ps"] for row in same)
        assert (entry.low, entry.mid, entry.high) == tuple(times)
        assert entry.row["kernel_ps"] == times[1]


def test_rows_are_chosen_by_column(swept):
    rows = read_rows(swept["grid"])
    chosen = select(rows, {"ranks": "2,4", "algorithm": "mesh", "bytes_per_rank": "1KiB"})
    assert [(r["ranks"], r["algorithm"], r["bytes_per_rank"]) for r in chosen] == [
        (2, "mesh", 1024),
        (4, "mesh", 1024),
    ]
    fabric = read_rows(swept["fabric"])
    assert {r["overrides.link.latency"] for r in select(fabric, {"link.latency": "2us"})} == {"2us"}


def test_what_else_varies_gets_a_picture_each(swept):
    rows = read_rows(swept["grid"])
    parts = facets(rows, ("bytes_per_rank",))
    assert [at for at, _ in parts] == [{"ranks": 2}, {"ranks": 4}, {"ranks": 16}]
    with pytest.raises(
        ConfigError, match=r"cannot draw scaling: 12 combinations of .*link\.bandwidth.*--where"
    ):
        draw_sweep(
            [r | {"ranks": r["ranks"] + k} for k in (0, 1) for r in read_rows(swept["fabric"])],
            Path(),
            "x",
            ["scaling"],
        )


def test_values_are_spread_with_both_ends():
    assert spread([1, 2, 3], 4) == [1, 2, 3]
    assert spread(list(range(10)), 4) == [0, 3, 6, 9]


def test_the_command_prints_the_paths(swept, tmp_path, capsys):
    assert (
        main(["plot", str(swept["grid"]), "--kind", "time", "--format", "svg", "--out", str(tmp_path)]) == 0
    )
    assert capsys.readouterr().out == f"{tmp_path / 'grid_time.svg'}\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("nosuch.csv",), "there is no file nosuch.csv"),
        (("{grid}", "--kind", "tiem"), "did you mean 'time'"),
        (("{grid}", "--kind", "heatmap"), "two machine parameters must vary"),
        (("{fabric}", "--kind", "scaling"), "ranks must vary"),
        (("{grid}", "--format", "pdf"), "--format must be png or svg"),
        (("{grid}", "--where", "rank=2"), "did you mean 'ranks'"),
        (("{grid}", "--where", "algorithm=mehs"), "did you mean 'mesh'"),
        (("{grid}", "--where", "ranks=3"), "must be one of 2, 4, 16, got '3'"),
        (("{grid}", "--where", "bytes_per_rank=3KiB"), "must be one of 1KiB, 16KiB, 256KiB"),
        (("{grid}", "--where", "ranks=2", "--where", "bytes_per_rank=1KiB"), "nothing to draw"),
        (("{grid}", "--out", "/dev/null/x"), "cannot create the directory"),
        (("{other}",), "must be the output of a sweep, it has no column 'algorithm'"),
        (("{empty}",), "has no rows"),
        (("{binary}",), "must be the CSV file of a sweep"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_2(swept, tmp_path, capsys, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    files = {
        "other": b"a,b\n1,2\n",
        "empty": b"algorithm,ranks,bytes_per_rank,kernel_ps\n",
        "binary": b"\xff\xfe\x00",
    }
    known = {name: str(path) for name, path in swept.items()}
    for name, data in files.items():
        known[name] = str(tmp_path / f"{name}.csv")
        Path(known[name]).write_bytes(data)
    status = main(["plot", *(arg.format(**known) for arg in args)])
    out, err = capsys.readouterr()
    assert status == 2 and out == "" and said in err and len(err.splitlines()) == 1
    assert not list(tmp_path.glob("*.png"))


def test_an_unfinished_sweep_is_named_as_such(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv.journal").write_text("{}\n")
    assert main(["plot", "a.csv"]) == 2
    assert "its sweep is unfinished" in capsys.readouterr().err
