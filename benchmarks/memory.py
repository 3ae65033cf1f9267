"""Memory that a kept run takes per operation, on top of the process, and while it runs.

    python benchmarks/memory.py [--ranks 64] [--algorithm two_phase]

Bytes of Python's allocator, result and trace kept and everything else collected; a process gives little of what
it needed at most back to the system.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import tracemalloc

import numpy as np

import a2a3sim.language as pl
from a2a3sim import DistributedConfig, RunConfig, ir
from a2a3sim.kernels import Job, find


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
    config = RunConfig(machine="ideal-switch", timing_only=True, checks=False, keep_trace=True)
    small, x = compiled(options.algorithm, 4)
    small(x, x.copy(), config=config)  # what is loaded and built once belongs to the process
    program, x = compiled(options.algorithm, options.ranks)
    y = x.copy()
    gc.collect()
    tracemalloc.start()
    program(x, y, config=config)
    gc.collect()
    kept, most = (size / 1024 for size in tracemalloc.get_traced_memory())
    count = program.last_run.cost.operations
    print(f"{count} operations, {kept / count:.3f} KiB each kept, {most / count:.3f} at most during the run")


if __name__ == "__main__":
    main()
