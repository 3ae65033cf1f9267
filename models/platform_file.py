"""Platform files: TOML text to a flat table ``key -> (value, source)``, with bases merged in.

Every parameter is ``key = { value = "26.2GB/s", source = "..." }`` under its section; besides, a file
has a ``title`` and may have a ``base``, the platform whose parameters it inherits.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from a2a3sim.errors import ConfigError
from a2a3sim.models.parameters import BetweenSection, CostSection, PortOfSection
from a2a3sim.models.quantities import DTYPES, INSTRUCTIONS
from a2a3sim.units import nearest

__all__ = ["PlatformFile", "WrittenValue", "check_key", "nest", "read_platform", "shipped"]

# Ends of a link are device numbers or names of switches; 03 is not a device, or 03-5 would quietly miss 3-5.
_LINK = re.compile(r"(0|[1-9][0-9]*|[A-Za-z_]\w*)-(0|[1-9][0-9]*|[A-Za-z_]\w*)", re.ASCII)
_PORT = re.compile(r"0|[1-9][0-9]*")


class WrittenValue(NamedTuple):
    """One parameter as written: the text of its value, and where the value comes from."""

    value: str
    source: str


class PlatformFile(NamedTuple):
    """A platform file with its bases merged in."""

    name: str
    title: str
    entries: dict[str, WrittenValue]


@lru_cache(maxsize=1)
def shipped() -> tuple[str, ...]:
    """Names of the platforms that come with the package, sorted."""
    folder = resources.files("a2a3sim.models") / "platforms"
    return tuple(
        sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))
    )


def read_platform(name_or_path: str | Path, known: Iterable[str]) -> PlatformFile:
    """Read a shipped platform by its name, or a file by its path.

    Args:
        known: the keys of the schema that are not per link, port or instruction.

    Raises:
        ConfigError: no such platform, not TOML, a parameter without value or source, an unknown key.
    """
    return _read(str(name_or_path), Path.cwd(), tuple(known), ())


def _read(name: str, folder: Path, known: tuple[str, ...], chain: tuple[str, ...]) -> PlatformFile:
    if name in shipped():
        return _read_shipped(name, known)
    path = Path(name) if Path(name).is_absolute() else folder / name
    if not path.is_file():
        # A bare word was meant as a platform, anything else as a path.
        if path.suffix or len(Path(name).parts) > 1:
            raise ConfigError(f"platform file must exist, got {name!r}")
        raise ConfigError(
            f"platform must be one of {', '.join(shipped())} or the path of a TOML file, got {name!r}"
            f"{nearest(name, shipped())}"
        )
    where = str(path.resolve())
    if where in chain:
        raise ConfigError(
            f"{name}: base must not lead back to the file itself, got {' -> '.join((*chain, where))}"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"platform file {name} must be readable UTF-8 text: {error}") from None
    return _parse(text, path.stem, name, folder=path.parent, known=known, chain=(*chain, where))


@lru_cache(maxsize=32)
def _read_shipped(name: str, known: tuple[str, ...]) -> PlatformFile:
    file = resources.files("a2a3sim.models") / "platforms" / f"{name}.toml"
    return _parse(
        file.read_text(encoding="utf-8"), name, f"{name}.toml", folder=Path.cwd(), known=known, chain=()
    )


def _parse(
    text: str, name: str, where: str, *, folder: Path, known: tuple[str, ...], chain: tuple[str, ...]
) -> PlatformFile:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: platform file must be TOML: {error}") from None
    title, base = document.pop("title", name), document.pop("base", None)
    for key, value in (("title", title), ("base", base)):
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{where}: {key} must be a text, got {value!r}")
    entries: dict[str, WrittenValue] = {}
    if base is not None:
        try:
            entries |= _read(base, folder, known, chain).entries
        except ConfigError as error:
            raise ConfigError(f"{where}: base: {error}") from None
    for key, entry in _flatten(document, where, ""):
        check_key(key, known, where)
        entries[key] = entry
    return PlatformFile(name, title, entries)


def _flatten(table: Mapping[str, Any], where: str, prefix: str) -> Iterable[tuple[str, WrittenValue]]:
    for name, value in table.items():
        key = prefix + name
        if not isinstance(value, dict):
            raise ConfigError(f'{where}: {key} must be {{ value = "...", source = "..." }}, got {value!r}')
        if "value" not in value and "source" not in value:
            yield from _flatten(value, where, key + ".")
            continue
        for part in value:
            if part not in WrittenValue._fields:
                raise ConfigError(f"{where}: {key} must have value and source only, got {part!r}")
        for part in WrittenValue._fields:
            text = value.get(part)
            if not isinstance(text, str) or not text.strip():
                raise ConfigError(f"{where}: {part} of {key} must be a text in quotes, got {text!r}")
        yield key, WrittenValue(value["value"].strip(), value["source"].strip())


def check_key(key: str, known: Iterable[str], where: str) -> None:
    """Refuse a key that no machine has, naming the nearest that exist."""
    valid = [*known, *_dynamic(key)]
    if key in valid:
        return
    raise ConfigError(f"{where}: parameter must be one that a machine has, got {key!r}{_hint(key, valid)}")


def _hint(key: str, valid: list[str]) -> str:
    section, _, name = key.partition(".")
    if not name:  # a bare name may be the last part of several
        same = [other for other in valid if other.split(".")[-1] == key]
        if same:
            return f" (did you mean {' or '.join(map(repr, same))}?)"
    short = key.split(".")
    if len(short) == 3 and f"{short[0]}.{short[1]}.default.{short[2]}" in valid:  # vector.add.slope
        return f" (did you mean '{short[0]}.{short[1]}.default.{short[2]}'?)"
    sections = list(dict.fromkeys(other.split(".")[0] for other in valid))
    close = get_close_matches(section, sections, n=1, cutoff=0.6)
    if not close:
        return nearest(key, valid)
    inside = [other for other in valid if other.split(".")[0] == close[0]]
    return f" (did you mean {get_close_matches(key, inside, n=1, cutoff=0)[0]!r}?)"


def _dynamic(key: str) -> list[str]:
    """Keys of the kind link.S-D.x, port.D.x and vector.I.T.x that the given key may stand for."""
    parts = key.split(".")
    names = []
    if parts[0] == "link" and len(parts) > 1 and _LINK.fullmatch(parts[1]):
        names += [f"link.{parts[1]}.{field}" for field in BetweenSection.model_fields]
    if parts[0] == "port" and len(parts) > 1 and _PORT.fullmatch(parts[1]):
        names += [f"port.{parts[1]}.{field}" for field in PortOfSection.model_fields]
    if parts[0] == "vector":
        rows, columns = ("default", *INSTRUCTIONS), ("default", *DTYPES)
        names += [
            f"vector.{row}.{column}.{field}"
            for row in rows
            for column in columns
            for field in CostSection.model_fields
        ]
    return names


def nest(entries: Mapping[str, str]) -> dict[str, Any]:
    """The flat table as the schema wants it: links, ports and instructions in tables of their own."""
    tree: dict[str, Any] = {"link": {"between": {}}, "port": {"of": {}}, "vector": {"table": {}}}
    for key, value in entries.items():
        *path, field = key.split(".")
        if path and path[0] in ("link", "port") and len(path) == 2:
            path.insert(1, "between" if path[0] == "link" else "of")
        elif path and path[0] == "vector" and len(path) == 3:
            path.insert(1, "table")
        table = tree
        for name in path:
            table = table.setdefault(name, {})
        table[field] = value
    return tree
