"""When ranks start, where they stand and what a slow one pays, by hand."""

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import DistributedConfig, RunConfig, ir
from a2a3sim.errors import ConfigError
from a2a3sim.run.launch import skew_offset

from .programs import NS, US, add, build, me, run


def test_skew_is_uniform_in_its_width_and_belongs_to_seed_and_rank():
    offsets = [skew_offset(0, rank, US) for rank in range(2000)]
    assert all(0 <= offset < US for offset in offsets)
    assert abs(sum(offsets) / len(offsets) - US / 2) < US / 50
    assert offsets[:3] == [skew_offset(0, rank, US) for rank in range(3)]
    assert skew_offset(1, 0, US) != skew_offset(0, 0, US)
    assert skew_offset(0, 5, 2 * US) // 2 in (offsets[5], offsets[5] - 1)  # the same sample, scaled
    assert skew_offset(0, 5, 0) == 0


def nothing(x, y, data, signal):
    pl.tile.full([1, 8], pl.FP32, 0.0)


def starts(**more):
    config = {
        "platform_overrides": {"launch.device": "2us", "launch.dispatch": "8us", **more.pop("overrides", {})},
        **more,
    }
    lanes = run(nothing, ranks=3, config=config).trace.lanes
    return [lane.start for lane in sorted(lanes, key=lambda lane: lane.rank)]


def test_ranks_start_together_but_for_the_skew():
    assert starts() == [2 * US] * 3
    assert starts(skew="1us", seed=4) == [2 * US + skew_offset(4, rank, US) for rank in range(3)]


def test_a_dispatch_launch_staggers_the_ranks_by_the_hosts_cost():
    assert starts(launch="dispatch") == [2 * US, 10 * US, 18 * US]


def test_a_start_costs_by_the_cores():
    overrides = {"launch.device_per_core": "100ns"}
    ran = run(nothing, ranks=2, blocks=3, config={"platform_overrides": overrides})
    assert {lane.start for lane in ran.trace.lanes} == {300 * NS}
    assert (ran.result.total_ps, ran.result.kernel_ps) == (300 * NS, 0)


def test_a_slow_rank_pays_more_for_issue_and_vector_but_not_for_transfers():
    def body(x, y, data, signal):
        pl.add(*[pld.tile.remote_load(data, 1 - me(data), [0, 0], [1, 256])] * 2)
        add(signal, me(data))

    overrides = {
        "core.issue": "10cycles", "signal.issue": "30cycles", "vector.default.default.startup": "7cycles",
    }  # fmt: skip
    ran = run(body, config={"platform_overrides": overrides, "slow": {1: "1.5x"}})
    costs = [
        [
            (op.issued - op.begun, op.end - op.start)
            for kind in ("remote_load", "add")
            for op in ran.ops(rank, kind)
        ]
        for rank in (0, 1)
    ]
    read = 2 * US + 40_960
    assert costs == [[(10 * NS, read), (10 * NS, 7 * NS)], [(15 * NS, read), (15 * NS, 10_500)]]
    assert [ran.ops(rank, "notify")[0].issued - ran.ops(rank, "notify")[0].begun for rank in (0, 1)] == [
        30 * NS,
        45 * NS,
    ]


def test_places_on_a3_decide_between_the_link_of_a_package_and_the_switches():
    # 32 KiB. Sister dies: SIO, 187 GB/s and 109 ns a way. Else two links of 232.25 ns and 7 x 28 GB/s, of
    # which reads get 85 % and writes 70 %.
    def body(x, y, data, signal):
        if me(data) == 0:
            pld.tile.remote_load(data, 1, [0, 0], [1, 8192])
            pld.tile.remote_store(pl.load(x, [0, 0], [1, 8192]), data, 1, [0, 0])

    def spans(place):
        config = {"place": place, "skew": "none", "platform_overrides": {"pipe.rate": "unlimited"}}
        ran = run(body, machine="a3", size=8192, config=config)
        load, store = ran.ops(0, "remote_load")[0], ran.ops(0, "remote_store")[0]
        assert (ran.result.placement, ran.result.device_labels) == (place, [0, 1])
        names = {link.name for link in ran.result.links}
        return load.end - load.start, store.drained - store.start, store.end - store.drained, names

    sister = (2 * 109_000 + 175_230, 175_230, 2 * 109_000, {"sio2->3", "sio3->2"})
    assert spans([2, 3]) == sister
    away = (4 * 232_250 + 196_687, 238_834, 4 * 232_250, {"dev1->ub", "ub->dev2", "dev2->ub", "ub->dev1"})
    assert spans([1, 2]) == away


def test_labels_name_the_devices_and_places_say_where_they_are(tmp_path):
    devices = DistributedConfig(device_ids=[5, 9])
    compiled = ir.compile(build(nothing), output_dir=tmp_path, distributed_config=devices)
    x = np.zeros((2, 1, 256), np.float32)
    compiled(x, np.zeros_like(x), config=RunConfig(machine="a2", checks=False))
    assert (compiled.last_run.device_labels, compiled.last_run.placement) == ([5, 9], [0, 1])
    compiled(x, np.zeros_like(x), config=RunConfig(machine="a2", checks=False, place=[6, 3], keep_trace=True))
    assert (compiled.last_run.device_labels, compiled.last_run.placement) == ([5, 9], [6, 3])
    assert {lane.rank: lane.device for lane in compiled.last_trace.lanes} == {0: 6, 1: 3}


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ({"skew": -5}, "skew must be at least 0 ps, got -5"),
        ({"seed": 1 << 64}, "seed must be a whole number >= 0 and below 2\\^64"),
        ({"place": ["a", 1]}, "place must name devices by whole numbers, got \\['a', 1\\]"),
        ({"place": [0.5, 1]}, "place must name devices by whole numbers"),
        ({"place": [1, 1]}, "place must name different devices"),
        ({"slow": {0: float("inf")}}, "slow: a factor must look like 2x, got inf"),
        ({"slow": {2: "2x"}}, "slow: rank 2 does not exist, the run has ranks 0..1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(field, told):
    with pytest.raises(ConfigError, match=told):
        run(nothing, config=field)
