"""A sweep: every combination of algorithm, machine, ranks, size and so on, as one table.

What is varied is laid out as axes in a fixed order, so a point's row number depends on the sweep alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from a2a3sim import RunConfig, load_platform
from a2a3sim.experiments.sweep_axes import WORKLOAD, setting_axes
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
        varied: values of fields of ``config``, in the order of `setting_axes`.
        config: what does not vary.
    """

    collectives: tuple[str, ...] = ("allreduce",)
    algorithms: tuple[str, ...] = ("mesh", "two_phase")
    platforms: tuple[str, ...] = ("a2",)
    overrides: tuple[tuple[str, tuple[str, ...]], ...] = ()
    dtypes: tuple[str, ...] = ("fp32",)
    ranks: tuple[int, ...] = (8,)
    sizes: tuple[int, ...] = (1 << 20,)
    cores: tuple[int | None, ...] = (None,)
    varied: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    config: RunConfig = field(default_factory=RunConfig)

    @property
    def keys(self) -> tuple[str, ...]:
        """Platform parameters that are set, in the order of their columns."""
        return tuple(key for key, _ in self.overrides)

    @property
    def stated(self) -> dict[str, str | None]:
        """The columns of what results state of parameters and varied settings, with the default of each."""
        own = {s.name: s.default_text for s in setting_axes() if s.text is not None and s.name in self.varied}
        return dict.fromkeys(self.keys) | own

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
            **{axis.key: list(getattr(self, axis.field)) for axis in WORKLOAD},
            "platform": list(self.platforms),
            "machine": machines,
            "set": [[key, list(values)] for key, values in self.overrides],
            **{s.key: list(self.varied.get(s.name, (s.default,))) for s in setting_axes()},
            **{s.key: _plain(getattr(config, s.name)) for s in config.settings() if s.flag and not s.axis},
        }


def _plain(value: Any) -> Any:
    """A setting as a JSON value."""
    if isinstance(value, Mapping):
        return {str(key): str(value[key]) for key in sorted(value)}
    return list(value) if isinstance(value, tuple) else value


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
