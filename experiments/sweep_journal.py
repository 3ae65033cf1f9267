"""The journal of a sweep: finished rows in the order in which they came, in a file beside the output.

Its first line says what the sweep is; each other one is a row with its number, appended in one write. So a sweep
that was killed at any moment loses at most the rows in work, a line that was cut short is dropped on return, and
no row is simulated or written twice. When all rows are there the output is made from it, and it is removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from a2a3sim import ConfigError

__all__ = ["Journal", "journal_path"]


def journal_path(output: str | Path) -> Path:
    """Where the journal of an output lies."""
    output = Path(output)
    return output.with_name(output.name + ".journal")


class Journal:
    """An open journal, locked against a second sweep of the same output.

    Args:
        about: what makes the sweep what it is, JSON values by name.
        total: number of rows.

    Raises:
        ConfigError: it belongs to another sweep, or another process works on it.
    """

    def __init__(self, path: Path, about: dict[str, Any], total: int, restart: bool = False) -> None:
        self.path = path
        self.total = total
        self._where: dict[int, tuple[int, int]] = {}  # row -> (offset, length) of its line
        self._new = not path.exists()
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b", buffering=0)
        try:
            self._lock()
            self._size = 0 if restart else self._recover(json.loads(json.dumps(about)))
            self._file.truncate(self._size)
            if not self._size:
                self._write([json.dumps({"sweep": about}, sort_keys=True).encode() + b"\n"])
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind, *_) -> None:
        if kind is not None and self._new and not self._where:
            self.remove()  # nothing was done, so nothing stays behind
        self._file.close()

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, number: int) -> bool:
        return number in self._where

    def add(self, rows: Sequence[tuple[int, list]]) -> None:
        """Append rows, each (number, values); all of them are in the file when this returns."""
        lines, where, at = [], {}, self._size
        for number, values in rows:
            if number in self._where or number in where:
                raise ValueError(f"row {number} is in the journal already")
            line = json.dumps([number, values], separators=(",", ":")).encode() + b"\n"
            where[number] = (at, len(line))
            at += len(line)
            lines.append(line)
        self._write(lines)
        self._where |= where

    def rows(self) -> Iterator[list]:
        """The values of all rows in order."""
        for number in range(self.total):
            offset, length = self._where[number]
            self._file.seek(offset)
            yield json.loads(self._file.read(length))[1]

    def remove(self) -> None:
        """The output is there: the journal has done its work."""
        self.path.unlink()

    def _write(self, lines: list[bytes]) -> None:
        self._file.seek(self._size)
        data = b"".join(lines)
        while data:
            written = self._file.write(data)
            self._size += written
            data = data[written:]

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # not on Windows
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(f"another sweep is writing {self.path}") from None

    def _recover(self, about: dict[str, Any]) -> int:
        """Read what is there; the number of bytes that are good."""
        good = 0
        for line in self._file.read().splitlines(keepends=True):
            entry = _entry(line)
            if entry is None:
                break  # cut short: everything before it is whole
            if good == 0:
                self._check(entry, about)
            elif isinstance(entry, list) and 0 <= entry[0] < self.total:
                self._where[entry[0]] = (good, len(line))
            good += len(line)
        return good

    def _check(self, entry, about: dict[str, Any]) -> None:
        before = entry.get("sweep") if isinstance(entry, dict) else None
        if not isinstance(before, dict):
            raise ConfigError(f"{self.path} must be the journal of a sweep: choose another -o")
        for name in dict.fromkeys([*about, *before]):
            was, now = before.get(name), about.get(name)
            if was != now:
                raise ConfigError(
                    f"{self.path} holds an unfinished sweep with another {name} ({_short(was)}, now {_short(now)}): "
                    f"repeat that one to finish it, discard it with --restart, or choose another -o"
                )


def _entry(line: bytes):
    if not line.endswith(b"\n"):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
