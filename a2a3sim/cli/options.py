"""Flags that many commands share, in groups: a command takes a group as one parameter.

The flags of the simulator's settings follow from `a2a3sim.config.RunConfig`. ``@grouped`` puts those of each group
into the command's signature, for Typer, and hands the command what the group makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from a2a3sim.cli.output import check_writable, failed, note, print_report
from a2a3sim.cli.saved import Saver
from a2a3sim.config import RunConfig
from a2a3sim.errors import ConfigError
from a2a3sim.setting import Setting, parse_devices, parse_list, parse_pairs

__all__ = [
    "Cores", "Devices", "Dtype", "ForcedSettings", "Group", "Jobs", "Json", "Out", "Output", "OutputOptions",
    "RunSettings", "Suppress", "Witness", "flag_of", "forced_settings", "grouped", "option", "parse_devices", "parse_list",
    "parse_pairs", "run_settings",
]  # fmt: skip

_MACHINE = "Machine and schedule"
_OUTPUT = "Output"
_MOST_TRACED = 32  # runs, where a command makes any number

Devices = Annotated[
    str, typer.Option("-d", "--devices", help="Device labels: 0,1,2,3 or 0-7; their number is P.")
]
Dtype = Annotated[str, typer.Option("--dtype", help="fp32, fp16, bf16, int32, int16 or int8.")]
Cores = Annotated[
    int | None,
    typer.Option(
        "--cores",
        help="Cores per device. Default: the platform's kernel.cores, enough that the fabric is compared.",
    ),
]
Jobs = Annotated[int | None, typer.Option("-j", "--jobs", help="Processes. Default: one a core.")]
Out = Annotated[str, typer.Option("--out", help="Directory for pictures.", rich_help_panel=_OUTPUT)]
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


FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on", help="Exit 1 from this severity on: error or warning.", rich_help_panel=_OUTPUT
    ),
]
Trace = Annotated[
    str | None,
    typer.Option(
        "--trace",
        help="Write a Chrome trace to FILE.json or FILE.json.gz; Perfetto opens it.",
        rich_help_panel=_OUTPUT,
    ),
]
SaveTrace = Annotated[
    str | None,
    typer.Option(
        "--save-trace",
        help="Save the run into FILE for check-trace, timeline, trace and diff; a k-th run into FILE with -k added.",
        rich_help_panel=_OUTPUT,
    ),
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json", help="Write the report as JSON to FILE, or - for stdout.", rich_help_panel=_OUTPUT
    ),
]


def option(name: str, kind: Any, default: Any, *flags: str, **more: Any) -> Parameter:
    """A parameter that Typer makes a flag of; ``more`` is for `typer.Option`."""
    annotation = Annotated[kind, typer.Option(*flags, **more)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


# ---- groups --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """Flags that a command takes as one parameter, annotated with this.

    Args:
        options: one parameter a flag.
        build: makes the command's value of the flags' values by name.
    """

    options: Callable[[], Iterable[Parameter]]
    build: Callable[[dict[str, Any]], Any]


def group_of(record: type) -> Group:
    """The fields of a dataclass as flags, which make an object of it."""
    hints = get_type_hints(record, include_extras=True)
    flags = [
        own.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[own.name])
        for own in signature(record).parameters.values()
    ]
    return Group(lambda: flags, lambda given: record(**given))


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Replace the parameters of a command that are groups by the groups' flags."""
    hints = get_type_hints(command, include_extras=True)
    flags: list[Parameter] = []
    groups: dict[str, tuple[Group, list[str]]] = {}
    for own in signature(command).parameters.values():
        group = getattr(hints[own.name], "__metadata__", (None,))[0]
        if isinstance(group, Group):
            several = list(group.options())
            groups[own.name] = group, [each.name for each in several]
            flags += several
        else:
            flags.append(own.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[own.name]))

    def called(**given: Any) -> Any:
        for name, (group, names) in groups.items():
            given[name] = group.build({each: given.pop(each) for each in names})
        return command(**given)

    called.__doc__ = command.__doc__
    called.__signature__ = Signature(flags)  # type: ignore[attr-defined]
    called.__annotations__ = {}  # those of the signature
    return called


# ---- settings ------------------------------------------------------------------------------------------


