"""``a2a3sim perf COLLECTIVE``: the performance table."""

from typing import Annotated

import typer

from a2a3sim.cli import options as o

_FORMATS = ("table", "hccl", "csv", "json")


@o.grouped
def command(
    collective: Annotated[
        str, typer.Argument(help="allreduce, allgather, reduce_scatter, broadcast, all_to_all.")
    ],
    algorithms: Annotated[
        str, typer.Option("--algorithm", "--algorithms", help="One or several, or all.")
    ] = "all",
    first: Annotated[str, typer.Option("-b", "--minbytes", help="Smallest size.")] = "1KiB",
    last: Annotated[str, typer.Option("-e", "--maxbytes", help="Largest size.")] = "1MiB",
    factor: Annotated[int, typer.Option("-f", "--stepfactor", help="Factor between sizes.")] = 4,
    step: Annotated[str | None, typer.Option("-i", "--stepbytes", help="Step between sizes instead.")] = None,
    devices: o.Devices = "0-7",
    shape: Annotated[
        str, typer.Option("--format", help="table (nccl-tests), hccl (hccl_test), csv or json.")
    ] = "table",
    cores: o.Cores = None,
    dtype: o.Dtype = "fp32",
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", help="Processes; each needs the memory of its run.")
    ] = 1,
    *,
    config: o.RunSettings,
    output: o.OutputOptions,
) -> int:
    """Time a collective over sizes: the columns and definitions of nccl-tests.

    Sizes are nccl-tests': for all-gather, reduce-scatter and all-to-all P times the block of one peer. There
    are no warm-up and repeat flags: the machine is deterministic, so one run is the average of any number.
    #wrong counts elements that differ from numpy in the kernel's own order; with --timing-only it is N/A.
    The last column of each algorithm is its closed-form bound in percent of its time.
    """
    from a2a3sim.cli.output import note, print_report
    from a2a3sim.errors import ConfigError
    from a2a3sim.experiments.perf import algorithms_of, plan, run_perf, sizes_between
    from a2a3sim.reports.heading import header
    from a2a3sim.reports.table import csv_text, hccl_lines, nccl_lines
    from a2a3sim.units import nearest, parse_size

    if shape not in _FORMATS:
        raise ConfigError(
            f"--format must be one of {', '.join(_FORMATS)}, got {shape!r}{nearest(shape, _FORMATS)}"
        )
    names = o.parse_list("--algorithm", algorithms)
    chosen = algorithms_of(collective, names)
    sizes = sizes_between(
        parse_size(first), parse_size(last), factor, None if step is None else parse_size(step)
    )
    if jobs < 1:
        raise ConfigError(f"-j must be at least 1, got {jobs}")
    for flag, path in (("--trace", output.trace), ("--save-trace", output.save_trace)):
        if path is not None and jobs > 1:
            raise ConfigError(f"{flag} needs the runs in this process: leave -j away")
    labels = o.parse_devices(devices)
    points = plan(collective, chosen, sizes, labels, dtype, cores, config, names == ["all"], note)
    rows = []
    for row, outcome in run_perf(points, jobs):
        rows.append(row)
        if outcome is not None:
            output.add(f"{row.algorithm} {row.size} B", outcome.trace, outcome.result)
    runs = [row.result for row in rows]
    table = [row.as_dict() for row in rows]
    if output.prints and shape == "table":
        print("\n".join(nccl_lines(rows, header(runs[0]))))
    elif output.prints and shape == "hccl":
        print("\n".join(hccl_lines(rows)))
    elif output.prints and shape == "csv":
        print(csv_text(table), end="")
    elif output.prints:
        print_report("-", "perf", runs, table)
    output.write("perf", runs, table)
    return int(output.failed(runs))
