"""How a number varies over many runs, in two lines of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["histogram", "spread_lines"]

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 40


def histogram(values: Sequence[float], width: int = _WIDTH) -> str:
    """The distribution from the least to the largest value as a line of bars; blank where there are none."""
    low, high = min(values), max(values)
    if low == high:
        return _BARS[-1]
    counts = [0] * width
    for value in values:
        counts[min(int((value - low) / (high - low) * width), width - 1)] += 1
    most = max(counts)
    return "".join(_BARS[-(-count * len(_BARS) // most) - 1] if count else " " for count in counts)


def spread_lines(values: Sequence[int], shown: Callable[[int], str]) -> list[str]:
    """Least, median and largest value, and the histogram between the ends."""
    ordered = sorted(values)
    median = ordered[(len(ordered) - 1) // 2]
    first = f"min {shown(ordered[0])}, median {shown(median)}, max {shown(ordered[-1])}"
    return [first, f"{shown(ordered[0])} |{histogram(ordered)}| {shown(ordered[-1])}"]
