"""The page on diagnosis shows what its commands print."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from running import LADDER

from a2a3sim.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "diagnosis.md"
NUMBER = re.compile(r"-?\d[\d.]* ?(?:(?:ps|ns|us|ms|s)\b|%|x)?")


def fixed(line: str) -> str:
    """A line without its numbers, which follow from the platform's parameters."""
    return re.sub(r"\s+", " ", NUMBER.sub("#", line)).strip()


def test_the_page_shows_what_its_commands_print(tmp_path, monkeypatch):
    text = PAGE.read_text(encoding="utf-8")
    for path in LADDER.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in re.findall(r"^    (sed .*)$", text, re.M):
        subprocess.run(command, shell=True, check=True)
    blocks = re.findall(r"```console\n\$ a2a3sim (.*?)\n(.*?)```", text, re.S)
    assert len(blocks) == 4
    for command, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main(shlex.split(command))
        # Lines may break elsewhere when numbers get longer.
        whole = " ".join(fixed(line) for line in printed.getvalue().splitlines())
        for passage in shown.split("…\n"):
            assert " ".join(fixed(line) for line in passage.splitlines()) in whole, (command, passage)


def test_links_lead_somewhere_or_to_a_page_that_is_being_written():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / target).exists() or target == "findings.md"
