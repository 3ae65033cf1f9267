"""The line above every output: on which machine and under which premises its numbers were obtained."""

from __future__ import annotations

from a2a3sim.result import RunResult
from a2a3sim.units import format_time

__all__ = ["header"]


def header(result: RunResult, seeds: int = 1) -> str:
    """Platform and hash, ranks, seed, skew, fences and version, and whatever was overridden.

    Args:
        result: any run of those the output is about.
        seeds: over how many seeds the output reports, starting with the run's own.
    """
    cores = f"{result.cores} core{'s' if result.cores != 1 else ''}"
    parts = [
        f"a2a3sim {result.version}",
        f"platform {result.platform} ({result.platform_hash[:12]})",
        f"{result.ranks} rank{'s' if result.ranks != 1 else ''} × {cores}",
        f"seed {result.seed}" if seeds == 1 else f"{seeds} seeds",
        f"skew {format_time(result.skew_ps)}",
        f"fences {result.fences}",
    ]
    if result.timing_only:
        parts.append("timing only")
    parts += [f"{key}={value}" for key, value in result.overrides.items()]
    return " · ".join(parts)
