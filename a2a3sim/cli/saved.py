"""Saved traces on the command line: written by the commands that run something, read by those that look at a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a3sim.result import RunResult
    from a2a3sim.trace.record import Trace

__all__ = ["Saver", "load_runs"]


class Saver:
    """Saves runs as they come: the first to FILE, the k-th to FILE with ``-k`` before its suffix.

    Args:
        path: FILE, or None to save nothing.

    Raises:
        ConfigError: FILE cannot be written.
    """

    def __init__(self, path: str | None) -> None:
        from a2a3sim.cli.output import check_writable

        self._path = None if path is None else check_writable(path)
        self._count = 0

    def save(self, trace: Trace, result: RunResult) -> None:
        """One more run."""
        from a2a3sim.cli.output import note

        if self._path is None:
            return
        self._count += 1
        path = self._path
        if self._count > 1:
            path = path.with_name(f"{path.stem}-{self._count}{path.suffix}")
        note(f"wrote {trace.save(path, result)}")


def load_runs(paths: list[str]) -> list[tuple[str, Trace, RunResult]]:
    """(name, trace, result) of saved traces, named by algorithm or program, and by their files where these are equal.

    Raises:
        ConfigError: a file cannot be read or is no saved trace.
    """
    from a2a3sim.trace.record import Trace

    runs = [(Path(path).stem, *Trace.load(path)) for path in paths]
    names = [result.algorithm or result.program for _, _, result in runs]
    alike = len(set(names)) < len(names)
    return [
        (f"{name} ({stem})" if alike else name, trace, result)
        for name, (stem, trace, result) in zip(names, runs, strict=True)
    ]
