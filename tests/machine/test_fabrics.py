"""Paths are kept for a program or a session, never for the whole process."""

import gc
from fractions import Fraction

from a2a3sim.collector import collector_paused
from a2a3sim.models.fabric import Fabric
from a2a3sim.models.jitter import Jitter
from a2a3sim.models.platform import load_platform
from a2a3sim.models.topology import build_topology
from a2a3sim.run.fabrics import Fabrics
from a2a3sim.run.settings import Session

PLATFORM = load_platform("ideal")
TOPOLOGIES = [build_topology(PLATFORM, n) for n in range(2, 7)]


def test_a_fabric_comes_back_with_its_paths():
    fabrics = Fabrics()
    fabric = fabrics.take(PLATFORM, TOPOLOGIES[0])
    path = fabric.load(0, 1)
    fabrics.give(fabric)
    again = fabrics.take(PLATFORM, TOPOLOGIES[0])
    assert again is fabric
    assert again.load(0, 1) is path
    assert fabrics.take(PLATFORM, TOPOLOGIES[0]) is not fabric  # lent to one run at a time


def test_the_last_four_machines_are_kept_and_none_with_latencies_of_its_own():
    fabrics = Fabrics()
    given = [Fabric(topology, PLATFORM) for topology in TOPOLOGIES]
    for fabric in given:
        fabrics.give(fabric)
    fabrics.give(Fabric(TOPOLOGIES[0], PLATFORM, Jitter(0, Fraction(2))))
    taken = [fabrics.take(PLATFORM, topology) for topology in TOPOLOGIES]
    assert [a is b for a, b in zip(given, taken, strict=True)] == [False, True, True, True, True]


def test_sessions_share_nothing():
    assert Session().fabrics is not Session().fabrics


def test_the_collector_is_paused_once_and_left_as_it_was():
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
