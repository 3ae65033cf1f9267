"""``a2a3sim compare``: the main job."""

from typing import Annotated

import typer

from a2a3sim.cli import options as o


@o.grouped
def command(
    devices: o.Devices = "0,1,2,3",
    size: Annotated[str, typer.Option("--size", help="Payload per rank, N.")] = "1MiB",
    algorithms: Annotated[
        str, typer.Option("--algorithms", help="All-reduce algorithms, first = baseline.")
    ] = ("mesh,two_phase"),
    cores: o.Cores = None,
    dtype: o.Dtype = "fp32",
    seeds: Annotated[int, typer.Option("--seeds", help="Run seeds 0..K-1; print median and range.")] = 1,
    out: o.Out = ".",
    *,
    config: o.RunSettings,
    output: o.OutputOptions,
) -> int:
    """Run all-reduce algorithms on the same input and machine: cost card, timeline and traffic pictures."""
    from a2a3sim.cli.output import check_writable, note, show
    from a2a3sim.errors import ConfigError
    from a2a3sim.experiments.compare import Comparison, draw
    from a2a3sim.units import parse_size

    if seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, got {seeds}")
    folder = check_writable(out, directory=True)
    comparison = Comparison.run(
        algorithms=o.parse_list("--algorithms", algorithms),
        labels=o.parse_devices(devices),
        nbytes=parse_size(size),
        dtype=dtype,
        cores=cores,
        config=config,
        seeds=range(config.seed, config.seed + seeds),
    )
    if output.prints:
        show(*comparison.report())
    for path in draw(comparison, folder):
        note(f"wrote {path}")
    for name, outcome in comparison.typical.items():
        output.add(name, outcome.trace, outcome.result)
    output.write("compare", comparison.runs)
    return int(output.failed(comparison.runs))
