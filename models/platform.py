"""A machine: its parameters read from a platform file, checked, and ready to use.

``load_platform("a2", {"link.bandwidth": "10GB/s"})`` gives a frozen ``Platform`` whose values are plain
ints, fractions and names (``platform.link.bandwidth == 10_000_000_000``).
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, get_origin

from pydantic import BaseModel, PrivateAttr, ValidationError, model_validator
from pydantic.fields import FieldInfo

from a2a3sim.errors import ConfigError
from a2a3sim.models import parameters as p
from a2a3sim.models.platform_file import WrittenValue, check_key, nest, read_platform, shipped
from a2a3sim.models.quantities import Unit
from a2a3sim.models.shape import check_overrides
from a2a3sim.units import nearest, parse_frequency

__all__ = ["ParameterRow", "Platform", "fitting_platforms", "list_platforms", "load_platform"]

OVERRIDE = "override"


class ParameterRow(NamedTuple):
    """One parameter of a machine as shown to people."""

    key: str
    value: str
    unit: str
    meaning: str
    source: str


class Platform(p.Section):
    """One machine. Sections hold the parameters; see docs/platforms.md for all of them."""

    name: str
    title: str
    topology: p.TopologySection
    core: p.CoreSection
    ub: p.UbSection
    pipe: p.PipeSection
    vector: p.VectorSection
    hbm: p.HbmSection
    link: p.LinkSection
    port: p.PortSection
    sio: p.SioSection
    planes: p.Planes
    spread: p.Spread
    efficiency: p.EfficiencySection
    signal: p.SignalSection
    align: p.AlignSection
    atomic: p.AtomicSection
    launch: p.LaunchSection
    kernel: p.KernelSection

    _written: dict[str, WrittenValue] = PrivateAttr(default_factory=dict)  # texts and sources by key
    _hash: str = PrivateAttr("")

    @property
    def hash(self) -> str:
        """Twelve hex digits over all values (not names, titles or sources): equal machines, equal hashes."""
        if not self._hash:
            text = "\n".join(f"{key}={_canonical(value)}" for key, value in sorted(self.values().items()))
            self._hash = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Platform) and (self.name, self.hash) == (other.name, other.hash)

    def __hash__(self) -> int:
        return hash((self.name, self.hash))

    def parameters(self) -> Iterator[ParameterRow]:
        """Every parameter in the order of the schema, then per-link, per-port and per-instruction ones."""
        for key, value, field in _leaves(self):
            unit = next(part for part in field.metadata if isinstance(part, Unit))
            entry = self._written.get(key, WrittenValue("", ""))
            text = _none_word(key) if value is None else unit.write(value)
            if entry.value.endswith("/cycle"):
                text += f" ({entry.value})"
            yield ParameterRow(key, text, unit.symbol, field.description or "", entry.source)

    def values(self) -> dict[str, Any]:
        """Every resolved value by its dotted key, in the unit that ``parameters`` names."""
        return {key: value for key, value, _ in _leaves(self)}

    @model_validator(mode="after")
    def _fits_together(self) -> "Platform":
        if self.ub.size is not None and self.ub.reserved >= self.ub.size:
            raise ConfigError(f"ub.reserved must be below ub.size {self.ub.size}, got {self.ub.reserved}")
        if self.core.count is not None and self.kernel.cores > self.core.count:
            raise ConfigError(
                f"kernel.cores must be at most core.count {self.core.count}, got {self.kernel.cores}"
            )
        if (
            not {"startup", "slope"}
            <= self.vector.table.get("default", {}).get("default", p.CostSection()).model_fields_set
        ):
            raise ConfigError(
                "vector.default.default must have startup and slope: other costs fall back on them"
            )
        both = sorted(set(self.vector.native) & set(self.vector.emulated))
        if both:
            raise ConfigError(f"vector.emulated must differ from vector.native, got {both[0]!r} in both")
        kind = self.topology.kind
        if self.planes > 1 and kind not in ("switch", "paired_switch"):
            raise ConfigError(
                f"planes must be 1 on a {kind}: only a switched fabric has planes, got {self.planes}"
            )
        if not self.topology.switch.isidentifier():
            raise ConfigError(f"topology.switch must be a name, got {self.topology.switch!r}")
        if self.topology.devices is not None:
            check_overrides(self, self.topology.devices)
        return self


def load_platform(name_or_path: str | Path = "a2", overrides: Mapping[str, str] | None = None) -> Platform:
    """Read a machine.

    Args:
        name_or_path: a shipped platform, or the path of a platform file.
        overrides: values by dotted key, such as ``{"link.3-5.bandwidth": "5GB/s"}``.

    Raises:
        ConfigError: no such platform; an unknown, missing or impossible parameter.
    """
    known = tuple(_static_keys())
    file = read_platform(name_or_path, known)
    entries = dict(file.entries)
    for key, value in (overrides or {}).items():
        check_key(key, known, f"platform {file.name}")
        if not isinstance(value, str):
            raise ConfigError(f"value of {key} must be a text with its unit, got {value!r}")
        entries[key] = WrittenValue(value, OVERRIDE)
    missing = [key for key in known if key not in entries]
    if missing:
        raise ConfigError(
            f'platform {file.name} must give every parameter or derive from a platform with base = "...", '
            f"got none for {', '.join(missing)}"
        )
    if overrides:
        _check_used(file.name, entries, overrides)
    tree = nest({key: entry.value for key, entry in entries.items()})
    tree |= {"name": file.name, "title": file.title}
    try:
        clock = parse_frequency(entries["core.clock"].value) or None
        platform = Platform.model_validate(tree, context={"clock": clock})
    except ValidationError as error:
        raise ConfigError(_explain(file.name, error)) from None
    except ConfigError as error:
        raise ConfigError(f"platform {file.name}: core.clock: {error}") from None
    platform._written.update(entries)
    return platform


def list_platforms() -> tuple[str, ...]:
    """Names of the shipped platforms."""
    return shipped()


def fitting_platforms(devices: int) -> str:
    """The smallest shipped platform with at least that many devices, in words: ``a3 has 16``."""
    counts = {name: _devices(name) for name in shipped()}
    fits = {name: count for name, count in counts.items() if count is None or count >= devices}
    name = min(fits, key=lambda name: (fits[name] is None, fits[name] or 0, name))
    return f"{name} has {'any number' if fits[name] is None else fits[name]}"


@lru_cache(maxsize=32)
def _devices(name: str) -> int | None:
    return load_platform(name).topology.devices


def _canonical(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _none_word(key: str) -> str:
    return {"topology.devices": "any", "align.row": "none", "align.line": "none"}.get(key, "unlimited")


def _leaves(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any, FieldInfo]]:
    """(dotted key, value, field) of every parameter under a model."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, f"{prefix}{name}.")
        elif isinstance(value, dict):
            yield from _tabled(value, prefix)
        elif any(isinstance(part, Unit) for part in field.metadata) and (
            not isinstance(model, p.CostSection | p.BetweenSection | p.PortOfSection)
            or name in model.model_fields_set
        ):
            yield f"{prefix}{name}", value, field


