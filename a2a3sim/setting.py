"""What one setting of a run is: its field of `RunConfig` with everything that follows from it.

A setting is one line of `a2a3sim.config.RunConfig`, ``name: type = setting(default, ...)``. From it follow the flag
and its help, what a command imposes on a script, the axis and the key of sweeps, validation, and what results state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import index
from typing import Any

from a2a3sim.errors import ConfigError
from a2a3sim.units import parse_time

__all__ = [
    "Setting", "at_least_0", "checked", "different_devices", "factor", "factor_text", "factors", "one_of",
    "parse_devices", "parse_list", "parse_pairs", "read_delays", "read_factors",
    "setting", "skew_width",
]  # fmt: skip


def _same(value: Any, *_: Any) -> Any:
    return value


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        default: of the field; a dict is copied for each config.
        flag: on the command line; without it only Python sets it.
        kind: type of the flag's value: ``str``, ``int``, ``bool`` or ``list[str]`` for flags given repeatedly.
        axis: help of the same flag where it takes several values: on sweeps. Without it a sweep has one value.
        kernels: whether commands that run shipped collectives have it too, not only those that run scripts.
        read: makes the field's value of the flag's.
        resolve: makes what the model computes with of the field's value, the number of ranks and the platform.
        text: how results state the resolved value in ``overrides``, unless it is the default's: one text, or one by
            part. Without it results do not, or have a field for it.
        name: the field's.
    """

    default: Any = None
    flag: str = ""
    help: str = ""
    kind: Any = str
    axis: str = ""
    kernels: bool = True
    read: Callable[[Any], Any] = _same
    resolve: Callable[[Any, int, Any], Any] = _same
    text: Callable[[Any], str | Mapping[str, str]] | None = None
    name: str = ""

    @property
    def key(self) -> str:
        """The flag's name as a key of sweep files."""
        return self.flag.removeprefix("--").replace("-", "_")

    def stated(self, value: Any) -> dict[str, str]:
        """What a result states of the resolved value, by name: nothing where it is the default."""
        if self.text is None:
            return {}
        text = self.text(value)
        if isinstance(text, Mapping):
            return {f"{self.name}.{part}": said for part, said in text.items()}
        return {} if text == self.default_text else {self.name: text}

    @property
    def default_text(self) -> str | Mapping[str, str] | None:
        """How results would state the default; None if they never state the setting."""
        return self.text(self.resolve(self.default, 1, None)) if self.text is not None else None

    def words(self, value: Any) -> list[str]:
        """The flag with its value, as the command line takes them."""
        if self.kind is bool:
            no = "" if value else f"--no-{self.flag.removeprefix('--')}"
            return [no or self.flag]
        if isinstance(value, Mapping):
            return [word for key, part in value.items() for word in (self.flag, f"{key}={part}")]
        whole = isinstance(value, str) or not isinstance(value, Iterable)
        return [self.flag, str(value) if whole else ",".join(map(str, value))]


def setting(
    default: Any = None,
    flag: str = "",
    help: str = "",
    *,
    check: Callable[[str, Any], None] | None = None,
    **more: Any,
) -> Any:
    """A field of `RunConfig` that is a setting.

    Args:
        check: called with name and value of a new config; raises ConfigError.
        more: further attributes of `Setting`.
    """
    metadata = {"setting": Setting(default, flag, help, **more), "check": check}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata, kw_only=True)
    return field(default=default, metadata=metadata, kw_only=True)


def checked(default: Any, check: Callable[[str, Any], None]) -> Any:
    """A field that is checked, but is no setting of the simulator."""
    return field(default=default, metadata={"check": check})


# ---- checks of fields ----------------------------------------------------------------------------------


def one_of(names: Sequence[str]) -> Callable[[str, Any], None]:
    """A check that a value is one of some names."""

    def check(name: str, value: Any) -> None:
        if value not in names:
            raise ConfigError(f"{name} must be one of {', '.join(names)}, got {value!r}")

    return check


def at_least_0(name: str, value: Any) -> None:
    """ConfigError unless a number is at least 0; None is no number and fine."""
    if value is not None and not value >= 0:
        raise ConfigError(f"{name} must be >= 0, got {value!r}")


# ---- texts of flags ------------------------------------------------------------------------------------


