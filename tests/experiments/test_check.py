"""``a2a3sim check``: what is called right, exact and within tolerance."""

import dataclasses
import json

import numpy as np
import pytest

from a2a3sim import RunConfig
from a2a3sim.cli import main
from a2a3sim.experiments import check as checking
from a2a3sim.experiments import runner
from a2a3sim.experiments.check import amplitude, check_point, mixed_inputs, plan, tolerance
from a2a3sim.experiments.conventions import element
from a2a3sim.experiments.runner import MOVED, Point
from a2a3sim.kernels import CATALOGUE

IDEAL = RunConfig(machine="ideal", checks=False)


@pytest.mark.parametrize(
    ("dtype", "ranks", "largest"),
    [
        # bf16 holds every whole number up to 256: 64 ranks of ±4 reach it, 256 of ±1, 257 go past it.
        ("bf16", 64, 4), ("bf16", 256, 1), ("bf16", 257, 0),
        ("fp16", 8, 256), ("fp16", 2049, 0),
        ("int8", 17, 7), ("int8", 128, 0),
        ("fp32", 2, 1000),
    ],
)  # fmt: skip
def test_the_largest_inputs_whose_sums_are_exact(dtype, ranks, largest):
    kind = element(dtype)
    assert amplitude(kind, ranks) == largest
    if largest:
        values = np.full(ranks, largest).astype(kind.numpy)
        total = values[0]
        for value in values[1:]:
            total = (total + value).astype(kind.numpy)
        assert int(total) == largest * ranks


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("ranks", [2, 7, 17])
def test_even_elements_have_exact_sums_in_any_order(dtype, ranks):
    kind = element(dtype)
    values = mixed_inputs((1, 40), kind, ranks)[:, 0, 0::2]
    wide = np.float64 if kind.floating else np.int64
    true = values.astype(wide).sum(axis=0)
    for order in (list(range(ranks)), list(reversed(range(ranks)))):
        total = values[order[0]]
        for rank in order[1:]:
            total = (total + values[rank]).astype(kind.numpy)
        assert (total.astype(wide) == true).all()
    assert (mixed_inputs((1, 40), kind, ranks) == mixed_inputs((1, 40), kind, ranks)).all()


def test_the_tolerance_is_the_bound_for_any_order():
    u = 2.0**-24
    assert tolerance(element("fp32"), 2) == u / (1 - u)
    assert tolerance(element("fp16"), 5) == 4 * 2.0**-11 / (1 - 4 * 2.0**-11)
    assert tolerance(element("bf16"), 300) == float("inf")


@pytest.mark.parametrize(("collective", "algorithm"), [(c, a) for c in CATALOGUE for a in CATALOGUE[c]])
@pytest.mark.parametrize("dtype", MOVED)
def test_every_kernel_is_right(collective, algorithm, dtype):
    verdict, _ = check_point(
        Point(algorithm, 4, 203 * 4 * 4, collective=collective, dtype=dtype, config=IDEAL)
    )
    assert verdict.ok and verdict.wrong == 0 and verdict.exact is True
    assert (verdict.error is None) == dtype.startswith("int")


def test_nothing_is_called_exact_past_the_range(monkeypatch):
    monkeypatch.setitem(checking._EXACT, "bf16", 3)
    inside, _ = check_point(Point("mesh", 3, 64, dtype="bf16", config=IDEAL))
    past, _ = check_point(Point("mesh", 4, 64, dtype="bf16", config=IDEAL))
    assert (inside.exact, past.exact) == (True, None)
    assert past.ok


def test_a_wrong_result_is_not_ok(monkeypatch, capsys):
    mesh = runner.find("allreduce", "mesh")
    broken = dataclasses.replace(
        mesh, reference=lambda job, inputs: [x + 1 for x in mesh.reference(job, inputs)]
    )
    monkeypatch.setattr(runner, "find", lambda *_: broken)
    status = main(["check", "allreduce", "--algorithm", "mesh", "--ranks", "2", "--dtypes", "int32"])
    out = capsys.readouterr().out
    assert status == 1
    assert "WRONG: mesh on 2 ranks, int32: 406 elements, exact False" in out
    assert out.splitlines()[-1] == "1 runs: 1 wrong"


def test_the_table_has_a_line_for_each_algorithm_and_type(capsys):
    status = main(
        ["check", "allreduce", "--algorithm", "mesh,ring", "--ranks", "2:4", "--dtypes", "fp32,int8"]
    )
    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[0].split() == ["ranks", "#wrong", "exact", "worst", "error", "allowed"]
    assert [line.split()[:7] for line in lines[1:5]] == [
        [name, dtype, "2..4", "0", "3", "of", "3"] for name in ("mesh", "ring") for dtype in ("fp32", "int8")
    ]
    assert lines[5] == "12 runs: all right"


def test_rows_as_json(capsys):
    args = ["check", "broadcast", "--ranks", "2,3", "--dtypes", "fp16", "--json", "-"]
    assert main(args) == 0
    report = json.loads(capsys.readouterr().out)
    assert [(r["algorithm"], r["ranks"], r["wrong"], r["exact"], r["error"]) for r in report["rows"]] == [
        ("flat", 2, 0, True, 0.0), ("flat", 3, 0, True, 0.0),
        ("binomial", 2, 0, True, 0.0), ("binomial", 3, 0, True, 0.0),
    ]  # fmt: skip
    assert len(report["runs"]) == 4


def test_what_an_algorithm_cannot_do_is_left_out():
    points, left_out = plan("allreduce", ["mesh", "halving_doubling"], [2, 3, 4], ["fp32"], None, None, IDEAL)
    assert [(p.algorithm, p.ranks) for p in points] == [
        ("mesh", 2), ("mesh", 3), ("mesh", 4), ("halving_doubling", 2), ("halving_doubling", 4),
    ]  # fmt: skip
    assert list(left_out.values()) == [1]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("alreduce",), "did you mean 'allreduce'"),
        (("allreduce", "--algorithm", "rnig"), "did you mean 'ring'"),
        (("allreduce", "--dtypes", "fp23"), "did you mean 'fp32'"),
        (("allreduce", "--ranks", "17:2"), "must go up"),
        (("allreduce", "--ranks", "1"), "at least 2"),
        (("allreduce", "--count", "0"), "positive multiple"),
        (("allreduce", "--platform", "a2", "--ranks", "9"), "a3 has 16"),
        (("allreduce", "--algorithm", "halving_doubling", "--ranks", "3"), "nothing to check"),
        (("allreduce", "--trace", "t.json"), "a trace holds at most 32 runs"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(args, said, capsys):
    status = main(["check", *args])
    out, err = capsys.readouterr()
    assert status == 2 and out == "" and said in err and len(err.splitlines()) == 1
