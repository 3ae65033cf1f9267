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
from a2a3sim.experiments.sweep_axes import WORKLOAD, expand, expand_texts, setting_axes
from a2a3sim.setting import Setting, parse_list
from a2a3sim.units import nearest

__all__ = ["KEYS", "TOGETHER", "build_sweep", "read_sweep_file", "shipped_sweeps"]

_SETTINGS = [s for s in RunConfig.settings() if s.flag and s.kernels]

#: What a sweep file may say.
KEYS = (*(axis.key for axis in WORKLOAD), *(s.key for s in _SETTINGS), "seeds", "output")

#: Flags that say the same thing in two ways: one given replaces the other in the file.
TOGETHER = {"seed": "seeds", "seeds": "seed"}

_SWITCHES = [s.key for s in _SETTINGS if s.kind is bool]
_TABLES = [s.key for s in _SETTINGS if s.kind == list[str]]


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
        if key in _TABLES and not isinstance(value, dict):
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
    text = {key: _text(key, value) for key, value in values.items() if key not in (*_TABLES, *_SWITCHES)}
    axes: dict[str, Any] = {
        axis.field: tuple(axis.read(f"--{axis.key}", text[axis.key])) for axis in WORKLOAD if axis.key in text
    }
    if "platform" in text:
        axes["platforms"] = tuple(parse_list("--platform", text["platform"]))
    if "all" in axes.get("algorithms", ()) and len(axes["algorithms"]) > 1:
        raise ConfigError("--algorithms: all stands alone, it names every algorithm")
    varied: dict[str, tuple] = {}
    for s in setting_axes():
        if s.key in text:
            varied[s.name] = tuple((expand if s.kind is int else expand_texts)(s.flag, text[s.key]))
        elif s.name == "seed" and "seeds" in text:
            count = expand("--seeds", text["seeds"])
            if len(count) != 1 or count[0] < 1:
                raise ConfigError(f"--seeds must be one number of at least 1, got {text['seeds']!r}")
            varied["seed"] = tuple(range(count[0]))
    sets = {key: _text(key, value) for key, value in values.get("set", {}).items()}
    overrides = tuple((key, tuple(_parameter(key, value))) for key, value in sets.items())
    same = {s.name: _value(s, values[s.key]) for s in _SETTINGS if not s.axis and s.key in values}
    return Sweep(overrides=overrides, varied=varied, config=RunConfig(**same), **axes)


def _value(setting: Setting, value: Any) -> Any:
    if setting.kind is bool:
        return value
    if setting.kind == list[str]:
        return setting.read([f"{key}={part}" for key, part in value.items()])
    return setting.read(_text(setting.key, value))


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
