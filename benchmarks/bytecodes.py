"""Python bytecodes that measuring a finished run takes, by module, per remote read of the mesh all-reduce.

    python benchmarks/bytecodes.py [--ranks 24] [--json]

A read is a remote load with its notify, wait and add, on the ideal platform, timing-only, without checks.
Bytecodes do not depend on how busy the machine is; what runs in C code is not among them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import a2a3sim.language as pl
from a2a3sim import DistributedConfig, RunConfig, ir
from a2a3sim.kernels import Job, find


def mesh(ranks: int) -> Callable[[], object]:
    """A call of the mesh all-reduce, 64 KiB per rank."""
    job = Job(ranks, 16384, pl.FP32)
    with tempfile.TemporaryDirectory() as scratch:
        devices = DistributedConfig(device_ids=list(range(ranks)))
        program = find("allreduce", "mesh").build(job)
        compiled = ir.compile(program, output_dir=scratch, distributed_config=devices)
    x = np.zeros((ranks, 1, job.count), np.float32)
    return lambda: compiled(x, x.copy(), config=RunConfig(machine="ideal", timing_only=True, checks=False))


def counted(call: Callable[[], object], function: str) -> Counter[str]:
    """How many bytecodes are executed inside ``function`` during ``call()``, by file name."""
    counts: Counter[str] = Counter()
    inside = False

    def trace(frame, event, _):
        nonlocal inside
        begins = frame.f_code.co_name == function
        if event == "call" and begins:
            inside = True
        elif event == "return" and begins:
            inside = False
        elif event == "opcode":
            counts[Path(frame.f_code.co_filename).stem] += 1
        if not inside:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
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
    reads = options.ranks * (options.ranks - 1)
    call = mesh(options.ranks)
    call()  # what is imported and built once
    counts = counted(call, "measure")
    each = {name: count / reads for name, count in counts.most_common() if count >= reads}
    total = counts.total() / reads
    if options.json:
        print(json.dumps({"reads": reads, "per_read": each, "total": total}))
        return
    for name, count in each.items():
        print(f"{name:16} {count:8.0f}")
    print(f"{'all':16} {total:8.0f} bytecodes a read")


if __name__ == "__main__":
    main()
