"""Python's cycle collector, paused while a run or its checks make many records: none is garbage before the end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Collect no cycles inside; looking for some in a growing trace costs a third of a run, and more than its checks."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
