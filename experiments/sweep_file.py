"""A sweep from the texts of the command line, or from a TOML file for what deserves a name.

The file's keys are the flags' names; a value is a text as on the command line, a number, or a list:

    algorithms = ["mesh", "two_phase"]
    ranks = "2:64:x2"
    size = "1KiB:64MiB:x4"
    platform = "ideal"
    timing_only = true
    [set]
    "link.bandwidth" = "10GB/s:100GB/s:x2"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from a2a3sim import ConfigError, RunConfig
from a2a3sim.experiments.sweep import Sweep
from a2a3sim.experiments.sweep_axes import expand, expand_texts
from a2a3sim.units import nearest, parse_size

__all__ = ["KEYS", "TOGETHER", "build_sweep", "read_sweep_file", "shipped_sweeps"]

#: What a sweep file may say; all but the last group may hold several values.
KEYS = (
    "collective", "algorithms", "ranks", "size", "dtype", "cores", "platform", "fences", "skew", "seed", "seeds", "set",
    "place", "slow", "check", "timing_only", "poison", "output",
)  # fmt: skip

#: Flags that say the same thing in two ways: one given replaces the other in the file.
TOGETHER = {"seed": "seeds", "seeds": "seed"}

_SWITCHES = ("check", "timing_only", "poison")
_MAPPINGS = ("set", "slow")
_DEFAULTS = {"check": True, "timing_only": False, "poison": False}


def shipped_sweeps() -> list[str]:
    """Names of the sweeps that come with the simulator."""
    folder = files("a2a3sim.experiments") / "sweeps"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def read_sweep_file(name: str) -> dict[str, Any]:
    """The contents of a sweep file: a shipped name or a path.

    Raises:
        ConfigError: no such file, no TOML, an unknown key or a value of the wrong kind.
    """
    shipped = shipped_sweeps()
    path = Path(name)
    if name in shipped:
        text = (files("a2a3sim.experiments") / "sweeps" / f"{name}.toml").read_text(encoding="utf-8")
    elif path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read the sweep file {name}: {error}") from None
    else:
        known = ", ".join(shipped)
        raise ConfigError(
            f"sweep must be a TOML file or one of {known}, got {name!r}{nearest(name, shipped)}"
        )
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} must be a TOML file: {error}") from None
    for key, value in data.items():
        if key not in KEYS:
            raise ConfigError(
                f"{name}: key must be one of {', '.join(KEYS)}, got {key!r}{nearest(key, KEYS)}"
            )
        if key in _SWITCHES and not isinstance(value, bool):
            raise ConfigError(f"{name}: {key} must be true or false, got {value!r}")
        if key in _MAPPINGS and not isinstance(value, dict):
            raise ConfigError(f"{name}: {key} must be a table, got {value!r}")
    return data


def build_sweep(given: Mapping[str, Any]) -> Sweep:
    """A sweep from values by key (see `KEYS`), each as on the command line or in a file.

    Raises:
        ConfigError: what is wrong with which of them.
    """
    values = {key: value for key, value in given.items() if value is not None}
    for first, second in TOGETHER.items():
        if first in values and second in values:
            raise ConfigError(f"--{first} and --{second} say the same thing: give one of them")
    text = {key: _text(key, value) for key, value in values.items() if key not in (*_MAPPINGS, *_SWITCHES)}
    switches = {key: values.get(key, default) for key, default in _DEFAULTS.items()}
    sets = {key: _text(key, value) for key, value in values.get("set", {}).items()}
    axes: dict[str, Any] = {}
    for key, name in (
        ("collective", "collectives"), ("algorithms", "algorithms"), ("platform", "platforms"), ("dtype", "dtypes"),
        ("fences", "fences"), ("skew", "skews"),
    ):  # fmt: skip
        if key in text:
            axes[name] = tuple(_names(f"--{key}", text[key]))
    if "all" in axes.get("algorithms", ()) and len(axes["algorithms"]) > 1:
        raise ConfigError("--algorithms: all stands alone, it names every algorithm")
    if "ranks" in text:
        axes["ranks"] = tuple(expand("--ranks", text["ranks"]))
    if "size" in text:
        axes["sizes"] = tuple(expand("--size", text["size"], parse_size))
    if "cores" in text:
        axes["cores"] = tuple(expand("--cores", text["cores"]))
    if "seed" in text:
        axes["seeds"] = tuple(expand("--seed", text["seed"]))
    if "seeds" in text:
        count = expand("--seeds", text["seeds"])
        if len(count) != 1 or count[0] < 1:
            raise ConfigError(f"--seeds must be one number of at least 1, got {text['seeds']!r}")
        axes["seeds"] = tuple(range(count[0]))
    overrides = tuple((key, tuple(_parameter(key, value))) for key, value in sets.items())
    config = RunConfig(
        place=None if "place" not in text else expand("--place", text["place"].replace("-", ":")),
        slow={_rank(rank): str(factor) for rank, factor in values.get("slow", {}).items()},
        poison=switches["poison"],
        checks=switches["check"],
        timing_only=switches["timing_only"],
    )
    return Sweep(overrides=overrides, config=config, **axes)


def _rank(text: str) -> int:
    if not str(text).isdigit():
        raise ConfigError(f"--slow: must look like RANK=2x, got rank {text!r}")
    return int(text)


def _parameter(key: str, text: str) -> list[str]:
    # Lists of types are one value: their commas part nothing.
    if key in ("vector.native", "vector.emulated", "atomic.dtypes"):
        return [text]
    return expand_texts(f"--set {key}", text)


def _text(key: str, value: Any) -> str:
    if isinstance(value, list):
        return ",".join(_text(key, item) for item in value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"{key} must be a text, a number or a list of them, got {value!r}")
    return str(value)


def _names(flag: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ConfigError(f"{flag}: an empty name in {text!r}")
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise ConfigError(f"{flag}: {twice[0]!r} is named twice")
    return names
