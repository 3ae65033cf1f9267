"""``a2a3sim flows FILE.csv``."""

from typing import Annotated

import typer

from a2a3sim.cli.options import Json


def command(
    file: Annotated[str, typer.Argument(help="CSV with case, flow, links, …")], json: Json = None
) -> None:
    """Bare flows on the interconnect model alone: print when each finishes.

    Columns: case, flow, links (u0+d1), link_capacity_Bps (25000000000+…), start_s, alpha_s, bytes.
    """
    from a2a3sim.cli.output import print_report
    from a2a3sim.experiments.flows import run_flows

    rows = run_flows(file)
    if json != "-":
        width = max((len(r["case"]) for r in rows), default=4)
        print(f"{'case':{width}}  flow  finish")
        for row in rows:
            print(f"{row['case']:{width}}  {row['flow']:4}  {row['finish_ps']} ps")
    if json is not None:
        print_report(json, "flows", [], rows)
