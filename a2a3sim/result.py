"""What one run yields: the RunResult, versioned as ``a2a3sim.run/1``, and the report around several of them.

Times are integers in picoseconds, counted from the instant at which the host launched the run; sizes are
integers in bytes. Two equal runs give equal results except for ``cost.wall_s`` and ``cost.operations_per_s``.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WrapSerializer,
    WrapValidator,
    model_serializer,
)

from a2a3sim.errors import ConfigError

__all__ = [
    "REPORT_SCHEMA", "RUN_SCHEMA", "Cost", "Dispatch", "Finding", "FindingSite", "LinkUse", "Numerics", "PairTraffic",
    "PathSegment", "Phase", "PipeBusy", "RankUse", "Report", "Rows", "RunResult", "Witness", "simulator_version",
]  # fmt: skip

RUN_SCHEMA = "a2a3sim.run/1"
REPORT_SCHEMA = "a2a3sim.report/1"


@lru_cache
def simulator_version() -> str:
    """The version of the installed package; ``unknown`` in a tree that was never installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("a2a3sim")
    except PackageNotFoundError:
        return "unknown"


def _finite(value: Any) -> Any:
    """JSON has neither NaN nor infinity: an error that is not finite is null, its explanation says why."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


_Error = Annotated[float | None, BeforeValidator(_finite)]


class _Record(BaseModel):
    """A part of a result. Unknown keys are errors, since the schema is versioned."""

    model_config = ConfigDict(extra="forbid", from_attributes=True)


class PipeBusy(_Record):
    """Time in which each pipe worked, summed over the rank's cores.

    S counts issuing only (waiting is `RankUse.wait_ps`), MTE2 the time with at least one load in flight,
    MTE3 with at least one store whose bytes have not all left, V the instructions' durations.
    """

    S: int = 0
    MTE2: int = 0
    V: int = 0
    MTE3: int = 0
    SDMA: int = 0


class RankUse(_Record):
    """What one rank did. Bytes count at the rank whose core issued; a rank without a kernel has no times."""

    rank: int
    start_ps: int | None
    end_ps: int | None
    remote_read_bytes: int = 0
    remote_write_bytes: int = 0
    local_read_bytes: int = 0
    local_write_bytes: int = 0
    notifies: int = 0
    waits: int = 0
    wait_ps: int = 0
    pipe_busy_ps: PipeBusy = Field(default_factory=PipeBusy)
    ub_peak_bytes: int = 0

    @property
    def remote_bytes(self) -> int:
        """Everything this rank's cores moved over links, read and written."""
        return self.remote_read_bytes + self.remote_write_bytes


class Dispatch(_Record):
    """One kernel started on one device by the host body."""

    index: int
    kernel: str
    rank: int
    cores: int
    start_ps: int | None
    end_ps: int | None


class PairTraffic(_Record):
    """Payload moved from src's memory to dst's memory or core, whoever asked for it."""

    src: int
    dst: int
    bytes: int


class LinkUse(_Record):
    """One capacity of the fabric: payload before efficiency, time with at least one flow."""

    name: str
    bytes: int
    busy_ps: int
    utilisation: float
    peak_flows: int


_Row = TypeVar("_Row", bound=_Record)


