"""The Typer application: one module a command."""

import typer

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

app = typer.Typer(
    name="a2a3sim",
    help="Simulate collective kernels on Ascend A2/A3 NPUs: right, how fast, why, what every link carried.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("compare")(compare.command)
app.command("diff")(diff.command)
app.command("flows")(flows.command)
app.command("perf")(perf.command)
app.command("platforms")(platforms.command)
app.command("sweep")(sweep.command)
app.command("plot")(plot.command)
app.command("timeline")(timeline.command)
app.command("check")(check.command)
app.command("check-trace")(check_trace.command)
app.command("trace")(trace.command)
app.command("explain", context_settings=run.CONTEXT)(explain.command)
app.command("stress", context_settings=run.CONTEXT)(stress.command)
app.command("run", context_settings=run.CONTEXT)(run.command)


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
