"""A setting is one line: everything else follows from it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from a2a3sim import RunConfig

EXAMPLE = Path(__file__).parent.parent / "examples" / "distributed" / "10_allreduce_ring.py"
BEFORE = "    seed: int = setting("
LINE = (
    '    wobble: Any = setting("1x", "--wobble", "Wobble (2x).", axis="Wobbles.", check=one_of(("1x", "2x", "4x")),'
    ' resolve=lambda value, *_: factor("wobble", value), text=factor_text)\n'
)

# A process in which a2a3sim/config.py has that line.
CHILD = f"""
import csv, io, json, sys
from contextlib import redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path

read = SourceFileLoader.get_data
def with_a_line(self, path):
    data = read(self, path)
    if Path(path).parts[-2:] == ("a2a3sim", "config.py"):
        assert data.count({BEFORE.encode()!r}) == 1
        data = data.replace({BEFORE.encode()!r}, {LINE.encode()!r} + {BEFORE.encode()!r})
    return data
SourceFileLoader.get_data = with_a_line

from a2a3sim import ConfigError, RunConfig
from a2a3sim.cli import main
from a2a3sim.run.settings import resolve

found = {{}}
try:
    RunConfig(wobble="3x")
except ConfigError as error:
    found["checked"] = str(error)
settings = resolve(RunConfig(wobble="2x"), 2)
found["model"] = str(settings.values["wobble"])
found["stated"] = [settings.stated(), resolve(RunConfig(), 2).stated()]
for command in ("run", "explain", "stress", "timeline", "compare", "perf", "sweep"):
    with redirect_stdout(io.StringIO()) as out:
        main([command, "--help"])
    found[command] = " ".join(out.getvalue().split())
main(["run", "--wobble", "2x", "--json", "run.json", sys.argv[1], "-d", "0,1"])
found["forced"] = [run["overrides"] for run in json.loads(Path("run.json").read_text())["runs"]]
Path("s.toml").write_text('ranks = 2\\nsize = "1KiB"\\nalgorithms = "mesh"\\nplatform = "ideal"\\nwobble = ["1x", "4x"]\\n')
with redirect_stdout(io.StringIO()):
    main(["sweep", "s.toml", "-o", "file.csv", "-j", "1"])
    main(["sweep", "s.toml", "-o", "flag.csv", "-j", "1", "--wobble", "1x:4x:x2"])
for name in ("file", "flag"):
    found[name] = [row["overrides.wobble"] for row in csv.DictReader(open(name + ".csv"))]
found["refused"] = main(["sweep", "s.toml", "--wobble", "5x"])
Path("found.json").write_text(json.dumps(found))
"""


def test_a_setting_is_one_line(tmp_path):
    env = os.environ | {"PYTHONPYCACHEPREFIX": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(EXAMPLE)], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["checked"] == "wobble must be one of 1x, 2x, 4x, got '3x'"
    assert found["model"] == "2" and found["stated"] == [{"wobble": "2x"}, {}]
    for command in ("run", "explain", "stress", "timeline", "compare", "perf"):
        assert "--wobble <str> Wobble (2x)." in found[command]
    assert "--wobble <str> Wobbles." in found["sweep"]
    assert found["forced"] and all(said == {"wobble": "2x"} for said in found["forced"])
    assert found["file"] == ["1x", "4x"] and found["flag"] == ["1x", "2x", "4x"]
    assert found["refused"] == 2 and "wobble must be one of 1x, 2x, 4x, got '5x'" in done.stderr


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"machine": "a2", "seed": 3}, ["--platform", "a2", "--seed", "3"]),
        ({"slow": {2: "1.5x"}, "place": [1, 0]}, ["--slow", "2=1.5x", "--place", "1,0"]),
        ({"poison": True, "checks": False}, ["--poison", "--no-check"]),
        ({"delay": {"2@p.py:4#0": "1us"}}, ["--delay", "2@p.py:4#0=1us"]),
    ],
)
def test_fields_as_words_of_a_command_line(fields, words):
    assert RunConfig.flags(fields) == words
