"""Run a shipped kernel on a job and hold its output against its own reference, bit for bit."""

from itertools import starmap

import numpy as np
import running

from a2a3sim.kernels import CATALOGUE, find
from a2a3sim.kernels.collective import Job

RATE, LATENCY = 25 * 10**9, 10**6  # of `ideal`: B/s, ps
KERNELS = [(collective, name) for collective, names in CATALOGUE.items() for name in names]
MANY = {"topology.devices": "32"}  # an A2 with more devices than one server has


def adds_in_the_vector_unit(collective, name):
    """Whether a kernel needs arithmetic that the A2 lacks for int8; atomic adds in memory it has."""
    return collective in ("allreduce", "reduce_scatter") and name != "two_phase_push"


def inputs(form, job, seed=0):
    """Values whose sums depend on their order."""
    generator = np.random.default_rng(seed)
    shape = (job.ranks, *form.shapes(job)[0])
    if job.dtype.floating:
        return generator.standard_normal(shape).astype(job.dtype.numpy)
    return generator.integers(-128, 128, shape).astype(job.dtype.numpy)


def same_bits(got, want) -> bool:
    return got.shape == want.shape and got.tobytes() == np.ascontiguousarray(want).tobytes()


def run(kernel, job: Job, machine="ideal", compare=True, **config):
    """(result, trace) of a run; fails unless every rank holds what the reference says."""
    form = find(*kernel)
    x = inputs(form, job)
    y = np.zeros((job.ranks, *form.shapes(job)[1]), job.dtype.numpy)
    config.setdefault("checks", False)
    ran = running.run(form.build(job), job.ranks, x, y, machine=machine, **config)
    if compare and not config.get("timing_only"):
        with np.errstate(all="ignore"):
            wanted = form.reference(job, list(x))
        assert all(starmap(same_bits, zip(y, wanted, strict=True)))
    return ran.result, ran.trace
