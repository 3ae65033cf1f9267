"""``a2a3sim compare``: the main job."""

from typing import Annotated

import typer

from a2a3sim.cli import options as o


def command(
    devices: o.Devices = "0,1,2,3",
    size: Annotated[str, typer.Option("--size", help="Payload per rank, N.")] = "1MiB",
    algorithms: Annotated[
        str, typer.Option("--algorithms", help="All-reduce algorithms, first = baseline.")
    ] = ("mesh,two_phase"),
    cores: o.Cores = None,
    dtype: o.Dtype = "fp32",
    platform: o.Platform = "a2",
    overrides: o.Overrides = None,
    place: o.Place = None,
    seed: o.Seed = 0,
    seeds: o.Seeds = 1,
    skew: o.Skew = None,
    fences: o.Fences = "statement",
    slow: o.Slow = None,
    poison: o.Poison = False,
    check: o.Check = True,
    fail_on: o.FailOn = "error",
    timing_only: o.TimingOnly = False,
    out: o.Out = ".",
    trace: o.Trace = None,
    save_trace: o.SaveTrace = None,
    json: o.Json = None,
) -> int:
    """Run all-reduce algorithms on the same input and machine: cost card, timeline and traffic pictures."""
    from a2a3sim.cli.output import check_writable, failed, note, print_report, show
    from a2a3sim.cli.saved import Saver
    from a2a3sim.errors import ConfigError
    from a2a3sim.experiments.compare import Comparison, draw
    from a2a3sim.reports.chrome import check_trace_path, write_trace
    from a2a3sim.units import parse_size

    failed([], fail_on)
    if seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, got {seeds}")
    folder = check_writable(out, directory=True)
    for path in (json, trace):
        if path not in (None, "-"):
            check_writable(path)
    if trace is not None:
        check_trace_path(trace)
    saver = Saver(save_trace)
    config = o.build_config(platform, overrides, place, seed, skew, fences, slow, poison, check, timing_only)
    comparison = Comparison.run(
        algorithms=o.parse_list("--algorithms", algorithms),
        labels=o.parse_devices(devices),
        nbytes=parse_size(size),
        dtype=dtype,
        cores=cores,
        config=config,
        seeds=range(seed, seed + seeds),
    )
    if json != "-":
        show(*comparison.report())
    for picture in draw(comparison, folder):
        note(f"wrote {picture}")
    for outcome in comparison.typical.values():
        saver.save(outcome.trace, outcome.result)
    if trace is not None:
        chosen = [(name, outcome.trace, outcome.result) for name, outcome in comparison.typical.items()]
        note(f"wrote {write_trace(trace, chosen)}")
    if json is not None:
        print_report(json, "compare", comparison.runs)
    return 1 if failed(comparison.runs, fail_on) else 0
