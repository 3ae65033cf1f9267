"""The file of a saved trace: one line in clear, then a compressed header and columns of whole numbers.

The line states schema, bytes and SHA-256 of what follows, so that a cut or changed file is told before anything
is read from it. Nothing in a file is ever run.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from a2a3sim.errors import ConfigError
from a2a3sim.files import write_whole
from a2a3sim.result import RunResult

__all__ = ["TRACE_SCHEMA", "read", "read_result", "reading", "result_of", "saved", "write"]

TRACE_SCHEMA = "a2a3sim.trace/1"

_NAME = b"a2a3sim.trace/"
_LINE = re.compile(rb"a2a3sim\.trace/1 (\d+) ([0-9a-f]{64})\n")
_TYPES = ("<i1", "<i2", "<i4", "<i8")
_LENGTH = 8  # bytes that give the length of the header


def saved(path: str | Path) -> bool:
    """Whether a file is a saved trace, of whatever version, by its first bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_NAME)) == _NAME
    except OSError:
        return False


def write(path: str | Path, header: Mapping[str, Any], columns: Mapping[str, Sequence[int]]) -> Path:
    """Write what JSON can hold, and columns of numbers that fit int64, whole or not at all."""
    arrays = {name: _narrow(column) for name, column in columns.items()}
    table = [[name, array.dtype.str, len(array)] for name, array in arrays.items()]
    head = json.dumps({"columns": table, **header}, separators=(",", ":")).encode()
    parts = [len(head).to_bytes(_LENGTH, "little"), head, *(array.tobytes() for array in arrays.values())]
    body = zlib.compress(b"".join(parts), 1)
    line = f"{TRACE_SCHEMA} {len(body)} {hashlib.sha256(body).hexdigest()}\n"
    return write_whole(path, line.encode() + body)


def _narrow(column: Sequence[int]) -> np.ndarray[Any, Any]:
    array = np.array(column, "<i8")
    low, high = (int(array.min()), int(array.max())) if len(array) else (0, 0)
    kind = next(t for t in _TYPES if np.iinfo(t).min <= low and high <= np.iinfo(t).max)
    return array.astype(kind)


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """The header and the columns of a file.

    Raises:
        ConfigError: the file cannot be read, is no saved trace, of another version, cut or changed.
    """
    header, body = _opened(path)
    columns: dict[str, list[int]] = {}
    with reading(path):
        at = 0
        for name, kind, count in header["columns"]:
            dtype = np.dtype(_TYPES[_TYPES.index(kind.replace("|", "<"))])
            columns[name] = np.frombuffer(body, dtype, count, at).tolist()
            at += count * dtype.itemsize
    return header, columns


def read_result(path: str | Path) -> RunResult:
    """The result of the run that a file holds; errors as for `read`."""
    header, _ = _opened(path)
    with reading(path):
        return result_of(header)


def result_of(header: Mapping[str, Any]) -> RunResult:
    """The result in a header, with its verdict."""
    return RunResult.model_validate({**header["result"], "verdict": header["verdict"]})


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn what goes wrong with contents that make no sense into a ConfigError that names the file."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, zlib.error) as error:
        raise ConfigError(
            f"{path} must hold a trace as --save-trace writes it: {type(error).__name__}: {error}"
        ) from None


def _opened(path: str | Path) -> tuple[dict[str, Any], bytes]:
    """The header of a file, and the bytes of its columns."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"a saved trace must be readable, got {str(path)!r}: {error.strerror}") from None
    if not data.startswith(_NAME):
        raise ConfigError(
            f"{path} is no saved trace: one begins with {TRACE_SCHEMA}, as --save-trace writes it"
        )
    schema = data[:64].partition(b" ")[0].decode("ascii", "replace")
    if b" " in data[:64] and schema != TRACE_SCHEMA:
        raise ConfigError(
            f"{path} must be a trace of schema {TRACE_SCHEMA}, got {schema}: save the run again"
        )
    line = _LINE.match(data)
    if line is None:
        raise ConfigError(f"{path} is cut within its first line: save the run again")
    body = data[line.end() :]
    length = int(line[1])
    if len(body) != length:
        what = "is cut" if len(body) < length else "goes on too long"
        raise ConfigError(
            f"{path} {what}: {length} B must follow its first line, got {len(body)} B: save the run again"
        )
    if hashlib.sha256(body).hexdigest() != line[2].decode():
        raise ConfigError(
            f"{path} is damaged: its contents do not have the SHA-256 that its first line states"
        )
    with reading(path):
        plain = zlib.decompress(body)
        end = _LENGTH + int.from_bytes(plain[:_LENGTH], "little")
        header = json.loads(plain[_LENGTH:end])
        return dict(header), plain[end:]
