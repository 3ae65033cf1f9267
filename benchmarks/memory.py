"""Memory that a kept run takes per operation, on top of the process.

    python benchmarks/memory.py [--ranks 64] [--algorithm two_phase]

Resident memory before the call and after it, the result and the trace kept and everything else collected.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from pathlib import Path

import numpy as np

import a2a3sim.language as pl
from a2a3sim import DistributedConfig, RunConfig, ir
from a2a3sim.kernels import Job, find


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def compiled(algorithm: str, ranks: int):
    """The program and its argument: 64 KiB per rank."""
    job = Job(ranks, 16384, pl.FP32)
    with tempfile.TemporaryDirectory() as scratch:
        devices = DistributedConfig(device_ids=list(range(ranks)))
        program = find("allreduce", algorithm).build(job)
        return ir.compile(program, output_dir=scratch, distributed_config=devices), np.zeros(
            (ranks, 1, job.count), np.float32
        )


def main() -> None:
    """Print the operations of the run and KiB for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--algorithm", default="two_phase")
    options = parser.parse_args()
    config = RunConfig(machine="ideal-switch", timing_only=True, checks=False)
    small, x = compiled(options.algorithm, 4)
    small(x, x.copy(), config=config)  # what is loaded and built once belongs to the process
    program, x = compiled(options.algorithm, options.ranks)
    y = x.copy()
    before = resident()
    program(x, y, config=config)
    kept = resident() - before
    operations = program.last_run.cost.operations
    print(
        f"{operations} operations, {kept / 2**20:.1f} MiB: {kept / 1024 / operations:.3f} KiB per operation"
    )


if __name__ == "__main__":
    main()
