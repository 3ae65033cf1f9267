"""``a2a3sim trace FILE -o OUT.json[.gz]``: saved runs for Perfetto."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    files: Annotated[list[str], typer.Argument(help="Traces written by --save-trace.")],
    output: Annotated[
        str, typer.Option("-o", "--output", help="FILE.json or FILE.json.gz, a Chrome trace in µs.")
    ] = "trace.json.gz",
) -> int:
    """Write saved runs as a Chrome trace, which Perfetto opens, without simulating them again."""
    from a2a3sim.cli.output import check_writable, note
    from a2a3sim.cli.saved import load_runs
    from a2a3sim.reports.chrome import check_trace_path, write_trace

    check_writable(check_trace_path(output))
    note(f"wrote {write_trace(output, load_runs(files))}")
    return 0
