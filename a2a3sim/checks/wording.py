"""How reports count and enumerate."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["listed", "plural", "ranks_text"]


def plural(count: int, noun: str) -> str:
    """``1 core``, ``3 cores``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(items: Sequence) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    texts = [str(i) for i in items]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def ranks_text(ranks: Sequence[int]) -> str:
    """``rank 2``, ``ranks 0 and 3``, ``ranks 0..7``."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]}..{ranks[-1]}"
    return f"ranks {listed(ranks)}"
