"""``a2a3sim platforms [NAME]``."""

from typing import Annotated

import typer

from a2a3sim.cli.options import Json, Overrides, parse_pairs


def command(
    name: Annotated[str | None, typer.Argument(help="A platform name or a TOML file.")] = None,
    overrides: Overrides = None,
    json: Json = None,
) -> None:
    """List the machines, or explain one: every parameter with its unit, value and source."""
    import json as json_text

    from a2a3sim.cli.output import note, write_text
    from a2a3sim.experiments.platforms import describe, report

    changes = parse_pairs("--set", overrides)
    if json is None:
        describe(name, overrides=changes)
    elif json == "-":
        print(json_text.dumps(report(name, changes), indent=2))
    else:
        write_text(json, json_text.dumps(report(name, changes), indent=2) + "\n")
        note(f"wrote {json}")
