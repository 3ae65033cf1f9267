"""What one run is made with: the call's RunConfig, under what the command line or the environment says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from a2a3sim.config import RunConfig
from a2a3sim.models.jitter import Jitter
from a2a3sim.models.platform import Platform, load_platform
from a2a3sim.models.topology import build_topology
from a2a3sim.run.delays import Delay
from a2a3sim.run.fabrics import Fabrics

__all__ = ["Session", "Settings", "current_session", "resolve", "session"]

_ENVIRONMENT = "A2A3SIM_PLATFORM"  # for scripts that are started on their own


_topology = lru_cache(maxsize=8)(build_topology)


_SAME = ("seed", "fences", "launch", "timing_only", "checks", "slow", "poison", "jitter")


@dataclass(frozen=True)
class Settings:
    """A run's settings, resolved: names looked up, units converted.

    Attributes:
        values: every setting by its name in `RunConfig`, as the model computes with it.
    """

    platform: Platform
    overrides: dict[str, str]
    seed: int
    skew_ps: int
    fences: str
    launch: str
    timing_only: bool
    keep: frozenset[str]
    checks: bool
    slow: dict[int, Fraction]
    placement: tuple[int, ...]
    poison: bool
    rtol: float | None
    atol: float | None
    jitter: Fraction
    delays: tuple[Delay, ...]
    values: Mapping[str, Any]
    keep_trace: bool = False
    fabrics: Fabrics = field(default_factory=Fabrics, compare=False, repr=False)

    def topology(self):
        """The platform's links and routes; runs on equal machines share them."""
        return _topology(self.platform, max(self.placement) + 1)

    def jitter_of_links(self) -> Jitter | None:
        """What stretches the links' latencies; None if nothing does."""
        return Jitter(self.seed, self.jitter) if self.jitter != 1 else None

    def stated(self) -> dict[str, str]:
        """What makes this machine or its schedule another than the platform's, for results."""
        said = dict(self.overrides)
        for setting in RunConfig.settings():
            said |= setting.stated(self.values[setting.name])
        return said


@dataclass
class Session:
    """What a command imposes on the runs of a script, and who wants to see them.

    Args:
        forced: RunConfig fields that come before the script's own.
        observers: called with (compiled program, RunResult, Trace) after each run.
        keep_calls: leave each call at its program's ``last_call`` (`a2a3sim.run.rerun.Call`), so that an observer can
            make it again.
        suppressions: which findings are accepted (`a2a3sim.checks.suppressions.Suppressions`); None: those that the
            source says.
        explains: find out why a result differs from its golden, by repetitions.
        fabrics: what its runs on equal machines share.
    """

    forced: Mapping[str, Any] = field(default_factory=dict)
    observers: list[Callable] = field(default_factory=list)
    keep_calls: bool = False
    suppressions: Any = None
    explains: bool = True
    fabrics: Fabrics = field(default_factory=Fabrics, repr=False)


_session: ContextVar[Session | None] = ContextVar("a2a3sim session", default=None)


@contextmanager
def session(value: Session):
    """Make a session current."""
    token = _session.set(value)
    try:
        yield value
    finally:
        _session.reset(token)


def current_session() -> Session | None:
    """The session of the command that is running, if any."""
    return _session.get()


def resolve(config: RunConfig, ranks: int) -> Settings:
    """Settings of a run with ``ranks`` ranks.

    Raises:
        ConfigError: an unknown platform or parameter, a value without unit, more ranks than devices.
    """
    current = _session.get()
    forced = dict(current.forced) if current is not None else {}
    overrides = {**config.platform_overrides, **forced.pop("platform_overrides", {})}
    if forced:
        config = config.with_(**forced)
    platform = load_platform(config.machine or os.environ.get(_ENVIRONMENT) or "a2", overrides)
    values = {s.name: s.resolve(getattr(config, s.name), ranks, platform) for s in config.settings()}
    return Settings(
        platform=platform,
        overrides={k: str(v) for k, v in overrides.items()},
        skew_ps=values["skew"],
        placement=values["place"],
        delays=values["delay"],
        keep=frozenset(values["keep"]),
        rtol=config.rtol,
        atol=config.atol,
        keep_trace=config.keep_trace,
        values=values,
        **{name: values[name] for name in _SAME},
    )
