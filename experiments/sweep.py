"""A sweep: every combination of algorithm, machine, ranks, size and so on, as one table.

What is varied is laid out as axes in a fixed order, so a point's row number depends on the sweep alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from a2a3sim import RunConfig, load_platform
from a2a3sim.kernels import CATALOGUE, find
from a2a3sim.result import simulator_version

__all__ = ["Sweep"]


@dataclass(frozen=True)
class Sweep:
    """The axes, in the order of the rows (the last varies fastest), and what is the same for all points.

    Args:
        algorithms: names; ``all`` stands for every one of the collective.
        overrides: platform parameters and the texts they take, in order.
        ranks, sizes: P, and N in bytes per rank.
        cores: None takes the platform's ``kernel.cores``.
        config: what does not vary: checks, timing_only, slow, place, poison.
    """

    collectives: tuple[str, ...] = ("allreduce",)
    algorithms: tuple[str, ...] = ("mesh", "two_phase")
    platforms: tuple[str, ...] = ("a2",)
    overrides: tuple[tuple[str, tuple[str, ...]], ...] = ()
    dtypes: tuple[str, ...] = ("fp32",)
    ranks: tuple[int, ...] = (8,)
    sizes: tuple[int, ...] = (1 << 20,)
    cores: tuple[int | None, ...] = (None,)
    fences: tuple[str, ...] = ("statement",)
    skews: tuple[str | None, ...] = (None,)
    seeds: tuple[int, ...] = (0,)
    config: RunConfig = field(default_factory=RunConfig)

    @property
    def keys(self) -> tuple[str, ...]:
        """Platform parameters that are set, in the order of their columns."""
        return tuple(key for key, _ in self.overrides)

    def kernels(self) -> Iterator[tuple[str, str]]:
        """Pairs of collective and algorithm.

        Raises:
            ConfigError: an unknown name, or an algorithm that none of the collectives has.
        """
        found = []
        for collective in self.collectives:
            if collective not in CATALOGUE:
                find(collective, "")  # says which there are
            known = CATALOGUE[collective]
            found += [
                (collective, name) for name in known if self.algorithms == ("all",) or name in self.algorithms
            ]
        for name in self.algorithms:
            if name != "all" and not any(algorithm == name for _, algorithm in found):
                find(self.collectives[0], name)
        if self.algorithms != ("all",):  # as they were named
            found.sort(key=lambda pair: (self.collectives.index(pair[0]), self.algorithms.index(pair[1])))
        return iter(found)

    def about(self) -> dict[str, Any]:
        """What makes it this sweep and no other one: for the journal."""
        config = self.config
        machines = "".join(
            load_platform(name, dict(config.platform_overrides)).hash for name in self.platforms
        )
        return {
            "version": simulator_version(),
            "simulator": _code_digest(),
            "collective": list(self.collectives),
            "algorithms": list(self.algorithms),
            "platform": list(self.platforms),
            "machine": machines,
            "set": [[key, list(values)] for key, values in self.overrides],
            "dtype": list(self.dtypes),
            "ranks": list(self.ranks),
            "size": list(self.sizes),
            "cores": list(self.cores),
            "fences": list(self.fences),
            "skew": list(self.skews),
            "seed": list(self.seeds),
            "check": config.checks,
            "timing_only": config.timing_only,
            "poison": config.poison,
            "place": None if config.place is None else list(config.place),
            "slow": {str(rank): str(factor) for rank, factor in sorted(config.slow.items())},
        }


@lru_cache(maxsize=1)
def _code_digest() -> str:
    """Of every module that rows depend on: those of two versions must not meet in one file."""
    total = sha256()
    for name in ("a2a3sim", "a2a3sim.models", "a2a3sim.kernels", "a2a3sim.experiments"):
        folder = Path(next(iter(import_module(name).__path__)))
        for file in sorted(folder.rglob("*.py")):
            if "cli" not in file.parts:
                total.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return total.hexdigest()[:12]
