"""Every kernel gives, bit for bit, what numpy gives in its own order, and moves what it says it moves."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import a2a3sim.language as pl
from a2a3sim.kernels import find
from a2a3sim.kernels.collective import Job

from .running import KERNELS, MANY, adds_in_the_vector_unit, run

DTYPES = [pl.FP32, pl.FP16, pl.BF16, pl.INT32, pl.INT16, pl.INT8]


@st.composite
def jobs(draw, kernel):
    """A job that the kernel can do, from one element to 64 KiB, most of them small and odd."""
    power = kernel[1] in ("halving_doubling", "recursive_doubling")
    ranks = draw(st.sampled_from([2, 4, 8, 16]) if power else st.integers(2, 17))
    dtype = draw(st.sampled_from(DTYPES))
    largest = draw(st.sampled_from([64, 1024, 8192, 65536])) // dtype.itemsize
    count = draw(st.integers(1, largest))
    cores = draw(st.sampled_from([1, 4]))
    tile = draw(st.sampled_from([max(64, count * dtype.itemsize // 8), 16384]))
    group = draw(st.sampled_from([g for g in range(1, ranks + 1) if ranks % g == 0]))
    return Job(ranks, count, dtype, cores, tile, group, root=draw(st.integers(0, ranks - 1)))


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_job_is_bit_equal_and_exact_in_its_traffic(kernel, data):
    job = data.draw(jobs(kernel))
    machine = data.draw(st.sampled_from(["ideal", "a2"]))
    int8_sums = job.dtype is pl.INT8 and adds_in_the_vector_unit(*kernel)
    assume(not (machine == "a2" and int8_sums))
    form = find(*kernel)
    assert form.restriction(job) is None
    result, _ = run(
        kernel,
        job,
        machine,
        platform_overrides=MANY if machine == "a2" else {},
        seed=data.draw(st.integers(0, 3)),
        fences=data.draw(st.sampled_from(["statement", "notify"])),
        poison=True,
    )
    assert [use.remote_bytes for use in result.per_rank] == form.remote_bytes(job)
    assert (result.rounds, result.barriers) == (form.rounds(job), form.barriers(job))


@pytest.mark.parametrize("cores", [1, 4])
@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
def test_one_mebibyte_in_the_largest_tiles_that_fit_an_a2(kernel, cores):
    result, _ = run(kernel, Job(4, 262144, pl.FP32, cores, 32768), "a2")
    assert max(use.ub_peak_bytes for use in result.per_rank) <= 5 * 32768


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@pytest.mark.parametrize("ranks,count,cores", [(2, 1, 1), (4, 1, 4), (8, 33, 1), (16, 1001, 4)])
def test_small_and_ragged(kernel, ranks, count, cores):
    run(kernel, Job(ranks, count, pl.FP16, cores))


@pytest.mark.parametrize("root", range(5))
@pytest.mark.parametrize("name", ["flat", "binomial"])
def test_any_root(name, root):
    run(("broadcast", name), Job(5, 100, pl.FP32, root=root))


@pytest.mark.parametrize("group", [1, 2, 3, 4, 6, 12])
def test_any_group(group):
    run(("allreduce", "hierarchical"), Job(12, 1000, pl.FP32, group=group))
