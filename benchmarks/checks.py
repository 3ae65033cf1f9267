"""What the checks cost: CPU time of a run with and without them, and the memory that they take at most.

    python benchmarks/checks.py [RANKS]

The target is a ratio of at most 3 with 64 ranks.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
import tracemalloc

import numpy as np

import a2a3sim.language as pl
from a2a3sim import DistributedConfig, RunConfig, ir
from a2a3sim.kernels import Job, find

REPEATS = 2
CASES = [
    # Algorithm, elements, cores, largest tile: barriers, many tiles, several cores, long chains of signals.
    ("mesh", 4096, 1, 1 << 14),
    ("two_phase", 1 << 15, 1, 1 << 10),
    ("two_phase", 1 << 14, 4, 1 << 14),
    ("ring", 1 << 14, 1, 1 << 14),
    ("recursive_doubling", 1 << 12, 4, 1 << 10),
]
WIDE = {"topology.devices": "512"}


def program(algorithm: str, ranks: int, count: int, cores: int, tile: int):
    """A compiled program and its arguments."""
    job = Job(ranks, count, pl.FP32, cores=cores, tile_bytes=tile)
    with tempfile.TemporaryDirectory() as scratch:
        config = DistributedConfig(device_ids=list(range(ranks)))
        compiled = ir.compile(
            find("allreduce", algorithm).build(job), output_dir=scratch, distributed_config=config
        )
    return compiled, np.ones((ranks, 1, count), np.float32), np.zeros((ranks, 1, count), np.float32)


def cpu(compiled, x, y, checks: bool) -> float:
    """Seconds of CPU time of the fastest of some runs."""
    best = float("inf")
    config = RunConfig(machine="a2", checks=checks, platform_overrides=WIDE)
    for _ in range(REPEATS):
        gc.collect()
        began = time.process_time()
        compiled(x, y, config=config)
        best = min(best, time.process_time() - began)
    return best


def peak(compiled, x, y, checks: bool) -> float:
    """MiB that Python's allocator held at most."""
    gc.collect()
    tracemalloc.start()
    compiled(x, y, config=RunConfig(machine="a2", checks=checks, platform_overrides=WIDE))
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held / 2**20


def main() -> None:
    """Print one line for each case."""
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    print(
        f"{'algorithm':20} {'cores':>5} {'operations':>10} {'without':>9} {'with':>9} {'ratio':>6} {'MiB':>6} {'MiB with':>9}"
    )
    for algorithm, count, cores, tile in CASES:
        compiled, x, y = program(algorithm, ranks, count, cores, tile)
        without, checked = cpu(compiled, x, y, False), cpu(compiled, x, y, True)
        operations = compiled.last_run.cost.operations
        memory = peak(compiled, x, y, False), peak(compiled, x, y, True)
        print(
            f"{algorithm:20} {cores:5} {operations:10} {without:8.2f}s {checked:8.2f}s {checked / without:6.2f} "
            f"{memory[0]:6.0f} {memory[1]:9.0f}"
        )


if __name__ == "__main__":
    main()
