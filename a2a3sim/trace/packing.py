"""A trace as plain data and back: JSON and columns of whole numbers, a column for each attribute of operations.

The lists below say what is kept of each record: all that readers of a trace look at. What the machine needed while
the run went on (tiles, waiting work, the bytes of memories) is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from operator import attrgetter
from typing import Any

from a2a3sim.models.bottleneck import OVER, Flow
from a2a3sim.models.capacity import Capacity, CapacityUse
from a2a3sim.models.fabric import Path
from a2a3sim.models.memory import Access, Memory
from a2a3sim.models.operation import Lane, Operation, operation

__all__ = ["pack", "unpack"]

# Of an operation, by how a column holds it: beside these, site, cell, flow, path and operands.
_NUMBERS = (
    "seq", "begun", "issued", "start", "end", "drained", "visible", "applied", "order", "nbytes", "makes",
)  # fmt: skip
_WORDS = ("action", "atomic", "peer", "seen", "value")  # texts, numbers or None, mostly the same few
_OPERATIONS = ("by", "staged")
_REASONS = ("after", "cause")  # (reason, operation or None), or None
_ACCESSES = ("reads", "writes")

_LANE = ("index", "call", "dispatch", "task", "device", "rank", "core", "kernel", "block", "blocks")
_LANE_TIMES = ("start", "end", "ub_peak_bytes")
_MEMORY = ("id", "name", "kind", "device", "rank", "nbytes")
_DISPATCH = ("index", "kernel", "rank", "device", "cores", "start", "end", "call")
_FACTS = ("fences", "skew_ps", "atomic_ps", "kept", "set_writes_line", "granule")


class _Pool:
    """Different values, numbered from 0 in order of first use; None is -1."""

    def __init__(self, values: Iterable[Hashable] = ()) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Hashable, int] = {None: -1}
        self.numbers(values)

    def number(self, value: Any, key: Hashable) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.values)
            self.values.append(value)
        return found

    def numbers(self, values: Iterable[Any]) -> list[int]:
        return [self.number(value, value) for value in values]

    def words(self, values: Iterable[Any]) -> list[int]:
        """The same for what JSON holds, where True is not 1."""
        return [self.number(value, (type(value), value)) for value in values]


def _flat(rows: Sequence[Sequence[Any]]) -> tuple[list[int], list[Any]]:
    """The lengths of rows, and their values one after the other."""
    return [len(row) for row in rows], [value for row in rows for value in row]


def _rows(values: Sequence[Any], lengths: Sequence[int]) -> list[Any]:
    """What `_flat` has flattened, each row of the type of ``values``."""
    return [values[end - n : end] for n, end in zip(lengths, accumulate(lengths), strict=True)]


def pack(trace: Any, place: Callable[[Any], tuple[Any, ...]]) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """The header and the columns of a trace.

    Args:
        place: from an operation's site to (file, line, source, function).
    """
    operations = list(trace.operations())
    number: dict[Operation | None, int] = {op: k for k, op in enumerate(operations)}
    number[None] = -1
    words, flows, paths, accesses = _Pool(), _Pool(), _Pool(), _Pool()
    sites, capacities, memories = _Pool(), _Pool(), _Pool(trace.memories)
    columns: dict[str, list[int]] = {}

    def each(name: str) -> list[Any]:
        return list(map(attrgetter(name), operations))

    def site(where: Any) -> int:
        return -1 if where is None else sites.number(where, (id(where[0]), where[1]))

    for name in _NUMBERS:
        columns[name] = each(name)
    for name in ("kind", "pipe", *_WORDS):
        columns[name] = words.words(each(name))
    for name in _OPERATIONS:
        columns[name] = [number[op] for op in each(name)]
    for name in _REASONS:
        pairs = [(None, None) if pair is None else pair for pair in each(name)]
        columns[f"{name} reason"] = words.words(reason for reason, _ in pairs)
        columns[name] = [number[op] for _, op in pairs]
    for name in _ACCESSES:
        columns[f"{name} length"], values = _flat(each(name))
        columns[name] = accesses.numbers(values)
    columns["operands length"], values = _flat(each("operands"))
    columns["operands"] = [number[op] for op in values]
    columns["site"] = [site(where) for where in each("site")]
    cells = [(None, -1) if cell is None else cell for cell in each("cell")]
    columns["cell memory"] = memories.numbers(memory for memory, _ in cells)
    columns["cell offset"] = [offset for _, offset in cells]
    columns["path"] = paths.numbers(each("path"))
    columns["flow"] = flows.numbers(each("flow"))
    for name in ("nbytes", "start", "finish"):
        columns[f"flow {name}"] = [getattr(flow, name) for flow in flows.values]
    columns["flow cuts length"], values = _flat([flow.cuts for flow in flows.values])
    columns["flow cut"] = [time for time, _ in values]
    columns["flow bottleneck"] = words.words(name for _, name in values)
    columns["access memory"] = memories.numbers(access.memory for access in accesses.values)
    for name in Access._fields[1:]:
        columns[f"access {name}"] = [getattr(access, name) for access in accesses.values]
    header = {
        "lanes": [
            [
                [getattr(lane, name) for name in (*_LANE, *_LANE_TIMES)],
                len(lane.operations),
                _last(lane, number),
            ]
            for lane in trace.lanes
        ],
        "dispatches": [[getattr(d, name) for name in _DISPATCH] for d in trace.dispatches],
        "capacities": list(trace.capacities),
        "edges": trace.edges,
        "domains": trace.domains,
        "builtins": sorted(map(site, trace.builtins)),
        **{name: getattr(trace, name) for name in _FACTS},
        "own memories": len(trace.memories),
        "memories": [
            [[getattr(m, name) for name in _MEMORY], m.buffer, m.signal, m.cell_shape]
            for m in memories.values
        ],
        "paths": [_packed_path(path, capacities) for path in paths.values],
        "limits": [[c.name, c.rate, c.kind] for c in capacities.values],
        "sites": [[*place(where), where[1]] for where in sites.values],
        "words": words.values,
    }
    return header, columns


def _last(lane: Lane, number: dict[Operation | None, int]) -> list[Any] | None:
    return None if lane.last is None else [lane.last[0], number[lane.last[1]]]


def _packed_path(path: Path, capacities: _Pool) -> list[Any]:
    uses = [
        [capacities.number(capacity, capacity), weight.numerator, weight.denominator]
        for capacity, weight in path.uses
    ]
    bound = None if path.route is None else path.route.bound
    return [uses, bound, path.head, path.tail, path.ack, path.load]


def unpack(
    header: dict[str, Any],
    columns: dict[str, list[int]],
    site: Callable[..., Any],
    dispatch: Callable[..., Any],
) -> dict[str, Any]:
    """The fields of the trace that `pack` was given.

    Args:
        site: makes a place of (file, line, source, function); operations have (place, number) as their sites.
        dispatch: makes a DispatchRecord of its fields.
    """
    words, sites = [*header["words"], None], [(site(*row[:-1]), row[-1]) for row in header["sites"]]
    memories = [_memory(*row) for row in header["memories"]]
    lanes = [Lane(*values[: len(_LANE)]) for values, _, _ in header["lanes"]]
    owners = [lane for lane, row in zip(lanes, header["lanes"], strict=True) for _ in range(row[1])]

    def listed(name: str, values: Sequence[Any]) -> list[Any]:
        """The column as members of a list that has None at its end, where -1 finds it."""
        return [values[k] for k in columns[name]]

    operations: list[Any] = list(
        map(operation, owners, listed("kind", words), listed("pipe", words), listed("site", [*sites, None]))
    )
    known = [*operations, None]
    access = map(
        Access,
        listed("access memory", memories),
        *(columns[f"access {name}"] for name in Access._fields[1:]),
    )
    accesses = list(access)
    cuts = list(zip(columns["flow cut"], listed("flow bottleneck", words), strict=True))
    limits = [Capacity(*row) for row in header["limits"]]
    paths = [_path(limits, *row) for row in header["paths"]]
    taken = dict(zip(columns["flow"], columns["path"], strict=True))
    flows = [
        _flow(paths[taken[k]], *row)
        for k, row in enumerate(
            zip(
                *(columns[f"flow {name}"] for name in ("nbytes", "start", "finish")),
                _rows(cuts, columns["flow cuts length"]),
                strict=True,
            )
        )
    ]
    values: dict[str, list[Any]] = {name: columns[name] for name in _NUMBERS}
    values |= {name: listed(name, words) for name in _WORDS}
    values |= {name: listed(name, known) for name in _OPERATIONS}
    values |= {name: _pairs(listed(f"{name} reason", words), listed(name, known)) for name in _REASONS}
    values |= {name: _rows(tuple(listed(name, accesses)), columns[f"{name} length"]) for name in _ACCESSES}
    values["operands"] = _rows(tuple(listed("operands", known)), columns["operands length"])
    values["cell"] = _pairs(listed("cell memory", [*memories, None]), columns["cell offset"])
    values["path"], values["flow"] = listed("path", [*paths, None]), listed("flow", [*flows, None])
    _fill(operations, values)
    parts = _rows(operations, [row[1] for row in header["lanes"]])
    for lane, part, (fields, _, last) in zip(lanes, parts, header["lanes"], strict=True):
        lane.operations = part
        lane.start, lane.end, lane.ub_peak_bytes = fields[len(_LANE) :]
        lane.last = None if last is None else (last[0], known[last[1]])
    return {
        "lanes": lanes,
        "dispatches": [dispatch(**dict(zip(_DISPATCH, row, strict=True))) for row in header["dispatches"]],
        "memories": memories[: header["own memories"]],
        "capacities": [CapacityUse(*row) for row in header["capacities"]],
        "edges": [(tuple(earlier), tuple(later)) for earlier, later in header["edges"]],
        "domains": {name: tuple(devices) for name, devices in header["domains"].items()},
        "builtins": {sites[k] for k in header["builtins"]},
        **{name: header[name] for name in _FACTS},
    }


def _pairs(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[Any, Any] | None]:
    return [None if pair[0] is None else pair for pair in zip(first, second, strict=True)]


def _fill(operations: list[Any], values: dict[str, list[Any]]) -> None:
    """Set the attributes of operations, of each class those that it can hold."""
    kinds: dict[type, list[int]] = {}
    for k, op in enumerate(operations):
        kinds.setdefault(type(op), []).append(k)
    for name, column in values.items():
        if len(column) != len(operations):
            raise ValueError(f"column {name} has {len(column)} of {len(operations)} operations")
        for kind, members in kinds.items():
            slot = getattr(kind, name)
            if hasattr(slot, "__set__") and getattr(slot, "fset", True) is not None:
                # A deque that keeps nothing runs a map without bytecode for each operation.
                own = map(operations.__getitem__, members)
                deque(map(slot.__set__, own, map(column.__getitem__, members)), 0)


def _memory(fields: list[Any], buffer: Any, signal: bool, cell_shape: list[int] | None) -> Memory:
    made = dict(zip(_MEMORY, fields, strict=True))
    memory = Memory(**made, data=None, buffer=buffer)
    memory.signal = signal
    memory.cell_shape = None if cell_shape is None else tuple(cell_shape)
    return memory


def _flow(path: Path, nbytes: int, start: int, finish: int, cuts: list[Any]) -> Flow:
    if path.route is None:
        raise ValueError("a flow must take a path that something limits")
    flow = Flow(nbytes, path.route, start, _over, None, 0)
    flow.finish, flow.cuts, flow.bottleneck = finish, cuts, OVER
    return flow


def _over(_: Flow) -> None:
    """Nobody waits for the end of a flow that is read from a file."""


def _path(
    limits: list[Capacity],
    uses: list[list[int]],
    bound: int | None,
    head: int,
    tail: int,
    ack: int,
    load: bool,
) -> Path:
    weighed = [(limits[k], above if below == 1 else Fraction(above, below)) for k, above, below in uses]
    return Path(weighed, bound, head, tail, ack, load)
