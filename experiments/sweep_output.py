"""The table that a sweep leaves: written as CSV or Parquet, and read back with its types."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from a2a3sim import ConfigError
from a2a3sim.experiments.sweep_journal import journal_path
from a2a3sim.experiments.sweep_rows import Column, columns
from a2a3sim.files import replacing

__all__ = ["check_output", "read_rows", "write_rows"]

_SUFFIXES = (".csv", ".parquet")
_BATCH = 10_000  # rows written to Parquet at once


def check_output(path: str | Path) -> Path:
    """Refuse an output that could not be written at the end.

    Raises:
        ConfigError: another suffix, no such directory, or Parquet without its extra.
    """
    path = Path(path)
    if path.suffix not in _SUFFIXES:
        raise ConfigError(f"-o must be a .csv or .parquet file, got {str(path)!r}")
    if path.suffix == ".parquet":
        _arrow()
    return path


def write_rows(output: Path, table: list[Column], rows: Iterable[list]) -> None:
    """Write a table in one step, as CSV or Parquet by the suffix."""
    with replacing(output) as scratch:
        if output.suffix == ".csv":
            _write_csv(scratch, table, rows)
        else:
            _write_parquet(scratch, table, rows)


def _write_csv(path: Path, table: list[Column], rows: Iterable[list]) -> None:
    def text(value: Any) -> Any:
        return str(value).lower() if isinstance(value, bool) else value

    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([column.name for column in table])
        writer.writerows([text(value) for value in values] for values in rows)


def _arrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ConfigError("Parquet needs the extra: pip install 'a2a3sim[parquet]'") from None
    return pyarrow


def _write_parquet(path: Path, table: list[Column], rows: Iterable[list]) -> None:
    arrow = _arrow()
    kinds = {int: arrow.int64(), float: arrow.float64(), str: arrow.string(), bool: arrow.bool_()}
    schema = arrow.schema([(column.name, kinds[column.kind]) for column in table])
    with arrow.parquet.ParquetWriter(path, schema) as writer:
        rows = iter(rows)
        while batch := list(islice(rows, _BATCH)):
            values = [
                [None if value is None else column.kind(value) for value in cells]
                for column, cells in zip(table, zip(*batch, strict=True), strict=True)
            ]
            arrays = [arrow.array(cells, kinds[c.kind]) for c, cells in zip(table, values, strict=True)]
            writer.write_table(arrow.table(arrays, schema=schema))


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a finished sweep, values by column with their own types; None where there is none.

    Raises:
        ConfigError: no such file, not a sweep's, or no rows in it.
    """
    path = Path(path)
    if not path.is_file():
        more = " (its sweep is unfinished: repeat the command)" if journal_path(path).is_file() else ""
        raise ConfigError(f"there is no file {path}{more}")
    rows = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    if not rows:
        raise ConfigError(f"{path} has no rows")
    missing = [name for name in ("algorithm", "ranks", "bytes_per_rank", "kernel_ps") if name not in rows[0]]
    if missing:
        raise ConfigError(f"{path} must be the output of a sweep, it has no column {missing[0]!r}")
    return rows


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    try:
        return _arrow().parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} must be a Parquet file: {str(error).splitlines()[0]}") from None


def _read_csv(path: Path) -> list[dict[str, Any]]:
    texts = {column.name: column.kind for column in columns({})}
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return [
                {name: _value(text, texts.get(name)) for name, text in row.items()}
                for row in csv.DictReader(file)
            ]
    except (OSError, ValueError, AttributeError, TypeError, csv.Error) as error:
        raise ConfigError(f"{path} must be the CSV file of a sweep: {error}") from None


def _value(text: str, kind: type | None) -> Any:
    if text == "":
        return None
    if kind is bool:
        return text == "true"
    return text if kind is None else kind(text)
