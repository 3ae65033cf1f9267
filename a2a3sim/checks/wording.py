"""How reports count and enumerate."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["listed", "plural", "ranks_text", "short_place"]

_SINGLES = 6  # ranks listed one by one


def plural(count: int, noun: str) -> str:
    """``1 core``, ``3 cores``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(items: Sequence[object]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    texts = [str(i) for i in items]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def ranks_text(ranks: Sequence[int]) -> str:
    """``rank 2``, ``ranks 0 and 3``, ``ranks 0..7``, ``ranks 0..2 and 5``."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts = []
    for run in runs:
        parts += [f"{run[0]}..{run[-1]}"] if len(run) > 2 else [str(r) for r in run]
    if len(parts) > _SINGLES:
        return f"{len(ranks)} ranks from {ranks[0]} to {ranks[-1]}"
    return f"ranks {listed(parts)}"


def short_place(file: str, line: int) -> str:
    """``kernel.py:12``: for a sentence; the sites of a finding have the whole path."""
    return f"{file.rpartition('/')[2]}:{line}"
