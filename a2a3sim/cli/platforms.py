"""``a2a3sim platforms [NAME]``."""

from typing import Annotated

import typer

from a2a3sim.cli import options as o
from a2a3sim.config import RunConfig


@o.grouped
def command(
    name: Annotated[str | None, typer.Argument(help="A platform name or a TOML file.")] = None,
    json: o.Json = None,
    *,
    config: Annotated[RunConfig, o.run_settings("platform_overrides")],
) -> None:
    """List the machines, or explain one: every parameter with its unit, value and source."""
    import json as json_text

    from a2a3sim.cli.output import note
    from a2a3sim.experiments.platforms import describe, report
    from a2a3sim.files import write_whole

    changes = dict(config.platform_overrides)
    if json is None:
        describe(name, overrides=changes)
    elif json == "-":
        print(json_text.dumps(report(name, changes), indent=2))
    else:
        write_whole(json, json_text.dumps(report(name, changes), indent=2) + "\n")
        note(f"wrote {json}")
