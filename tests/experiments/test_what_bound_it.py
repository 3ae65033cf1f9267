"""The critical path adds up, for every shipped kernel on every machine; and what tables say of it."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a3sim import RunConfig
from a2a3sim.experiments.runner import Point, run_point
from a2a3sim.kernels import CATALOGUE, find
from a2a3sim.kernels.collective import Job
from a2a3sim.models.platform import list_platforms
from a2a3sim.reports.table import link_use, what_bound_it
from a2a3sim.trace.critical_path import GROUPS, group_of, summary

KERNELS = [(c, a) for c in CATALOGUE for a in CATALOGUE[c]]


@pytest.mark.parametrize("machine", list_platforms())
@settings(max_examples=20)
@given(
    kernel=st.sampled_from(KERNELS),
    ranks=st.integers(2, 6),
    elements=st.integers(1, 3000),
    cores=st.integers(1, 3),
    seed=st.integers(0, 3),
    skew=st.sampled_from(["none", "platform", "7us"]),
    fences=st.sampled_from(["statement", "notify"]),
)
def test_the_path_abuts_and_adds_up_exactly(machine, kernel, ranks, elements, cores, seed, skew, fences):
    collective, algorithm = kernel
    form = find(collective, algorithm)
    config = RunConfig(machine=machine, seed=seed, skew=skew, fences=fences, timing_only=True, checks=False)
    point = Point(algorithm, ranks, 4 * elements, collective=collective, cores=cores, config=config)
    if form.restriction(Job(ranks, elements, _fp32(), cores)):
        return
    result = run_point(point).result
    path = result.critical_path
    assert all(a.end_ps == b.start_ps for a, b in pairwise(path))
    assert all(segment.end_ps > segment.start_ps for segment in path)
    assert sum(segment.end_ps - segment.start_ps for segment in path) == result.kernel_ps
    assert {group_of(segment.spent_on) for segment in path} <= set(GROUPS)
    assert sum(summary(path).values()) == pytest.approx(100)


def _fp32():
    from a2a3sim.experiments.conventions import element

    return element("fp32")


def test_one_line_says_what_bound_a_run():
    # 2 ranks, ideal: 3 us of latency and 1 MB at 25 GB/s, 40 us, on both links.
    config = RunConfig(machine="ideal", timing_only=True)
    result = run_point(Point("mesh", 2, 1_000_000, config=config)).result
    assert link_use(result) == {"min": 40 / 43, "median": 40 / 43, "max": 40 / 43}
    assert what_bound_it(result) == (
        "link bandwidth 93 %, latency 7 % · 100.0 % of bound · "
        "2 links used 93 to 93 % (median 93 %, most dev0->dev1)"
    )
