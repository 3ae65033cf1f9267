"""Random race-free programs on random machines: what must hold for all of them."""

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from a2a3sim import KernelError, RunConfig
from a2a3sim.run.settings import resolve

from .invariants import times, violations
from .random_plans import plans
from .random_programs import Reference, inputs, run_plan

modest = settings(
    max_examples=80,
    derandomize=True,
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def ran(plan, **config):
    """A finished run; a program whose tiles do not fit is another test's business."""
    try:
        return run_plan(plan, **config)
    except KernelError as error:
        assume("capacity" not in str(error))
        raise


@modest
@given(plans())
def test_every_run_keeps_the_rules_of_the_machine(plan):
    settings = resolve(RunConfig(**plan.config), plan.ranks)
    assert violations(ran(plan), settings.platform, settings.fences) == []


@modest
@given(plans())
def test_results_are_those_of_one_core_after_the_other(plan):
    done, reference = ran(plan), Reference(plan, inputs(plan))
    data = [
        m.data.view(np.int32).reshape(reference.data.shape[1:])
        for m in done.trace.memories
        if m.name == "data_buf"
    ]
    assert np.array_equal(data, reference.data)
    assert np.array_equal(done.y, reference.y)


@modest
@given(plans(reads=False))
def test_a_run_without_bytes_takes_the_same_times(plan):
    full, bare = ran(plan), ran(plan, timing_only=True)
    assert times(full) == times(bare)
    assert comparable(full.result) == comparable(bare.result)


@modest
@given(plans(max_ranks=3, phases=2, actions=5), st.sampled_from([1, 2, 9]))
def test_without_skew_and_atomic_time_a_seed_changes_nothing_but_the_order_of_ties(plan, seed):
    overrides = {**plan.config["platform_overrides"], "signal.atomic": "0"}
    one, other = (ran(plan, platform_overrides=overrides, skew="none", seed=s) for s in (0, seed))
    assert times(one) == times(other)
    assert np.array_equal(one.y, other.y)


def comparable(result) -> dict:
    """A result without what may differ between a full run and one without bytes."""
    return result.model_dump(exclude={"timing_only", "cost"})
