"""Configuration objects: PyPTO's fields, defaults and errors."""

import pytest

from a2a3sim import ConfigError, DistributedConfig, RunConfig


def test_defaults():
    config = DistributedConfig()
    assert (config.device_ids, config.num_sub_workers, config.aicpu_thread_num) == ([0], 0, 0)
    assert config.runtime == "tensormap_and_ringbuffer"
    run = RunConfig()
    assert (run.platform, run.device_id, run.codegen_only, run.distributed_config) == (
        "a2a3sim",
        0,
        False,
        None,
    )
    assert (run.enable_chip_swimlane, run.enable_dump_args, run.enable_pmu) == (0, 0, 0)
    assert (run.enable_dep_gen, run.enable_scope_stats) == (False, False)
    assert (run.ring_task_window, run.ring_heap, run.ring_dep_pool) == (None, None, None)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"device_ids": []}, "at least one device"),
        ({"device_ids": [0, -1]}, "must not be negative, got -1"),
        ({"device_ids": [3, 4, 3]}, "got 3 more than once"),
        ({"device_ids": ["0"]}, "must be whole numbers, got '0'"),
        ({"num_sub_workers": -1}, "num_sub_workers must not be negative"),
        ({"aicpu_thread_num": 1}, "must be 0 or at least 2, got 1"),
        ({"aicpu_thread_num": -2}, "must be 0 or at least 2, got -2"),
    ],
)
def test_bad_devices(fields, message):
    with pytest.raises(ValueError, match=message):
        DistributedConfig(**fields)


@pytest.mark.parametrize("platform", ["a2a3sim", "a2a3", "a5sim", "a5"])
def test_platforms_of_pypto_are_accepted(platform):
    assert RunConfig(platform=platform).platform == platform


@pytest.mark.parametrize(
    "fields, message",
    [
        (
            {"platform": "a2a3sym"},
            "platform must be one of a2a3sim, a2a3, a5sim, a5, got 'a2a3sym'.*did you mean 'a2a3sim'",
        ),
        ({"ring_task_window": 100}, "ring_task_window must be a power of two or a list of four, got 100"),
        ({"ring_heap": [16, 16]}, "ring_heap must be a power of two or a list of four"),
        ({"ring_dep_pool": [16, 16, 16, 3]}, "ring_dep_pool must be"),
        ({"fences": "none"}, "fences must be one of statement, notify, explicit, got 'none'"),
        ({"launch": "later"}, "launch must be one of together, dispatch"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"rtol": -1.0}, "rtol must be >= 0"),
        ({"keep": "x"}, "keep must be a list of tensor names, got the text 'x'"),
    ],
)
def test_bad_runs(fields, message):
    with pytest.raises(ConfigError, match=message):
        RunConfig(**fields)


def test_ring_sizes_are_powers_of_two_or_four_of_them():
    assert RunConfig(ring_task_window=1024, ring_heap=[2, 4, 8, 16]).ring_heap == [2, 4, 8, 16]


def test_other_hardware_cannot_be_run_on():
    import a2a3sim.language as pl
    from a2a3sim import ir

    @pl.program
    class Empty:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self):
            pass

    with pytest.raises(ConfigError, match="platform 'a2a3' needs NPU hardware"):
        ir.compile(Empty, platform="a2a3")
    with pytest.raises(ConfigError, match="platform 'a5' is another chip generation"):
        ir.compile(Empty)(config=RunConfig(platform="a5"))
