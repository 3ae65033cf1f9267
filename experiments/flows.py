"""Bare flows on the interconnect model alone: no kernels, no memory, only who shares what.

A file has one flow a row, with the columns ``case`` (flows of one case share the links), ``flow`` (its
name), ``links`` and ``link_capacity_Bps`` (both joined by ``+``, in the order of the path), ``start_s``,
``alpha_s`` (latency before its first byte) and ``bytes``. Other columns are ignored.
"""

import csv
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from a2a3sim.engine import Engine
from a2a3sim.errors import ConfigError
from a2a3sim.models import Capacity, Network, Route
from a2a3sim.units import PS_PER_S

__all__ = ["COLUMNS", "BareFlow", "read_flows", "run_flows"]

COLUMNS = ("case", "flow", "links", "link_capacity_Bps", "start_s", "alpha_s", "bytes")

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class BareFlow:
    """One row: its first byte may move at ``begin_ps``; ``links`` are (name, bytes/s)."""

    case: str
    flow: str
    links: tuple[tuple[str, int], ...]
    begin_ps: int
    nbytes: int


def read_flows(path: str | Path) -> list[BareFlow]:
    """The flows of a CSV file, in its order.

    Raises:
        ConfigError: the file cannot be read, lacks a column, or a value is wrong; names file, line, column.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, strict=True)
            header = table.fieldnames or []
            missing = [name for name in COLUMNS if name not in header]
            if missing:
                raise ConfigError(
                    f"{path}, line 1: columns must include {', '.join(COLUMNS)}; "
                    f"missing {', '.join(missing)}, got {', '.join(header) or 'an empty file'}"
                )
            rates: dict[tuple[str, str], int] = {}
            return [_Row(path, table.line_num, row).flow(rates) for row in table]
    except OSError as error:
        raise ConfigError(f"file of flows must be readable, got {str(path)!r}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"file of flows must be CSV in UTF-8, got {str(path)!r}: {error}") from None


def run_flows(path: str | Path) -> list[dict[str, Any]]:
    """``case``, ``flow`` and ``finish_ps`` of every flow of a CSV file, in its order."""
    flows = read_flows(path)
    cases: dict[str, list[int]] = {}
    for at, flow in enumerate(flows):
        cases.setdefault(flow.case, []).append(at)
    finish = [0] * len(flows)
    for members in cases.values():
        for at, time in zip(members, _run_case([flows[at] for at in members]), strict=True):
            finish[at] = time
    return [
        {"case": flow.case, "flow": flow.flow, "finish_ps": time}
        for flow, time in zip(flows, finish, strict=True)
    ]


def _run_case(flows: list[BareFlow]) -> list[int]:
    engine = Engine()
    network = Network(engine)
    capacities: dict[str, Capacity] = {}
    finish = [0] * len(flows)

    def end(flow):
        finish[flow.owner] = flow.finish

    def start(at):
        network.start(flows[at].nbytes, routes[at], end, at)

    routes = []
    for at, flow in enumerate(flows):
        for name, rate in flow.links:
            capacities.setdefault(name, Capacity(name, rate, "link"))
        routes.append(Route([(capacities[name], 1) for name, _ in flow.links], None, 0))
        engine.at(flow.begin_ps, start, at)
    engine.run()
    engine.close()
    network.close()
    return finish


class _Row:
    """One row of the file, which knows where it stands."""

    def __init__(self, path, line: int, row: dict) -> None:
        self.place = f"{path}, line {line}"
        self.row = row
        if None in row or None in row.values():
            raise ConfigError(
                f"{self.place}: a row must have as many values as there are columns, got {self._text()}"
            )

    def _text(self) -> str:
        return repr(",".join(value for value in self.row.values() if isinstance(value, str)))

    def flow(self, rates: dict[tuple[str, str], int]) -> BareFlow:
        case = self.row["case"]
        names = [name.strip() for name in self.row["links"].split("+")]
        values = self.row["link_capacity_Bps"].split("+")
        if not all(names):
            self._refuse("links", "must be names joined by +")
        if len(values) != len(names):
            self._refuse("link_capacity_Bps", f"must have {len(names)} values joined by +, one for each link")
        links = []
        for name, value in zip(names, values, strict=True):
            rate = self._whole("link_capacity_Bps", value, "bytes/s", 1)
            if rates.setdefault((case, name), rate) != rate:
                known = rates[case, name]
                self._refuse("link_capacity_Bps", f"must give link {name} of case {case} {known} as before")
            links.append((name, rate))
        begin = sum(
            self._whole(column, self.row[column], "ps", 0, PS_PER_S) for column in ("start_s", "alpha_s")
        )
        return BareFlow(
            case, self.row["flow"], tuple(links), begin, self._whole("bytes", self.row["bytes"], "bytes", 0)
        )

    def _whole(self, column: str, text: str, unit: str, least: int, scale: int = 1) -> int:
        """A value times ``scale``, which must be whole."""
        text = text.strip()
        if not _NUMBER.fullmatch(text):
            self._refuse(column, f"must be a number, whole in {unit} and at least {least}")
        value = Fraction(text) * scale
        if value.denominator != 1 or value < least:
            self._refuse(column, f"must be whole in {unit} and at least {least}")
        return value.numerator

    def _refuse(self, column: str, rule: str) -> None:
        raise ConfigError(f"{self.place}, column {column}: {rule}, got {self.row[column]!r}")
