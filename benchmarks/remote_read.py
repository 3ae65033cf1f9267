"""What a simulated remote read costs, in bare SimPy timeouts measured in the same process.

    python benchmarks/remote_read.py [--ranks 64]

Everything is modelled and traced: per read also a notify, a wait and a vector add of the mesh all-reduce
around it. Times are CPU times, the minimum of several repetitions, garbage collection off in both.
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np
from measuring import bare_timeout_us, cpu

import a2a3sim.language as pl
from a2a3sim import DistributedConfig, RunConfig, ir
from a2a3sim.kernels import Job, find
from a2a3sim.run import Launch, host_tensors, record, resolve

REPEATS = 5
PATTERNS = [
    # name, algorithm, machine, skew, target in bare timeouts
    ("uncontended: own link per pair", "mesh", "ideal", "none", 8),
    ("symmetric on shared ports", "mesh_rotated", "ideal-switch", "none", 12),
    ("rotated with skew", "mesh_rotated", "ideal-switch", "3us", 16),
    ("peer 0 first with skew", "mesh", "ideal-switch", "3us", 30),
]


def measure(algorithm: str, ranks: int, machine: str, skew: str):
    """(CPU seconds of the simulation, of the whole call, result) for 64 KiB per rank, timing-only."""
    job = Job(ranks, 16384, pl.FP32)
    with tempfile.TemporaryDirectory() as scratch:
        compiled = ir.compile(
            find("allreduce", algorithm).build(job),
            output_dir=scratch,
            distributed_config=DistributedConfig(device_ids=list(range(ranks))),
        )
    config = RunConfig(machine=machine, timing_only=True, checks=False, skew=skew)
    x = np.zeros((ranks, 1, job.count), np.float32)
    y = np.zeros_like(x)
    best = None
    settings = resolve(config, ranks)
    for _ in range(REPEATS):
        recording = record(compiled.entry, compiled.owner, host_tensors([x, y], ["x", "y"]), ranks)
        launch = Launch(recording, settings.platform, settings.topology(), settings, settings.placement)
        spent = cpu(launch.run)
        best = spent if best is None else min(best, spent)
    whole = min(cpu(lambda: compiled(x, y, config=config)) for _ in range(REPEATS))
    return best, whole, compiled.last_run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=64)
    ranks = parser.parse_args().ranks
    unit = min(bare_timeout_us(ranks) for _ in range(REPEATS))
    print(f"bare SimPy timeout, {ranks} processes: {unit:.3f} us")
    print(
        f"{'pattern':32} {'events':>8} {'switches':>8} {'ops/s':>9} {'us/read':>8} {'timeouts':>8} {'target':>6} {'whole':>6}"
    )
    for name, algorithm, machine, skew, target in PATTERNS:
        spent, whole, result = measure(algorithm, ranks, machine, skew)
        reads = ranks * (ranks - 1)
        each = spent / reads * 1e6
        print(
            f"{name:32} {result.cost.events:8} {result.cost.switches:8} {result.cost.operations / spent:9.0f} "
            f"{each:8.2f} {each / unit:8.1f} {target:6} {whole / reads * 1e6 / unit:6.1f}"
        )
    print(
        "timeouts: simulation of one remote read with its notify, wait and add; whole: with result and metrics"
    )


if __name__ == "__main__":
    main()
