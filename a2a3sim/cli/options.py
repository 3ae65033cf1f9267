"""Flags that many commands share, and how their texts become settings."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Check", "Cores", "Delay", "Devices", "Dtype", "FailOn", "Fences", "Jitter", "Json", "Out", "Overrides", "Place",
    "Platform", "Poison", "SaveTrace", "Seed", "Seeds", "Skew", "Slow", "Suppress", "TimingOnly", "Trace", "Witness",
    "build_config", "forced_settings", "parse_devices", "parse_list", "parse_pairs",
]  # fmt: skip

_COMMON = "Machine and run"

Devices = Annotated[
    str, typer.Option("-d", "--devices", help="Device labels: 0,1,2,3 or 0-7; their number is P.")
]
Platform = Annotated[
    str,
    typer.Option(
        "--platform",
        envvar="A2A3SIM_PLATFORM",
        help="Machine: a name (`a2a3sim platforms`) or a TOML file.",
        rich_help_panel=_COMMON,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Override a parameter: link.bandwidth=10GB/s (repeatable).", rich_help_panel=_COMMON
    ),
]
Place = Annotated[
    str | None,
    typer.Option("--place", help="Platform device of each rank: 0,2,4,6.", rich_help_panel=_COMMON),
]
Seed = Annotated[int, typer.Option("--seed", help="Sample of skews and tie orders.", rich_help_panel=_COMMON)]
Seeds = Annotated[
    int, typer.Option("--seeds", help="Run seeds 0..K-1; print median and range.", rich_help_panel=_COMMON)
]
Skew = Annotated[
    str | None,
    typer.Option(
        "--skew",
        help="Width of the launch skew (2us), or none; default: the platform's.",
        rich_help_panel=_COMMON,
    ),
]
Fences = Annotated[
    str, typer.Option("--fences", help="statement, notify or explicit.", rich_help_panel=_COMMON)
]
Slow = Annotated[
    list[str] | None,
    typer.Option("--slow", help="Slow a rank's cores down: 2=1.5x (repeatable).", rich_help_panel=_COMMON),
]
Jitter = Annotated[
    str | None,
    typer.Option(
        "--jitter",
        help="Stretch each link's latency by its own factor, at most this (4x), by the seed.",
        rich_help_panel=_COMMON,
    ),
]
Delay = Annotated[
    list[str] | None,
    typer.Option(
        "--delay",
        help="Hold a rank's core before an operation: RANK@FILE:LINE#K=TIME, K counting from 0 (repeatable).",
        rich_help_panel=_COMMON,
    ),
]
Poison = Annotated[
    bool,
    typer.Option("--poison", help="Fill fresh memory with NaN instead of zeros.", rich_help_panel=_COMMON),
]
Check = Annotated[
    bool,
    typer.Option("--check/--no-check", help="Look for races and other findings.", rich_help_panel=_COMMON),
]
FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on", help="Exit 1 from this severity on: error or warning.", rich_help_panel=_COMMON
    ),
]
TimingOnly = Annotated[
    bool,
    typer.Option("--timing-only", help="Times and traffic without moving bytes.", rich_help_panel=_COMMON),
]
Dtype = Annotated[str, typer.Option("--dtype", help="fp32, fp16, bf16, int32, int16 or int8.")]
Cores = Annotated[
    int | None,
    typer.Option(
        "--cores",
        help="Cores per device. Default: the platform's kernel.cores, enough that the fabric is compared.",
    ),
]
Out = Annotated[str, typer.Option("--out", help="Directory for pictures.")]
Trace = Annotated[
    str | None,
    typer.Option("--trace", help="Write a Chrome trace to FILE.json or FILE.json.gz; Perfetto opens it."),
]
SaveTrace = Annotated[
    str | None,
    typer.Option(
        "--save-trace",
        help="Save the run into FILE for check-trace, timeline, trace and diff; a k-th run into FILE with -k added.",
    ),
]
Witness = Annotated[
    bool,
    typer.Option(
        "--witness", help="For each race, run again with one core held so that it bites; show the bytes."
    ),
]
Suppress = Annotated[
    list[str] | None,
    typer.Option("--suppress", help="TOML file of accepted findings, each with its reason (repeatable)."),
]
Json = Annotated[
    str | None, typer.Option("--json", help="Write the report as JSON to FILE, or - for stdout.")
]


def parse_devices(text: str) -> list[int]:
    """``0,1,2,3`` or ``0-7`` or a mixture.

    Raises:
        ConfigError: not a list of different labels >= 0.
    """
    from a2a3sim.errors import ConfigError

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
    """Comma-separated names, none empty or repeated."""
    from a2a3sim.errors import ConfigError

    names = [n.strip() for n in text.split(",")]
    if not all(names):
        raise ConfigError(f"{flag}: an empty name in {text!r}")
    twice = [n for k, n in enumerate(names) if n in names[:k]]
    if twice:
        raise ConfigError(f"{flag}: {twice[0]!r} is named twice in {text!r}")
    return names


def parse_pairs(flag: str, items: list[str] | None) -> dict[str, str]:
    """``key=value`` texts."""
    from a2a3sim.errors import ConfigError

    pairs = {}
    for item in items or []:
        key, equals, value = item.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise ConfigError(f"{flag}: must look like key=value, got {item!r}")
        pairs[key.strip()] = value.strip()
    return pairs


def _delays(items: list[str]) -> dict[str, str]:
    from a2a3sim.errors import ConfigError

    found = {}
    for item in items:
        where, equals, time = item.rpartition("=")
        if not equals:
            raise ConfigError(f"--delay: must look like RANK@FILE:LINE#K=TIME, got {item!r}")
        found[where] = time
    return found


def build_config(
    platform, overrides=None, place=None, seed=0, skew=None, fences="statement", slow=None, poison=False,
    check=True, timing_only=False,
):  # fmt: skip
    """A RunConfig from the texts of the common flags.

    Raises:
        ConfigError: what is wrong with which flag.
    """
    from a2a3sim.config import RunConfig
    from a2a3sim.errors import ConfigError

    factors = {}
    for rank, factor in parse_pairs("--slow", slow).items():
        if not rank.isdigit():
            raise ConfigError(f"--slow: must look like RANK=2x, got {rank}={factor}")
        factors[int(rank)] = factor
    return RunConfig(
        machine=platform,
        platform_overrides=parse_pairs("--set", overrides),
        place=parse_devices(place) if place else None,
        seed=seed,
        skew=skew,
        fences=fences,
        slow=factors,
        poison=poison,
        checks=check,
        timing_only=timing_only,
    )


def forced_settings(
    platform, overrides, place, seed, skew, fences, slow, poison, check, timing_only, jitter=None, delay=None
) -> dict:
    """The RunConfig fields that flags given on the command line impose on a script's runs."""
    config = build_config(
        platform, overrides, place, seed or 0, skew, fences or "statement", slow, poison, check
    )
    forced = {}
    if platform is not None:
        forced["machine"] = platform
    if overrides:
        forced["platform_overrides"] = config.platform_overrides
    if place:
        forced["place"] = config.place
    if seed is not None:
        forced["seed"] = config.seed
    if skew is not None:
        forced["skew"] = skew
    if fences is not None:
        forced["fences"] = fences
    if slow:
        forced["slow"] = config.slow
    if jitter is not None:
        forced["jitter"] = jitter
    if delay:
        forced["delay"] = _delays(delay)
    for name, given in (("poison", poison), ("timing_only", timing_only)):
        if given:
            forced[name] = True
    if not check:
        forced["checks"] = False
    return forced