class Rows(Sequence[_Row]):
    """A table of a result, made when somebody first looks at it: large runs have thousands of rows.

    Args:
        row: the class of its rows.
        make: their fields.
    """

    def __init__(self, row: type[_Row], make: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
        self._parts = row, make

    @cached_property
    def _rows(self) -> list[_Row]:
        row, make = self.__dict__.pop("_parts")
        return [row(**fields) for fields in make()]

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return self._rows == (other._rows if isinstance(other, Rows) else other)

    __hash__ = None  # type: ignore[assignment]  # as of a list, with which it compares

    def __repr__(self) -> str:
        return repr(self._rows)


_OrRows = (
    WrapValidator(lambda value, validate: value if isinstance(value, Rows) else validate(value)),
    WrapSerializer(lambda value, serialise: serialise(list(value))),
)


class Phase(_Record):
    """What the ranks do between two barriers, or inside ``with pl.phase(name)``: the union over ranks."""

    name: str
    start_ps: int
    end_ps: int
    remote_bytes: int


class PathSegment(_Record):
    """One stretch of the critical path; the segments abut and add up to ``kernel_ps``."""

    rank: int
    what: str
    cause: str  # why it began then: start pipe operand space fence line signal issue dispatch
    spent_on: str  # issue latency bandwidth:<capacity> vector wait atomic launch
    start_ps: int
    end_ps: int


class FindingSite(_Record):
    """An operation of the user's program that takes part in a finding."""

    file: str
    line: int
    source: str = ""
    rank: int | None = None
    operation: str = ""
    time_ps: int | None = None
    call: int = 0
    dispatch: int = 0


class Witness(_Record):
    """A schedule in which a race bites, or the word that none was found.

    ``changes`` are the bytes that differ: ``memory``, ``rank``, ``bytes`` (first, one past the last),
    ``before``, ``after`` and what read or wrote them.
    """

    shown: bool
    tries: int
    delay: str | None = None  # as --delay takes it
    seed: int | None = None
    changes: list[dict[str, Any]] = []
    message: str = ""


class Finding(_Record):
    """A diagnosed fault: what can go wrong on another schedule, and the cheapest change that fixes it.

    ``suppressed`` is the reason for which somebody accepted it; ``witness`` stands only where one was looked for.
    """

    kind: str
    subtype: str | None = None
    severity: Literal["error", "warning", "note"]
    ranks: list[int] = []
    sites: list[FindingSite] = []
    where: Any = None  # memory object and byte or cell range
    message: str
    fix: str = ""
    suppressed: str | None = None
    witness: Witness | None = None

    @property
    def counts(self) -> bool:
        """Whether it is more than a note and nobody has accepted it."""
        return self.severity != "note" and self.suppressed is None

    @model_serializer(mode="wrap")
    def _without_what_is_not_there(self, handler):
        data = handler(self)
        return {k: v for k, v in data.items() if v is not None or k not in ("suppressed", "witness")}


class Numerics(_Record):
    """The result beside its golden."""

    ok: bool
    wrong: int = 0
    max_abs_error: _Error = None
    max_rel_error: _Error = None
    explanation: str = ""


class Cost(_Record):
    """What the simulation itself cost."""

    wall_s: float = 0.0
    events: int = 0
    switches: int = 0
    operations: int = 0
    operations_per_s: float = 0.0


with warnings.catch_warnings():
    # pydantic 1 had a method called `schema`; the field of that name is what the format asks for.
    warnings.filterwarnings("ignore", message='.*"schema".*shadows.*')

    class RunResult(_Record):
        """One call with its inputs, platform and seed.

        ``bound_ps`` is this algorithm's shortest latency chain plus the largest, over capacities, of the
        bytes it must carry ÷ rate; None where the kernel states no closed form. ``sync_ps`` counts from
        the last rank's start, ``kernel_ps`` from the first's, ``total_ps`` from the host's launch.
        ``verdict`` is what a checked run without errors and warnings is pronounced to be, with its premises.
        """

        schema: Literal["a2a3sim.run/1"] = RUN_SCHEMA  # type: ignore[assignment]  # shadows what pydantic keeps for its old users
        version: str = Field(default_factory=simulator_version)
        program: str
        algorithm: str | None = None
        platform: str
        platform_hash: str
        overrides: dict[str, Any] = {}
        seed: int = 0
        skew_ps: int = 0
        fences: str = "statement"
        timing_only: bool = False
        ranks: int
        device_labels: list[int | str] = []
        placement: list[int] = []
        cores: int = 1
        dtype: str | None = None
        bytes_per_rank: int | None = None
        kernel_ps: int
        sync_ps: int
        total_ps: int
        bound_ps: int | None = None
        per_rank: list[RankUse] = []
        dispatches: list[Dispatch] = []
        pairs: Annotated[Sequence[PairTraffic], *_OrRows] = []
        links: Annotated[Sequence[LinkUse], *_OrRows] = []
        phases: list[Phase] = []
        barriers: int = 0
        rounds: int = 0
        critical_path: list[PathSegment] = []
        findings: list[Finding] = []
        # For people; the JSON's fields are what the schema of this version has.
        verdict: str | None = Field(default=None, exclude=True)
        numerics: Numerics | None = None
        cost: Cost = Field(default_factory=Cost)

        @property
        def ok(self) -> bool:
            """No finding of severity error or warning that nobody accepted, and right numerics where there is a golden."""
            right = self.numerics is None or self.numerics.ok
            return right and not any(finding.counts for finding in self.findings)

        @property
        def max_remote_bytes(self) -> int:
            """Remote bytes of the rank that moved most: what a cost card calls bytes per rank."""
            return max((use.remote_bytes for use in self.per_rank), default=0)

        @property
        def percent_of_bound(self) -> float | None:
            """How close the run came to its bound; None without a bound."""
            return (
                None if self.bound_ps is None or not self.kernel_ps else 100 * self.bound_ps / self.kernel_ps
            )

        def to_json(self, indent: int | None = None) -> str:
            """The result as JSON text, keys in the order of the schema."""
            return self.model_dump_json(indent=indent)

        @classmethod
        def from_json(cls, text: str | bytes) -> RunResult:
            """Read what `to_json` wrote.

            Raises:
                ConfigError: the text is not a result of this schema version.
            """
            return _read(cls, text)

    class Report(_Record):
        """What ``--json`` prints: the command, its runs and, where it has one, its own table."""

        schema: Literal["a2a3sim.report/1"] = REPORT_SCHEMA  # type: ignore[assignment]  # as above
        command: str
        runs: list[RunResult] = []
        rows: list[dict[str, Any]] | None = None

        @model_serializer(mode="wrap")
        def _without_empty_table(self, handler):
            data = handler(self)
            if self.rows is None:
                data.pop("rows", None)
            return data

        def to_json(self, indent: int | None = None) -> str:
            """The report as JSON text, keys in the order of the schema."""
            return self.model_dump_json(indent=indent)

        @classmethod
        def from_json(cls, text: str | bytes) -> Report:
            """Read what `to_json` wrote; the JSON of a single run becomes a report of one.

            Raises:
                ConfigError: the text is neither a report nor a result of this schema version.
            """
            try:
                single = json.loads(text).get("schema") == RUN_SCHEMA
            except (ValueError, AttributeError):
                single = False  # _read says what is wrong
            return cls(command="run", runs=[RunResult.from_json(text)]) if single else _read(cls, text)


def _read(cls, text):
    try:
        return cls.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        shown = repr(first.get("input"))
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        schema = cls.model_fields["schema"].default
        raise ConfigError(f"a result must follow {schema}: {where}: {first['msg']}, got {shown}") from None
