"""Python bytecodes that measuring a finished run takes, by module, per remote read of the mesh all-reduce.

    python benchmarks/bytecodes.py [--ranks 24] [--json]

A read is a remote load with its notify, wait and add. Bytecodes do not depend on how busy the machine is, but
do not count what C code does; the CPU time beside them does.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np

import a2a3sim.language as pl
from a2a3sim import DistributedConfig, RunConfig, ir
from a2a3sim.kernels import find
from a2a3sim.kernels.collective import Job
from a2a3sim.trace import measures


def finished(ranks: int) -> tuple:
    """What `a2a3sim.trace.measures.measure` is called with after a timing-only run on the ideal platform."""
    job = Job(ranks, 16384, pl.FP32)
    with tempfile.TemporaryDirectory() as scratch:
        devices = DistributedConfig(device_ids=list(range(ranks)))
        program = find("allreduce", "mesh").build(job)
        compiled = ir.compile(program, output_dir=scratch, distributed_config=devices)
    x = np.zeros((ranks, 1, job.count), np.float32)
    with mock.patch.object(measures, "measure") as measure:
        compiled(x, x.copy(), config=RunConfig(machine="ideal", timing_only=True, checks=False))
    return measure.call_args.args


def counted(call) -> Counter[str]:
    """How many bytecodes ``call()`` executes in each module, by the module's file name."""
    counts: Counter[str] = Counter()

    def trace(frame, event, _):
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode":
            counts[Path(frame.f_code.co_filename).stem] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return counts


def main() -> None:
    """Print the bytecodes a read, or with ``--json`` one object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=24)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ranks = options.ranks
    reads = ranks * (ranks - 1)
    warm, run = finished(ranks), finished(ranks)
    measures.measure(*warm)
    counts = counted(lambda: measures.measure(*run))
    run = finished(ranks)
    began = time.process_time()
    measures.measure(*run)
    spent = time.process_time() - began
    each = {name: count / reads for name, count in counts.most_common() if count >= reads}
    total = counts.total() / reads
    if options.json:
        print(json.dumps({"reads": reads, "per_read": each, "total": total, "cpu_us": spent / reads * 1e6}))
        return
    for name, count in each.items():
        print(f"{name:16} {count:8.0f}")
    print(f"{'all':16} {total:8.0f} bytecodes a read, {spent / reads * 1e6:.1f} us of CPU")


if __name__ == "__main__":
    main()
