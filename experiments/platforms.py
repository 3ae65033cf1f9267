"""The machines and their parameters for people, for programs and for the documentation.

``a2a3sim platforms`` prints a line for each machine, ``a2a3sim platforms NAME`` every parameter of one.
``python -m a2a3sim.experiments.platforms docs/platforms.md`` rewrites the tables of that file.
"""

import json as json_text
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from a2a3sim.errors import ConfigError
from a2a3sim.models import Platform, list_platforms, load_platform
from a2a3sim.units import format_rate, format_time

__all__ = ["describe", "markdown", "report", "rows", "update"]

BEGIN = "<!-- parameters: generated -->"
END = "<!-- end of parameters -->"


def rows(name: str | None = None, overrides: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """The table as plain data: a row for each machine, or for each parameter of the named one.

    ``resolved`` is the value in ``unit`` as a number (a fraction that is no integer: as ``"a/b"``), None
    where it is unlimited.
    """
    if name is None:
        return [_machine(load_platform(each, overrides)) for each in list_platforms()]
    platform = load_platform(name, overrides)
    resolved = platform.values()
    return [
        parameter._asdict() | {"resolved": _plain(resolved[parameter.key])}
        for parameter in platform.parameters()
    ]


def report(name: str | None = None, overrides: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What ``--json`` prints."""
    head: dict[str, Any] = {"schema": "a2a3sim.report/1", "command": "platforms", "runs": []}
    if name is not None:
        platform = load_platform(name, overrides)
        head |= {"platform": platform.name, "platform_hash": platform.hash, "title": platform.title}
    return head | {"rows": rows(name, overrides)}


def describe(name: str | None = None, json: bool = False, overrides: Mapping[str, str] | None = None) -> None:
    """Print the machines, or the parameters of one, on stdout: a table, or the report as JSON."""
    if json:
        print(json_text.dumps(report(name, overrides), indent=2, ensure_ascii=False))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 160)  # a file has no edge to wrap at
    table = Table(box=box.SIMPLE)
    if name is None:
        cells = [_line(row) for row in rows(overrides=overrides)]
        for k, column in enumerate(("platform", "hash", "devices", "topology", "between devices")):
            table.add_column(
                column, no_wrap=True, min_width=max(len(column), *(len(line[k]) for line in cells))
            )
        table.add_column("title", no_wrap=True, overflow="ellipsis")
        for line in cells:
            table.add_row(*line)
    else:
        platform = load_platform(name, overrides)
        console.print(f"{platform.name} ({platform.hash}): {platform.title}", highlight=False, markup=False)
        table.add_column("parameter", no_wrap=True)
        table.add_column("value", overflow="fold", max_width=22)
        table.add_column("unit", no_wrap=True)
        table.add_column("meaning, and below it the source", overflow="fold")
        for parameter in platform.parameters():
            words = Text(parameter.meaning) + Text(f"\n{parameter.source}", style="dim")
            table.add_row(parameter.key, Text(parameter.value), parameter.unit, words)
    console.print(table)


def markdown() -> str:
    """The tables of docs/platforms.md: each parameter on every shipped machine, and its sources."""
    names = list_platforms()
    machines = {name: {p.key: p for p in load_platform(name).parameters()} for name in names}
    keys = dict.fromkeys(key for name in names for key in machines[name])
    lines: list[str] = []
    section = ""
    for key in sorted(keys, key=lambda key: list(_sections(keys)).index(_section(key))):
        if _section(key) != section:
            section = _section(key)
            lines += ["", f"### {section}", "", f"| parameter | unit | meaning | {' | '.join(names)} |"]
            lines += [f"|{'---|' * (3 + len(names))}"]
        shown = next(machines[name][key] for name in names if key in machines[name])
        values = [machines[name][key].value if key in machines[name] else "–" for name in names]
        lines.append(f"| `{key}` | {shown.unit} | {shown.meaning} | {' | '.join(values)} |")
    lines += ["", "### Sources", "", "| parameter | platform | value | source |", "|---|---|---|---|"]
    for key in keys:
        by_source: dict[tuple[str, str], list[str]] = {}
        for name in names:
            if key in machines[name]:
                parameter = machines[name][key]
                by_source.setdefault((parameter.value, parameter.source), []).append(name)
        for (value, source), users in by_source.items():
            lines.append(f"| `{key}` | {', '.join(users)} | {value} | {source} |")
    return "\n".join(lines[1:]) + "\n"


def update(path: Path) -> None:
    """Rewrite the generated part of a Markdown file in place."""
    text = path.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ConfigError(f"{path} must have one line {BEGIN!r} and one line {END!r} around its tables")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    path.write_text(f"{head}{BEGIN}\n\n{markdown()}\n{END}{tail}", encoding="utf-8")


def _machine(platform: Platform) -> dict[str, Any]:
    from a2a3sim.models import build_topology

    topology = build_topology(platform, 4 if platform.topology.devices is None else platform.topology.devices)
    far = min(2, topology.devices - 1)  # not the sister die
    return {
        "name": platform.name,
        "hash": platform.hash,
        "title": platform.title,
        "devices": platform.topology.devices,
        "topology": platform.topology.kind,
        "link_bandwidth": topology.bandwidth(0, far),
        "latency_ps": topology.latency(0, far),
    }


def _line(row: dict[str, Any]) -> list[str]:
    devices = "any" if row["devices"] is None else str(row["devices"])
    link = "unlimited" if row["link_bandwidth"] is None else format_rate(row["link_bandwidth"])
    link += f", {format_time(row['latency_ps'])}"
    return [row["name"], row["hash"], devices, row["topology"], link, row["title"]]


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else str(value)
    return list(value) if isinstance(value, tuple) else value


def _section(key: str) -> str:
    return key.partition(".")[0] if "." in key else "planes"


def _sections(keys) -> dict[str, None]:
    return dict.fromkeys(_section(key) for key in keys)


def main(arguments: list[str]) -> int:
    """Rewrite the tables of the named file, or print them."""
    try:
        if arguments:
            update(Path(arguments[0]))
        else:
            print(markdown())
    except (ConfigError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