def flag_of(s: Setting, default: Any, name: str = "", both: bool = False, **more: Any) -> Parameter:
    """The flag of a setting; ``both``: a switch can also be turned off."""
    flag = f"{s.flag}/--no-{s.flag.removeprefix('--')}" if both else s.flag
    kind = s.kind if default is not None else s.kind | None
    return option(name or s.name, kind, default, flag, **{"help": s.help, "rich_help_panel": _MACHINE} | more)


def _chosen(only: Iterable[str], without: Iterable[str] = ()) -> list[Setting]:
    own = [s for s in RunConfig.settings() if s.flag and s.name not in set(without)]
    return [s for s in own if s.name in set(only)] if only else own


def _kernel_flags(only: Iterable[str], defaults: dict[str, Any]) -> Iterable[Parameter]:
    for s in _chosen(only):
        default = defaults.get(s.name, s.default)
        if s.name == "machine" and s.name not in defaults:
            yield flag_of(s, "a2", envvar="A2A3SIM_PLATFORM")
        elif s.kernels:
            yield flag_of(s, default if type(default) is s.kind else None, both=s.default is True)


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """RunConfig's fields of those flags that were given."""
    return {
        s.name: s.read(given[s.name])
        for s in RunConfig.settings()
        if given.get(s.name) is not None and given[s.name] != []
    }


def run_settings(*only: str, **defaults: Any) -> Group:
    """The settings of runs of shipped collectives, as a RunConfig.

    Args:
        only: fields that the command has; all without.
        defaults: where the command has its own.
    """
    return Group(partial(_kernel_flags, only, defaults), lambda given: RunConfig(**_fields(given)))


def _script_flags(without: Iterable[str]) -> Iterable[Parameter]:
    for s in _chosen((), without):
        more = {"help": "Machine; comes before what the script says."} if s.name == "machine" else {}
        yield flag_of(s, s.default if s.kind is bool else None, both=s.default is True, **more)


def _forced(given: dict[str, Any]) -> dict[str, Any]:
    forced = _fields(given)
    RunConfig(**forced)  # says what is wrong
    switches = {s.name: s.default for s in RunConfig.settings() if s.kind is bool}
    return {name: value for name, value in forced.items() if switches.get(name) is not value}


def forced_settings(*without: str) -> Group:
    """What a command imposes on the runs of a script: RunConfig's fields that were given."""
    return Group(partial(_script_flags, without), _forced)


RunSettings = Annotated[RunConfig, run_settings()]
ForcedSettings = Annotated[dict[str, Any], forced_settings()]


# ---- output --------------------------------------------------------------------------------------------


@dataclass
class Output:
    """Where the results of a command go, checked before anything runs; what is made of each run's trace.

    Raises:
        ConfigError: an unknown severity, or a file that cannot be written.
    """

    fail_on: FailOn = "error"
    trace: Trace = None
    save_trace: SaveTrace = None
    json: Json = None
    traced: list[tuple[str, Any, Any]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        failed([], self.fail_on)
        for path in (self.json, self.trace):
            if path not in (None, "-"):
                check_writable(path)
        if self.trace is not None:
            from a2a3sim.reports.chrome import check_trace_path

            check_trace_path(self.trace)
        self.saver = Saver(self.save_trace)

    @property
    def prints(self) -> bool:
        """Whether stdout is for people; else it is the JSON report."""
        return self.json != "-"

    def check_number(self, number: int, of: str) -> None:
        """ConfigError if traces of so many runs are asked for."""
        if self.keeps_traces and number > _MOST_TRACED:
            flag = "--save-trace: at most" if self.trace is None else "--trace: a trace holds at most"
            raise ConfigError(f"{flag} {_MOST_TRACED} runs, {of}")

    @property
    def keeps_traces(self) -> bool:
        """Whether `add` does something."""
        return self.trace is not None or self.save_trace is not None

    def add(self, name: str, trace: Any, result: Any) -> None:
        """A run that the traces asked for should hold."""
        self.saver.save(trace, result)
        if self.trace is not None:
            self.traced.append((name, trace, result))

    def write(self, command: str, runs: Iterable[Any], rows: Any = None) -> None:
        """Write the files that were asked for."""
        if self.trace is not None and self.traced:
            from a2a3sim.reports.chrome import write_trace

            note(f"wrote {write_trace(self.trace, self.traced)}")
        if self.json is not None:
            print_report(self.json, command, runs, rows)

    def failed(self, runs: Iterable[Any]) -> bool:
        """Whether some run has wrong numerics or a finding at or above ``--fail-on``."""
        return failed(runs, self.fail_on)


OutputOptions = Annotated[Output, group_of(Output)]
