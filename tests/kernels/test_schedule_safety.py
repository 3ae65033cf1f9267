"""No kernel has a finding, and its waits are needed: without one the check sees a race."""

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.checks import check
from a2a3sim.kernels.collective import Job

from .running import KERNELS, run

JOBS = {
    "tiled": Job(8, 4096, pl.FP32, tile_bytes=1024),
    "ragged": Job(4, 9, pl.FP32, cores=3, tile_bytes=1024),
}


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_safe_on_every_schedule(kernel, job):
    result, trace = run(kernel, job, "a2", checks=True)
    assert check(trace) == []
    assert [f for f in result.findings if f.severity == "error"] == []


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
def test_a_missing_wait_is_a_race(kernel, monkeypatch):
    real, calls = pld.system.wait, []

    def all_but_the_third(signal, offsets, expected, *, cmp):
        calls.append(offsets)
        return signal if len(calls) == 3 else real(signal, offsets, expected, cmp=cmp)

    monkeypatch.setattr(pld.system, "wait", all_but_the_third)
    _, trace = run(kernel, Job(4, 1024, pl.FP32), compare=False)
    assert "race" in {finding.kind for finding in check(trace)}
