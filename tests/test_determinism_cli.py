"""The same command gives the same bytes: in any process, under any hash seed, with or without the bytes moved."""

import json
import os
import subprocess
import sys

import pytest

COMMAND = "compare", "-d", "0-3", "--size", "64KiB", "--seed", "3", "--json", "-"


def report(tmp_path, *args, hash_seed="0"):
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from a2a3sim.cli import main; main()",
            *COMMAND,
            *args,
            "--out",
            str(tmp_path),
        ],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    for run in runs:
        del run["cost"]["wall_s"], run["cost"]["operations_per_s"]
    return runs


@pytest.mark.parametrize("platform", ["a2", "a3", "ideal-switch"])
def test_hash_seeds_change_nothing(tmp_path, platform):
    first = report(tmp_path, "--platform", platform, hash_seed="1")
    assert first == report(tmp_path, "--platform", platform, hash_seed="4242")


def test_a_timing_only_run_has_the_same_times_bytes_and_path(tmp_path):
    for full, timed in zip(report(tmp_path), report(tmp_path, "--timing-only"), strict=True):
        assert timed.pop("numerics") is None
        assert full.pop("numerics")["ok"]
        assert (full.pop("timing_only"), timed.pop("timing_only")) == (False, True)
        for cost in ("cost",):
            full.pop(cost), timed.pop(cost)
        assert full == timed
