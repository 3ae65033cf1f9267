"""``flows``, ``platforms``, ``diff`` and the ways in."""

import csv
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from running import command

from a2a3sim.cli import main

DATA = Path(__file__).parent.parent / "data"


def test_flows_are_within_10_ps_of_the_exact_times(capsys):
    path = DATA / "simgrid_irregular.csv"
    status, out, _ = command(capsys, "flows", str(path), "--json", "-")
    assert status == 0
    rows = json.loads(out)["rows"]
    exact = list(csv.DictReader(path.open()))
    assert [(r["case"], r["flow"]) for r in rows] == [(e["case"], e["flow"]) for e in exact]
    for row, e in zip(rows, exact, strict=True):
        assert (
            abs(row["finish_ps"] - Fraction(int(e["finish_exact_num"]), int(e["finish_exact_den"])) * 10**12)
            <= 10
        )


def test_flows_prints_one_line_a_flow(capsys):
    status, out, _ = command(capsys, "flows", str(DATA / "simgrid_irregular.csv"))
    assert status == 0
    assert len(out.splitlines()) == 117


def test_platforms_lists_and_explains(capsys):
    status, out, _ = command(capsys, "platforms")
    assert status == 0
    for name in ("a2", "a3", "ideal", "ideal-switch"):
        assert name in out
    status, out, _ = command(capsys, "platforms", "a2", "--json", "-")
    assert status == 0
    assert "link.bandwidth" in out
    assert "assumed" in out


def test_an_unknown_platform_is_a_usage_error(capsys):
    status, _, err = command(capsys, "platforms", "a4")
    assert status == 2
    assert "a4" in err


def test_diff_says_what_differs(capsys, tmp_path):
    for name, size in (("a", "64KiB"), ("b", "128KiB")):
        main(["compare", "--size", size, "--algorithms", "mesh", "--timing-only", "--out", str(tmp_path),
              "--json", str(tmp_path / f"{name}.json")])  # fmt: skip
    a, b = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    capsys.readouterr()
    status, out, _ = command(capsys, "diff", a, b)
    assert status == 1
    assert "kernel_ps" in out or "kernel" in out
    status, out, _ = command(capsys, "diff", a, a)
    assert status == 0


def test_diff_of_no_report_is_a_usage_error(capsys, tmp_path):
    (tmp_path / "x.json").write_text("{}")
    status, _, err = command(capsys, "diff", str(tmp_path / "x.json"), str(tmp_path / "x.json"))
    assert status == 2
    assert len(err.strip().splitlines()) == 1


def test_help_imports_no_simulator():
    code = "import sys; from a2a3sim.cli import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    modules = set(done.stdout.splitlines()[-1].split())
    heavy = {"numpy", "matplotlib", "pydantic", "rich", "simpy", "greenlet", "a2a3sim.engine"}
    assert not modules & heavy
    assert len(modules) < 300


def test_version(capsys):
    status, out, _ = command(capsys, "--version")
    assert status == 0
    assert out.startswith("a2a3sim ")


@pytest.mark.parametrize("args", [["nonsense"], ["flows"], ["flows", "/nowhere.csv"], ["diff", "a"]])
def test_usage_errors_are_one_line(capsys, args):
    status, out, err = command(capsys, *args)
    assert status == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