def _tabled(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any, FieldInfo]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _tabled(value, f"{prefix}{name}.")
        else:
            yield from _leaves(value, f"{prefix}{name}.")


@lru_cache(maxsize=1)
def _static_keys() -> tuple[str, ...]:
    """Keys that every machine has."""
    keys = []
    for name, field in Platform.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, p.Section):
            keys += [
                f"{name}.{inner}"
                for inner, f in kind.model_fields.items()
                if get_origin(f.annotation) is not dict
            ]
        elif any(isinstance(part, Unit) for part in field.metadata):
            keys.append(name)
    return tuple(keys)


def _check_used(name: str, entries: Mapping[str, WrittenValue], overrides: Mapping[str, str]) -> None:
    """Refuse an override that this machine's topology makes meaningless."""
    kind = entries["topology.kind"].value
    for key in overrides:
        if key.startswith("sio.") and kind != "paired_switch":
            raise ConfigError(
                f"{key} must not be set on platform {name}: it has no SIO (topology.kind {kind})"
            )


def _explain(name: str, error: ValidationError) -> str:
    """Each fault with its dotted key, in the words of the parser that found it."""
    lines = []
    for fault in error.errors():
        key = ".".join(str(part) for part in fault["loc"] if part not in ("between", "of", "table"))
        got = fault["input"]
        if fault["type"] == "literal_error":
            allowed = re.findall(r"'([^']*)'", fault["ctx"]["expected"])
            reason = f"must be one of {', '.join(allowed)}, got {got!r}{nearest(str(got), allowed)}"
        else:
            cause = fault.get("ctx", {}).get("error")
            reason = str(cause) if cause is not None else f"{fault['msg']}, got {got!r}"
        link = "" if not key else " " if reason.startswith("must ") else ": "
        lines.append(f"platform {name}: {key}{link}{reason}")
    return "\n".join(lines)