def parse_devices(text: str) -> list[int]:
    """``0,1,2,3`` or ``0-7`` or a mixture.

    Raises:
        ConfigError: not a list of different labels >= 0.
    """
    labels: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        try:
            first = int(low)
            last = int(high) if dash else first
        except ValueError:
            raise ConfigError(f"-d: devices must look like 0,1,2,3 or 0-7, got {text!r}") from None
        if last < first:
            raise ConfigError(f"-d: a range must go up, got {part.strip()!r}")
        if last - first >= 65536:
            raise ConfigError(f"-d: {part.strip()!r} names more than 65536 devices")
        labels += range(first, last + 1)
    for k, label in enumerate(labels):
        if label in labels[:k]:
            raise ConfigError(f"-d: device {label} is named twice in {text!r}")
    return labels


def parse_list(flag: str, text: str) -> list[str]:
    """Comma-separated names, none empty or repeated.

    Raises:
        ConfigError: one is.
    """
    names = [n.strip() for n in text.split(",")]
    if not all(names):
        raise ConfigError(f"{flag}: an empty name in {text!r}")
    twice = [n for k, n in enumerate(names) if n in names[:k]]
    if twice:
        raise ConfigError(f"{flag}: {twice[0]!r} is named twice in {text!r}")
    return names


def parse_pairs(flag: str, items: Iterable[str] | None) -> dict[str, str]:
    """``key=value`` texts.

    Raises:
        ConfigError: one that is none.
    """
    pairs = {}
    for item in items or []:
        key, equals, value = item.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise ConfigError(f"{flag}: must look like key=value, got {item!r}")
        pairs[key.strip()] = value.strip()
    return pairs


def read_factors(items: Iterable[str]) -> dict[int, str]:
    """Factors by rank, of texts ``2=1.5x``."""
    pairs = parse_pairs("--slow", items)
    for rank, text in pairs.items():
        if not rank.isdigit():
            raise ConfigError(f"--slow: must look like RANK=2x, got {rank}={text}")
    return {int(rank): text for rank, text in pairs.items()}


def read_delays(items: Iterable[str]) -> dict[str, str]:
    """Times by place, of texts ``RANK@FILE:LINE#K=TIME``."""
    found = {}
    for item in items:
        where, equals, time = item.rpartition("=")
        if not equals:
            raise ConfigError(f"--delay: must look like RANK@FILE:LINE#K=TIME, got {item!r}")
        found[where] = time
    return found


# ---- resolved values -----------------------------------------------------------------------------------


def factor(name: str, value: Any, least: int | None = None) -> Fraction:
    """A factor, ``2``, ``"2x"`` or ``"1.5x"``.

    Raises:
        ConfigError: it is none, not positive, or below ``least``.
    """
    try:
        found = Fraction(value[:-1] if isinstance(value, str) and value.endswith("x") else value)
    except (ValueError, TypeError, ArithmeticError):
        raise ConfigError(f"{name}: a factor must look like 2x, got {value!r}") from None
    if found <= 0:
        raise ConfigError(f"{name}: a factor must be positive, got {value!r}")
    if least is not None and found < least:
        raise ConfigError(f"{name}: a factor must be at least {least}x, got {value!r}")
    return found


def factor_text(value: Any) -> str:
    """A factor as people write it: ``2x``."""
    exact = Fraction(value)
    return f"{exact.numerator}x" if exact.denominator == 1 else f"{float(exact):.6g}x"


def skew_width(value: Any, _ranks: int, platform: Any) -> int:
    """The width of the launch skew in ps: the platform's, none, or a time with its unit.

    Raises:
        ConfigError: no time, or a negative one.
    """
    if value is None or value == "platform":
        return platform.launch.skew
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ConfigError(f"skew must be at least 0 ps, got {value!r}")
        return value
    return 0 if value == "none" else parse_time(value)


def factors(value: Mapping[Any, Any], ranks: int, *_: Any) -> dict[int, Fraction]:
    """Factors by rank.

    Raises:
        ConfigError: no such rank, or no factor.
    """
    for rank in value:
        if not 0 <= int(rank) < ranks:
            raise ConfigError(f"slow: rank {rank} does not exist, the run has ranks 0..{ranks - 1}")
    return {int(rank): factor("slow", text) for rank, text in value.items()}


def different_devices(value: Iterable[Any] | None, ranks: int, *_: Any) -> tuple[int, ...]:
    """The device of each rank; without a value rank i is on device i.

    Raises:
        ConfigError: not one device for each rank, or one twice.
    """
    if value is None:
        return tuple(range(ranks))
    try:
        devices = tuple(index(d) for d in value)
    except TypeError:
        raise ConfigError(f"place must name devices by whole numbers, got {list(value)}") from None
    if len(devices) != ranks:
        raise ConfigError(f"place must name one device for each of the {ranks} ranks, got {len(devices)}")
    if len(set(devices)) != ranks or min(devices) < 0:
        raise ConfigError(f"place must name different devices >= 0, got {list(devices)}")
    return devices
