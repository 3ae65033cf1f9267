"""What one run is made with: the call's RunConfig, under what the command line or the environment says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from operator import index
from typing import Any

from a2a3sim.config import RunConfig
from a2a3sim.errors import ConfigError
from a2a3sim.models.jitter import Jitter
from a2a3sim.models.platform import Platform, load_platform
from a2a3sim.models.topology import build_topology
from a2a3sim.run.delays import Delay, parse_delays
from a2a3sim.run.fabrics import Fabrics
from a2a3sim.units import parse_time

__all__ = ["Session", "Settings", "current_session", "resolve", "session"]

_ENVIRONMENT = "A2A3SIM_PLATFORM"  # for scripts that are started on their own


_topology = lru_cache(maxsize=8)(build_topology)


@dataclass(frozen=True)
class Settings:
    """A run's settings, resolved: names looked up, units converted."""

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
    jitter: Fraction = Fraction(1)
    delays: tuple[Delay, ...] = ()
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
        said |= {f"slow.{rank}": f"{_decimal(factor)}x" for rank, factor in self.slow.items()}
        if self.jitter != 1:
            said["jitter"] = f"{_decimal(self.jitter)}x"
        said |= {f"delay.{k}": str(delay) for k, delay in enumerate(self.delays)}
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


def _placement(place, ranks: int, platform: Platform) -> tuple[int, ...]:
    if place is None:
        return tuple(range(ranks))
    try:
        devices = tuple(index(d) for d in place)
    except TypeError:
        raise ConfigError(f"place must name devices by whole numbers, got {list(place)}") from None
    if len(devices) != ranks:
        raise ConfigError(f"place must name one device for each of the {ranks} ranks, got {len(devices)}")
    if len(set(devices)) != ranks or min(devices) < 0:
        raise ConfigError(f"place must name different devices >= 0, got {list(devices)}")
    return devices


def _factor(value, what: str = "slow") -> Fraction:
    """A slow-down, ``2``, ``"2x"`` or ``"1.5x"``."""
    try:
        factor = Fraction(value[:-1] if isinstance(value, str) and value.endswith("x") else value)
    except (ValueError, TypeError, ArithmeticError):
        raise ConfigError(f"{what}: a factor must look like 2x, got {value!r}") from None
    if factor <= 0:
        raise ConfigError(f"{what}: a factor must be positive, got {value!r}")
    return factor


def _decimal(factor: Fraction) -> str:
    return f"{factor.numerator}" if factor.denominator == 1 else f"{float(factor):.6g}"


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
    name = config.machine or os.environ.get(_ENVIRONMENT) or "a2"
    platform = load_platform(name, overrides)
    placement = _placement(config.place, ranks, platform)
    skew = config.skew
    if skew is None or skew == "platform":
        skew_ps = platform.launch.skew
    elif isinstance(skew, int) and not isinstance(skew, bool):
        skew_ps = skew
        if skew < 0:
            raise ConfigError(f"skew must be at least 0 ps, got {skew!r}")
    elif skew == "none":
        skew_ps = 0
    else:
        skew_ps = parse_time(skew)
    slow = {}
    for rank, factor in config.slow.items():
        if not 0 <= int(rank) < ranks:
            raise ConfigError(f"slow: rank {rank} does not exist, the run has ranks 0..{ranks - 1}")
        slow[int(rank)] = _factor(factor)
    jitter = _factor(config.jitter, "jitter")
    if jitter < 1:
        raise ConfigError(f"jitter: a factor must be at least 1x, got {config.jitter!r}")
    return Settings(
        platform=platform,
        overrides={k: str(v) for k, v in overrides.items()},
        seed=config.seed,
        skew_ps=skew_ps,
        fences=config.fences,
        launch=config.launch,
        timing_only=config.timing_only,
        keep=frozenset(config.keep),
        checks=config.checks,
        slow=slow,
        placement=placement,
        poison=config.poison,
        rtol=config.rtol,
        atol=config.atol,
        jitter=jitter,
        delays=parse_delays(config.delay, ranks),
        keep_trace=config.keep_trace,
    )
