"""The Typer application: one module a command."""

import typer
import typer.core

from a2a3sim.cli import (
    check,
    check_trace,
    compare,
    diff,
    explain,
    flows,
    perf,
    platforms,
    plot,
    run,
    stress,
    sweep,
    timeline,
    trace,
)


class _Command(typer.core.TyperCommand):
    """A command whose help lists its flags by panel."""

    def format_options(self, ctx, formatter) -> None:
        panels: dict[str, list] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            panel = "Arguments" if param.param_type_name == "argument" else "Options"
            record = param.get_help_record(ctx)
            if record is not None:
                panels.setdefault(getattr(param, "rich_help_panel", None) or panel, []).append(record)
        for panel, records in panels.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)


app = typer.Typer(
    name="a2a3sim",
    help="Simulate collective kernels on Ascend A2/A3 NPUs: right, how fast, why, what every link carried.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_SCRIPT = {"allow_interspersed_args": False, "ignore_unknown_options": False}  # the rest is the script's own

_MODULES = (
    compare, diff, flows, perf, platforms, sweep, plot, timeline, check, check_trace, trace, explain, stress, run,
)  # fmt: skip
for _module in _MODULES:
    _context = _SCRIPT if _module in (explain, stress, run) else None
    _name = _module.__name__.rpartition(".")[2].replace("_", "-")
    app.command(_name, cls=_Command, context_settings=_context)(_module.command)


def _version(value: bool) -> None:
    if value:
        from a2a3sim.result import simulator_version

        print(f"a2a3sim {simulator_version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass
