"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing", "write_whole"]


@contextmanager
def replacing(path: str | Path):
    """A scratch path beside ``path`` to write to; it takes the name of ``path`` when the block ends well."""
    path = Path(path)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield Path(scratch)
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def write_whole(path: str | Path, data: bytes | str) -> Path:
    """Write a file in one step, text as UTF-8."""
    with replacing(path) as scratch:
        scratch.write_bytes(data.encode() if isinstance(data, str) else data)
    return Path(path)
