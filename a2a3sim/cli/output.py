"""Where a command's words go: results to stdout, everything else to stderr; files written whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["check_writable", "failed", "note", "print_report", "show"]

_SEVERITIES = {"warning": ("error", "warning"), "error": ("error",)}


def show(*renderables) -> None:
    """Print rich renderables to stdout."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 110
    console = Console(width=width, highlight=False)
    for item in renderables:
        console.print(item)


def note(text: str) -> None:
    """One line on stderr."""
    print(text, file=sys.stderr)


def check_writable(path: str | Path, directory: bool = False) -> Path:
    """Find out before a long run whether its output can be written.

    Raises:
        ConfigError: the directory does not exist and cannot be made, or is not writable.
    """
    from a2a3sim.errors import ConfigError

    path = Path(path)
    folder = path if directory else path.parent
    try:
        if directory:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot create the directory {folder}: {error.strerror}") from None
    if not folder.is_dir():
        raise ConfigError(f"cannot write {path}: there is no directory {folder}")
    if not os.access(folder, os.W_OK) or (not directory and path.is_dir()):
        raise ConfigError(
            f"cannot write {path}: {'it is a directory' if path.is_dir() else 'permission denied'}"
        )
    return path


def print_report(target: str, command: str, runs, rows=None) -> None:
    """The JSON report to a file or, for ``-``, to stdout."""
    from a2a3sim.files import write_whole
    from a2a3sim.result import Report

    text = Report(command=command, runs=list(runs), rows=rows).to_json(indent=2)
    if target == "-":
        print(text)
    else:
        write_whole(target, text + "\n")
        note(f"wrote {target}")


def failed(runs, fail_on: str) -> bool:
    """Whether some run has wrong numerics or a finding at or above the severity that nobody accepted.

    Raises:
        ConfigError: an unknown severity.
    """
    from a2a3sim.errors import ConfigError

    if fail_on not in _SEVERITIES:
        raise ConfigError(f"--fail-on must be error or warning, got {fail_on!r}")
    bad = _SEVERITIES[fail_on]
    return any(
        (run.numerics is not None and not run.numerics.ok)
        or any(f.severity in bad and f.suppressed is None for f in run.findings)
        for run in runs
    )
