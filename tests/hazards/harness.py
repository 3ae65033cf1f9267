"""Run a small faulty (or sound) program under several seeds and name its findings by the marks in its source.

A case is a kernel body ``body(x, y, data, signal, e)`` whose interesting lines carry marks, ``# (put)``. Every
rank runs it on tensors ``x`` and ``y``, a window ``data`` and a window ``signal``; ``e`` is the number of the
launch. `found` runs it and gives what the checks say, with marks in place of lines.
"""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from running import compiled, one_kernel, run

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import A2A3Error, RunConfig

LINE = 16  # int32 cells of a 64-byte line
SEEDS = range(
    int(os.environ.get("HAZARD_SEEDS", "3"))
)  # 51 for the whole range that the verdicts must agree on
GE, EQ = pld.WaitCmp.Ge, pld.WaitCmp.Eq
ADD, SET = pld.NotifyOp.AtomicAdd, pld.NotifyOp.Set

_MARK = re.compile(r"#.*\(([\w -]+)\)\s*$")


class Verdict(NamedTuple):
    """What may not depend on the seed."""

    kind: str
    severity: str
    marks: tuple[str, ...]  # of the lines, or line numbers where there is no mark
    ranks: tuple[int, ...]
    where: str


def me(window):
    """The own rank."""
    return pld.rank(pld.get_comm_ctx(window))


def others(window):
    """The peers of a rank, in ascending order."""
    rank, count = me(window), pld.nranks(pld.get_comm_ctx(window))
    return [p for p in range(count) if p != rank]


def build(
    body, ranks, size=64, rows=1, dtype=pl.FP32, cells=(4, LINE), tensor=None, blocks=1, launches=1, arg=None
):
    """A program that runs ``body`` on every rank.

    Args:
        rows, size: extents of the window ``data``; ``tensor``: of x and y, if they differ.
        cells: extents of the window ``signal``.
        blocks: cores, a number or a function of the rank.
        launches: dispatches to each device, one after the other.
        arg: from the number of a launch to the kernel's scalar ``e``.
    """
    height, width = tensor or (rows, size)
    arg = arg or (lambda launch: launch)
    many = blocks if callable(blocks) else lambda _rank: blocks
    program = one_kernel(
        body, ranks, [height, width], [height, width], [rows, size], cells, dtype, many, launches, arg
    )
    return program, [ranks, height, width], dtype


def inputs(whole, dtype):
    """Distinct values, and an output of zeros."""
    x = np.arange(int(np.prod(whole))).reshape(whole).astype(dtype.numpy)
    return x, np.zeros(whole, dtype.numpy)


def results(body, ranks=2, seed=0, machine="a2", calls=0, golden=None, config=None, **shape):
    """RunResults of a case, one per call.

    Args:
        calls: of a worker whose windows live on; 0: one call of the compiled program.
        golden: from the input to what y must be.
    """
    program, whole, dtype = build(body, ranks, **shape)
    x, y = inputs(whole, dtype)
    fields = {"machine": machine, "seed": seed, **(config or {})}
    if not calls:
        return [run(program, ranks, x, y, raises=True, golden=golden and golden(x), **fields).result]
    runs = []
    with compiled(program, ranks).prepare(
        RunConfig(**fields), persistent=True, reset_persistent_windows=False
    ) as worker:
        for _ in range(calls):
            try:
                worker(x, y)
            except A2A3Error:
                runs.append(worker.last_run)
                break
            runs.append(worker.last_run)
    return runs


def marks_of(body) -> dict[int, str]:
    """Line → mark, over the file in which a kernel body stands."""
    lines = Path(inspect.getsourcefile(body)).read_text(encoding="utf-8").splitlines()
    return {k: match[1] for k, line in enumerate(lines, 1) if (match := _MARK.search(line))}


def place(where) -> str:
    """A finding's memory object and range in one text."""
    if not where:
        return ""
    unit = next((u for u in ("bytes", "cells") if u in where), None)
    return f"{where.get('memory')} {unit} {where.get(unit)}"


def verdicts(run, marks) -> set[Verdict]:
    """The findings of a run."""
    return {
        Verdict(
            f.kind,
            f.severity,
            tuple(marks.get(s.line, str(s.line)) for s in f.sites),
            tuple(f.ranks),
            place(f.where),
        )
        for f in run.findings
    }


def everywhere(body, seeds=SEEDS, hangs=False, **options) -> list[set[Verdict]]:
    """The verdicts of each call, the same for every seed.

    Args:
        hangs: whether a run ends or hangs is the schedule's to decide; what is foretold of it is not.
    """
    marks = marks_of(body)
    first = None
    for seed in seeds:
        told = [verdicts(run, marks) for run in results(body, seed=seed, **options)]
        if hangs:
            told = [{v for v in call if v.kind != "deadlock"} for call in told]
        if first is None:
            first = told
        for call, (mine, other) in enumerate(zip(told, first, strict=True)):
            assert mine == other, f"seed {seed}, call {call}: {mine ^ other}"
    return first


def found(body, notes=False, **options) -> set[tuple]:
    """(kind, severity, marks) of the last call's findings, the same for every seed; notes only if asked for."""
    last = everywhere(body, **options)[-1]
    return {v[:3] for v in last if notes or v.severity != "note"}


def kinds(body, **options) -> set[str]:
    """Kinds of the errors and warnings."""
    return {v[0] for v in found(body, **options)}
