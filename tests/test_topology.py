"""Topologies: which links a path crosses, how long it takes, and what is refused."""

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import calls_of

from a2a3sim.errors import ConfigError
from a2a3sim.models.platform import load_platform
from a2a3sim.models.topology import Link, build_topology


def machine(name, devices, **overrides):
    return build_topology(
        load_platform(name, {k.replace("__", "."): v for k, v in overrides.items()}), devices
    )


def names(topology, src, dst):
    return [link.name for link in topology.path(src, dst)]


def all_links(topology):
    for src, dst in product(range(topology.devices), repeat=2):
        topology.path(src, dst)
    return topology.links


def test_a_full_mesh_has_a_link_for_every_ordered_pair():
    a2 = machine("a2", 8)
    assert a2.path(0, 3) == (Link("dev0->dev3", 0, 3, 26_200_000_000, 270_000, "link"),)
    assert a2.path(3, 0) == (Link("dev3->dev0", 3, 0, 26_200_000_000, 270_000, "link"),)
    assert len(all_links(a2)) == 8 * 7


def test_a_device_reaches_itself_over_no_link():
    assert machine("a2", 8).path(2, 2) == ()
    assert machine("a2", 8).latency(2, 2) == 0


def test_a_crossbar_takes_two_hops_of_half_a_microsecond():
    switch = machine("ideal-switch", 4)
    assert switch.path(0, 3) == (
        Link("dev0->switch", 0, "switch", 25_000_000_000, 500_000, "link"),
        Link("switch->dev3", "switch", 3, 25_000_000_000, 500_000, "link"),
    )
    assert switch.latency(0, 3) == machine("ideal", 4).latency(0, 3) == 1_000_000
    assert len(all_links(switch)) == 8


def test_sister_dies_of_a3_use_their_sio():
    a3 = machine("a3", 16)
    assert a3.path(0, 1) == (Link("sio0->1", 0, 1, 187_000_000_000, 109_000, "link", payload=True),)
    assert names(a3, 15, 14) == ["sio15->14"]
    assert names(a3, 1, 2) == ["dev1->ub", "ub->dev2"]  # neighbours, but of two packages


def test_planes_spread_over_all_act_as_one_link():
    a3 = machine("a3", 16)
    assert a3.bandwidth(0, 2) == 7 * 28_000_000_000
    assert a3.latency(0, 2) == 464_500  # half of the 929 ns round trip
    assert [link.payload for link in a3.path(0, 2)] == [False, False]


def test_without_spread_a_pair_keeps_to_one_plane():
    a3 = machine("a3", 16, spread="pair")
    assert names(a3, 3, 6) == ["dev3->ub2", "ub2->dev6"]  # (3 + 6) mod 7
    assert names(a3, 6, 3) == ["dev6->ub2", "ub2->dev3"]
    assert names(a3, 3, 7) == ["dev3->ub3", "ub3->dev7"]
    assert a3.bandwidth(3, 6) == 28_000_000_000
    assert len(all_links(a3)) == 16 * 7 * 2 + 16


def test_a_ring_goes_the_shorter_way_round():
    ring = machine("ideal", 6, topology__kind="ring")
    assert names(ring, 0, 2) == ["dev0->dev1", "dev1->dev2"]
    assert names(ring, 0, 4) == ["dev0->dev5", "dev5->dev4"]
    assert names(ring, 0, 3) == ["dev0->dev1", "dev1->dev2", "dev2->dev3"]  # a tie: lower devices first
    assert names(machine("ideal", 2, topology__kind="ring"), 0, 1) == ["dev0->dev1"]
    assert ring.latency(0, 3) == 3_000_000


def test_ports_limit_what_a_device_sends_and_takes():
    a2 = machine(
        "a2", 8, **{"port.egress": "100GB/s", "port.5.ingress": "40GB/s", "port.3.egress": "unlimited"}
    )
    assert a2.path(0, 5) == (
        Link("dev0 egress", 0, 0, 100_000_000_000, 0, "egress"),
        Link("dev0->dev5", 0, 5, 26_200_000_000, 270_000, "link"),
        Link("dev5 ingress", 5, 5, 40_000_000_000, 0, "ingress"),
    )
    assert names(a2, 3, 4) == ["dev3->dev4"]
    assert a2.path(0, 1)[0] is a2.path(0, 2)[0]  # one port, shared by all paths


def test_the_sio_does_not_pass_through_the_port():
    a3 = machine("a3", 16, **{"port.egress": "50GB/s"})
    assert names(a3, 0, 1) == ["sio0->1"]
    assert names(a3, 0, 2) == ["dev0 egress", "dev0->ub", "ub->dev2"]


def test_one_link_can_differ():
    a2 = machine("a2", 8, **{"link.3-5.bandwidth": "5GB/s"})
    assert (a2.bandwidth(3, 5), a2.bandwidth(5, 3), a2.bandwidth(3, 4)) == (
        5 * 10**9,
        26_200_000_000,
        26_200_000_000,
    )
    a3 = machine("a3", 16, **{"link.3-ub.latency": "1us", "link.4-5.bandwidth": "unlimited"})
    assert a3.latency(3, 6) == 1_232_250
    assert a3.bandwidth(3, 6) == 196_000_000_000
    assert a3.bandwidth(4, 5) is None


def test_links_appear_when_a_path_uses_them():
    a3 = machine("a3", 16)
    assert a3.links == ()
    a3.path(4, 8)
    a3.path(0, 1)
    a3.path(4, 10)
    assert [link.name for link in a3.links] == ["dev4->ub", "ub->dev8", "sio0->1", "ub->dev10"]


def test_a_large_full_mesh_costs_nothing_until_it_is_used():
    mesh = machine("ideal", 384)
    assert len(mesh.links) == 0

    def one_source():
        for dst in range(1, 384):
            mesh.path(0, dst)

    assert calls_of(one_source) < 100 * 383  # of 147,072 links
    assert len(mesh.links) == 383


@pytest.mark.parametrize(
    ("name", "devices", "message"),
    [
        ("a2", 9, "devices must be at most 8 on platform a2, got 9; a3 has 16 (--platform)"),
        ("a3", 17, "devices must be at most 16 on platform a3, got 17; ideal has any number (--platform)"),
        ("a2", 0, "must be an int of at least 1, got 0"),
        ("a2", True, "got True"),
        ("a2", "8", "got '8'"),
    ],
)
def test_numbers_of_devices(name, devices, message):
    with pytest.raises(ConfigError) as caught:
        machine(name, devices)
    assert message in str(caught.value)


def test_overrides_beyond_the_devices_of_a_run_are_refused():
    ideal = load_platform("ideal", {"link.3-5.bandwidth": "5GB/s"})
    assert build_topology(ideal, 6).bandwidth(3, 5) == 5 * 10**9
    with pytest.raises(ConfigError, match=r"devices are 0\.\.3\), got no link from 3 to 5"):
        build_topology(ideal, 4)
    with pytest.raises(ConfigError, match=r"port\.9 must name a device"):
        build_topology(load_platform("ideal", {"port.9.egress": "5GB/s"}), 4)
    # a machine of a fixed size has the link, whether a run uses it or not
    assert machine("a2", 4, **{"link.3-5.bandwidth": "5GB/s"}).bandwidth(0, 3) == 26_200_000_000


def test_paths_stay_on_the_machine():
    with pytest.raises(ConfigError, match=r"device must be in 0\.\.3, got 4"):
        machine("ideal", 4).path(0, 4)


@given(
    st.sampled_from(["full_mesh", "ring", "switch", "paired_switch"]),
    st.integers(2, 9),
    st.sampled_from([("1", "pair"), ("3", "pair"), ("3", "all")]),
    st.data(),
)
@settings(max_examples=60)
def test_paths_are_connected_shortest_and_the_same_each_time(kind, devices, planes, data):
    count, spread = planes if "switch" in kind else ("1", "pair")
    overrides = {"topology.kind": kind, "planes": count, "spread": spread}
    topology = build_topology(load_platform("ideal", overrides), devices)
    src = data.draw(st.integers(0, devices - 1))
    dst = data.draw(st.integers(0, devices - 1).filter(lambda d: d != src))
    path = topology.path(src, dst)
    assert path is topology.path(src, dst)
    assert path == build_topology(load_platform("ideal", overrides), devices).path(src, dst)
    assert path[0].src == src and path[-1].dst == dst
    assert all(a.dst == b.src for a, b in pairwise(path))
    sisters = kind == "paired_switch" and src ^ 1 == dst
    around = min((src - dst) % devices, (dst - src) % devices)
    assert len(path) == {"full_mesh": 1, "ring": around}.get(kind, 1 if sisters else 2)
