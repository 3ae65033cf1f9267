"""``a2a3sim plot FILE``: pictures of a finished sweep."""

from typing import Annotated

import typer

from a2a3sim.cli import options as o


def command(
    file: Annotated[str, typer.Argument(help="The CSV or Parquet file of a sweep.")],
    kinds: Annotated[
        str | None,
        typer.Option("--kind", help="time, crossover, scaling, bytes, heatmap; default: all that apply."),
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", help="Only some rows: dtype=fp32, ranks=4,8 (repeatable).")
    ] = None,
    shape: Annotated[str, typer.Option("--format", help="png or svg.")] = "png",
    out: o.Out = ".",
) -> None:
    """Draw a sweep: time and bus bandwidth by size with the bound dashed, which algorithm is fastest where, scaling
    over ranks, bytes against the closed forms, and heat maps over two machine parameters.

    Seeds are folded into median and range; whatever else varies gets a picture each. Equal files give equal
    pictures.
    """
    from pathlib import Path

    from a2a3sim.cli.output import check_writable, note
    from a2a3sim.errors import ConfigError
    from a2a3sim.experiments.plots import KINDS, draw_sweep
    from a2a3sim.experiments.plots_data import select
    from a2a3sim.experiments.sweep_output import read_rows
    from a2a3sim.units import nearest

    if shape not in ("png", "svg"):
        raise ConfigError(f"--format must be png or svg, got {shape!r}")
    chosen = o.parse_list("--kind", kinds) if kinds else []
    for kind in chosen:
        if kind not in KINDS:
            raise ConfigError(f"--kind must be one of {', '.join(KINDS)}, got {kind!r}{nearest(kind, KINDS)}")
    rows = select(read_rows(file), o.parse_pairs("--where", where))
    folder = check_writable(out, directory=True)
    for path in draw_sweep(rows, folder, Path(file).stem, chosen, f".{shape}", note):
        print(path)
