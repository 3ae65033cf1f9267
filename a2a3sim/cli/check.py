"""``a2a3sim check COLLECTIVE``: numerics against numpy."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from a2a3sim.cli import options as o
from a2a3sim.config import RunConfig

# What is right does not depend on the machine.
_SETTINGS = o.run_settings(
    "machine", "platform_overrides", "seed", "skew", "fences", "checks", machine="ideal", checks=False
)


@o.grouped
def command(
    collective: Annotated[
        str, typer.Argument(help="allreduce, allgather, reduce_scatter, broadcast, all_to_all.")
    ],
    algorithms: Annotated[str, typer.Option("--algorithm", "--algorithms", help="Names, or all.")] = "all",
    ranks: Annotated[str, typer.Option("--ranks", help="Numbers of ranks: 2:17, 2,4,8.")] = "2:17",
    dtypes: Annotated[
        str, typer.Option("--dtypes", "--dtype", help="fp32, fp16, bf16, int32, int16, int8, or all.")
    ] = "all",
    count: Annotated[
        int | None,
        typer.Option("--count", help="Elements per rank, N. Default: a number that nothing divides."),
    ] = None,
    cores: o.Cores = None,
    *,
    config: Annotated[RunConfig, _SETTINGS],
    output: o.OutputOptions,
) -> int:
    """Run collectives on many numbers of ranks and element types, and hold every element against numpy.

    Wrong is what differs, bit for bit, from numpy in the kernel's own order. Exact: whole-numbered inputs whose
    sums the type holds exactly gave exactly these sums; not claimed where more ranks could leave that range.
    Random floats must stay within (P-1)·u/(1-(P-1)·u) of the float64 sum, relative to the sum of magnitudes, with
    u the unit round-off of the type (fp32 2^-24, fp16 2^-11, bf16 2^-8).
    """
    from a2a3sim.cli.output import note
    from a2a3sim.experiments.check import check_point, dtypes_of, plan
    from a2a3sim.experiments.perf import algorithms_of
    from a2a3sim.experiments.sweep_axes import expand

    names = algorithms_of(collective, o.parse_list("--algorithm", algorithms))
    types = dtypes_of(o.parse_list("--dtypes", dtypes))
    points, left_out = plan(collective, names, expand("--ranks", ranks), types, count, cores, config)
    output.check_number(len(points), f"here are {len(points)}")
    for reason, number in left_out.items():
        note(f"left out {number}: {reason}")
    checked = []
    for done, point in enumerate(points, 1):
        verdict, outcome = check_point(point)
        checked.append(verdict)
        output.add(f"{point.algorithm} {point.ranks} {point.dtype}", outcome.trace, outcome.result)
        if sys.stderr.isatty():
            print(f"\r{done} of {len(points)}", end="" if done < len(points) else "\r\033[K", file=sys.stderr)
    runs = [verdict.result for verdict in checked]
    if output.prints:
        print("\n".join(_table(checked)))
    output.write("check", runs, [verdict.as_dict() for verdict in checked])
    return 0 if all(verdict.ok for verdict in checked) and not output.failed(runs) else 1


def _table(checked: Sequence) -> Iterator[str]:
    """A line per algorithm and type, and one for each failure."""
    groups: dict[tuple[str, str], list] = {}
    for verdict in checked:
        groups.setdefault((verdict.algorithm, verdict.dtype), []).append(verdict)
    wide = max(len(name) for name, _ in groups)
    yield f"{'':{wide}}  {'':5}  {'ranks':>7}  {'#wrong':>6}  {'exact':>9}  {'worst error':>11}  {'allowed':>8}"
    for (name, dtype), own in groups.items():
        ranks = sorted(verdict.ranks for verdict in own)
        span = f"{ranks[0]}..{ranks[-1]}" if len(ranks) > 1 else str(ranks[0])
        claimed = [verdict for verdict in own if verdict.exact is not None]
        exact = f"{sum(v.exact for v in claimed)} of {len(claimed)}" if claimed else "no claim"
        floats = [verdict for verdict in own if verdict.error is not None]
        worst = max(floats, key=lambda v: v.error / v.allowed if v.allowed else v.error, default=None)
        error = f"{worst.error:.1e}" if worst else "none"
        allowed = f"{worst.allowed:.1e}" if worst else "none"
        wrong = sum(verdict.wrong for verdict in own)
        yield f"{name:{wide}}  {dtype:5}  {span:>7}  {wrong:>6}  {exact:>9}  {error:>11}  {allowed:>8}"
    bad = [verdict for verdict in checked if not verdict.ok]
    for v in bad[:20]:
        yield f"WRONG: {v.algorithm} on {v.ranks} ranks, {v.dtype}: {v.wrong} elements, exact {v.exact}, error {v.error}"
    if len(bad) > 20:
        yield f"… and {len(bad) - 20} more"
    yield f"{len(checked)} runs: {'all right' if not bad else f'{len(bad)} wrong'}"
