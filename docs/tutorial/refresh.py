"""Run the commands that the tutorial's pages show, and put what they print below them.

    python docs/tutorial/refresh.py           update the pages
    python docs/tutorial/refresh.py --check   say which pages would change

In a page, a block marked ``console`` holds commands, each a line that starts with ``$ ``; all else in it is
their output, as a terminal would show it. Commands run in the project's root and leave nothing behind.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from a2a3sim.cli import main

__all__ = ["outputs", "refreshed"]

PAGES = Path(__file__).parent
ROOT = PAGES.parent.parent
BLOCK = re.compile(r"```console\n(.*?)```", re.S)


def outputs(command: str) -> str:
    """What an ``a2a3sim`` command prints, stdout and stderr as they come."""
    program, *argv = shlex.split(command)
    if program != "a2a3sim":
        raise ValueError(f"a page's command must start with a2a3sim, got {command!r}")
    printed = io.StringIO()
    before, folder = os.environ.get("PYPTO_PROG_BUILD_DIR"), Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PYPTO_PROG_BUILD_DIR"] = scratch
        # Pictures go where the command is started; scripts are named from the root.
        os.chdir(scratch if argv[0] == "compare" else ROOT)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                main(argv)
        finally:
            os.chdir(folder)
            if before is None:
                del os.environ["PYPTO_PROG_BUILD_DIR"]
            else:
                os.environ["PYPTO_PROG_BUILD_DIR"] = before
    return "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())


def refreshed(page: str) -> str:
    """A page's text with new output in its console blocks."""

    def block(match: re.Match) -> str:
        commands = [line for line in match.group(1).splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"{c}\n{outputs(c[2:])}" for c in commands) + "```"

    return BLOCK.sub(block, page)


def refresh_all(check: bool) -> int:
    """Update the pages, or only name those that differ; 1 if some do."""
    stale = 0
    for path in sorted(PAGES.glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        new = refreshed(text)
        if new != text:
            stale += 1
            print(path.name)
            if not check:
                path.write_text(new, encoding="utf-8")
    return int(check and stale > 0)


if __name__ == "__main__":
    raise SystemExit(refresh_all("--check" in sys.argv[1:]))
