"""What the documents claim about times is what their commands print."""

import re
import shlex
from pathlib import Path

from a2a3sim.cli import main
from a2a3sim.experiments.sweep_file import build_sweep
from a2a3sim.experiments.sweep_output import read_rows
from a2a3sim.experiments.sweep_plan import Plan
from a2a3sim.experiments.sweep_run import run_sweep

DOCS = Path(__file__).parents[2] / "docs"


def test_the_performance_table_is_what_its_command_prints(capsys):
    text = (DOCS / "performance.md").read_text()
    command = next(line for line in text.splitlines() if line.startswith("    a2a3sim perf"))
    args = shlex.split(command)[1:]
    args[args.index("-e") + 1] = "256KiB"  # the larger ones take a minute
    assert main(args) == 0
    printed = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("  ") or line.startswith("# a2a3sim")
    ]
    assert len(printed) == 1 + 5
    for line in printed:
        assert line in text.splitlines(), "docs/performance.md is out of date: paste the table again"


def test_the_crossover_is_explained_with_the_numbers_of_its_sweep(tmp_path):
    text = (DOCS / "performance.md").read_text()
    cells = {
        row[0].strip(): row[1:]
        for row in (line.split("|")[1:-1] for line in text.splitlines() if "|" in line)
        if len(row) == 5
    }
    axes = {"ranks": "8", "size": "1KiB,32KiB", "timing_only": True, "check": False}
    run_sweep(Plan.of(build_sweep(axes)), tmp_path / "c.csv")
    rows = {(row["algorithm"], row["bytes_per_rank"]): row for row in read_rows(tmp_path / "c.csv")}
    columns = [rows[name, size << 10] for name in ("mesh", "two_phase") for size in (1, 32)]
    for what, title in {
        "latency": "latency", "issue": "issue", "launch": "launch (skew)", "link_bandwidth": "link bandwidth",
    }.items():  # fmt: skip
        spent = [row[f"critical_path.{what}_percent"] * row["kernel_ps"] / 1e8 for row in columns]
        assert [f"{value:.2f}" for value in spent] == [cell.strip() for cell in cells[title]], title
    times = [f"{row['kernel_ps'] / 1e6:.2f}" for row in columns]
    assert times == [cell.strip(" *") for cell in cells["**time**"]]
    assert times[1] < times[3] and re.search(r"about 33 KiB", text)


def test_every_command_in_the_documents_has_its_options():
    for name in ("performance.md", "sweeps.md"):
        for line in (DOCS / name).read_text().splitlines():
            if line.startswith("    a2a3sim") and "…" not in line:
                for part in line.strip().split(" && "):
                    command = shlex.split(part)[1:]
                    assert main([command[0], "--help"]) == 0
