"""The interconnect: who gets what share, when it ends, what it costs. Times in ps worked out by hand."""

import heapq
import os
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a3sim.engine import Engine
from a2a3sim.errors import ConfigError
from a2a3sim.models.network import Capacity, Network, Route

GB = 10**9
PS = 10**12


class Clock:
    """An event queue that says when an instant is over."""

    def __init__(self):
        self.now = 0
        self.events = 0
        self.queue = []

    def at(self, time, fn, arg=None, priority=1):
        heapq.heappush(self.queue, (time, priority, self.events, fn, arg))
        self.events += 1

    def run(self, after_instant=lambda: None):
        while self.queue:
            self.now, _, _, fn, arg = heapq.heappop(self.queue)
            fn(arg)
            if not self.queue or self.queue[0][0] > self.now:
                after_instant()


class Scene:
    """A network with a log of (name, finish)."""

    def __init__(self, **rates):
        self.clock = Clock()
        self.network = Network(self.clock)
        self.capacities = {name: Capacity(name, rate, "link") for name, rate in rates.items()}
        self.flows = {}
        self.log = []

    def route(self, path, weight=1, bound=None):
        return Route([(self.capacities[name], weight) for name in path.split()], bound, 0)

    def flow(self, name, nbytes, path, at=0, then=None, **route):
        route = self.route(path, **route) if isinstance(path, str) else path

        def done(flow):
            assert flow.finish == self.clock.now
            self.log.append((name, flow.finish))
            if then is not None:
                then()

        def start(_):
            self.flows[name] = self.network.start(nbytes, route, done, name)

        self.clock.at(at, start)

    def run(self, after_instant=lambda: None):
        self.clock.run(after_instant)
        self.network.close()
        return self.log


# One flow


def test_a_flow_alone_takes_its_bytes_over_the_tightest_rate():
    scene = Scene(egress=190 * GB, link=50 * GB)
    scene.flow("a", 1_000, "egress link", at=7)
    assert scene.run() == [("a", 7 + 20_000)]  # 1000 B at 50 B/ns
    assert scene.flows["a"].cuts == [(7, "link")]
    assert scene.flows["a"].owner == "a"


def test_its_time_is_rounded_up_to_the_next_ps():
    scene = Scene(port=190 * GB)
    scene.flow("a", 65_537, "port")
    assert scene.run() == [("a", 344_932)]  # 65537 / 0.19 = 344931.57…


def test_its_time_is_exact_far_beyond_the_precision_of_floats():
    scene = Scene(port=3)
    scene.flow("a", 10**15 + 1, "port")
    assert scene.run() == [("a", (10**27 + 10**12 + 2) // 3)]


def test_efficiency_uses_more_of_a_capacity_than_arrives():
    scene = Scene(port=100 * GB)
    scene.flow("a", 850, "port", weight=1 / Fraction(85, 100))
    assert scene.run() == [("a", 10_000)]  # 850 B at 85 % of 100 GB/s
    assert scene.capacities["port"].bytes == 850  # payload


def test_the_bound_of_its_pipe_limits_a_flow():
    scene = Scene(port=100 * GB)
    scene.flow("a", 1_000, "port", bound=40 * GB)
    scene.flow("b", 1_000, "", bound=10 * GB)
    assert scene.run() == [("a", 25_000), ("b", 100_000)]
    assert scene.flows["a"].cuts == [(0, "pipe")]
    assert scene.flows["a"].route.free_label == "pipe"


def test_without_bytes_or_limits_a_flow_is_over_in_the_same_instant():
    scene = Scene(port=GB)
    scene.flow("empty", 0, "port", at=5)
    scene.flow("unlimited", 10**9, "", at=5)
    assert scene.run() == [("empty", 5), ("unlimited", 5)]
    assert scene.route("").unlimited
    assert not scene.route("port").unlimited
    assert scene.capacities["port"].peak_flows == 0


def test_a_capacity_that_a_path_meets_twice_is_used_twice():
    scene = Scene(bus=100 * GB)
    scene.flow("there and back", 1_000, "bus bus")
    assert scene.run() == [("there and back", 20_000)]


def test_a_route_knows_its_free_rate_as_a_fraction():
    scene = Scene(a=100 * GB, b=90 * GB)
    route = Route([(scene.capacities["a"], Fraction(3, 2)), (scene.capacities["b"], 1)], None, 900)
    assert (route.num, route.den) == (200 * GB, 3)
    assert route.free_label == "a"
    assert route.latency_ps == 900
    assert route.free_ps(1) == 15  # 3 / 0.2


# Several flows


def test_two_flows_share_a_port_and_the_second_half_goes_faster():
    # Both at 50 GB/s until 20 ns, when a has 1000 B; b then has 1000 B left at 100 GB/s: 10 ns.
    scene = Scene(port=100 * GB)
    scene.flow("a", 1_000, "port")
    scene.flow("b", 2_000, "port")
    assert scene.run() == [("a", 20_000), ("b", 30_000)]
    assert scene.flows["b"].cuts == [(0, "port")]


def test_a_flow_that_began_free_keeps_the_service_it_has_had():
    # a alone until 5 ns (500 B), then both at 50: a ends 10 ns later, b has 500 B left and the whole port.
    scene = Scene(port=100 * GB, a_out=100 * GB, b_out=100 * GB)
    scene.flow("a", 1_000, "a_out port")
    scene.flow("b", 1_000, "b_out port", at=5_000)
    assert scene.run() == [("a", 15_000), ("b", 20_000)]
    assert scene.flows["a"].cuts == [(0, "a_out"), (5_000, "port")]
    assert scene.flows["b"].cuts == [(5_000, "port"), (15_000, "b_out")]


def test_a_flow_held_back_elsewhere_leaves_its_share_to_others():
    # in shares 90 among three: 30 each; that leaves 70 of out to d.
    scene = Scene(**{"out": 100 * GB, "in": 90 * GB, "x": 100 * GB, "y": 100 * GB, "z": 100 * GB})
    scene.flow("a", 3_000, "out in")
    scene.flow("b", 3_000, "x in")
    scene.flow("c", 3_000, "y in")
    scene.flow("d", 3_500, "out z")
    assert sorted(scene.run()) == [("a", 100_000), ("b", 100_000), ("c", 100_000), ("d", 50_000)]
    assert scene.flows["d"].cuts == [(0, "out")]


def test_a_bounded_flow_leaves_what_it_cannot_use():
    # 10 + 45 + 45
    scene = Scene(port=100 * GB)
    scene.flow("slow", 1_000, "port", bound=10 * GB)
    scene.flow("a", 4_500, "port")
    scene.flow("b", 4_500, "port")
    assert scene.run() == [("slow", 100_000), ("a", 100_000), ("b", 100_000)]
    assert scene.flows["slow"].cuts == [(0, "pipe")]


def test_goodput_is_what_is_shared_not_raw_capacity():
    # x (1/0.5 + 1) = 90: both get 30
    scene = Scene(port=90 * GB)
    scene.flow("lossy", 300, "port", weight=2)
    scene.flow("clean", 300, "port")
    assert scene.run() == [("lossy", 10_000), ("clean", 10_000)]


def test_flows_that_end_together_are_replaced_in_the_same_instant():
    scene = Scene(port=100 * GB)
    scene.flow("a", 1_000, "port", then=lambda: scene.flow("c", 500, "port", at=scene.clock.now))
    scene.flow("b", 1_000, "port", then=lambda: scene.flow("d", 1_500, "port", at=scene.clock.now))
    assert scene.run() == [("a", 20_000), ("b", 20_000), ("c", 30_000), ("d", 40_000)]


def test_a_flow_that_starts_where_another_ends_in_that_instant_is_not_held_back():
    scene = Scene(port=100 * GB, a_in=100 * GB, b_in=100 * GB)
    scene.flow("b", 1_000, "port b_in", at=10_000)  # its event comes before the end of a
    scene.flow("a", 1_000, "port a_in")
    assert scene.run() == [("a", 10_000), ("b", 20_000)]
    assert scene.flows["b"].cuts == [(10_000, "port")]


def test_many_tiles_on_one_route_are_one_party():
    # Four flows on one route and one on another: 20 GB/s each.
    scene = Scene(**{"in": 100 * GB, "x": 100 * GB, "y": 100 * GB})
    both = scene.route("x in")
    for name in "abcd":
        scene.flow(name, 200, both)
    scene.flow("e", 400, "y in")
    assert scene.run() == [("a", 10_000), ("b", 10_000), ("c", 10_000), ("d", 10_000), ("e", 12_000)]


def test_statistics_of_a_capacity():
    scene = Scene(port=100 * GB)
    scene.flow("a", 1_000, "port", at=5)
    scene.flow("b", 1_000, "port", at=5)
    scene.flow("c", 500, "port", at=100_000)
    scene.run()
    port = scene.capacities["port"]
    assert (port.bytes, port.busy_ps, port.peak_flows) == (2_500, 20_000 + 5_000, 2)


def test_closing_counts_the_time_of_flows_in_flight():
    scene = Scene(port=100 * GB)
    scene.flow("a", 1_000, "port", at=3)
    scene.clock.at(1_003, lambda _: scene.network.close())
    scene.clock.run()
    assert scene.capacities["port"].busy_ps == 10_000  # and nothing twice
    assert scene.capacities["port"].bytes == 1_000


def test_wrong_capacities_routes_and_sizes_are_refused():
    with pytest.raises(ConfigError, match="rate of capacity x must be whole bytes/s above 0, got 0"):
        Capacity("x", 0, "link")
    with pytest.raises(ConfigError, match=r"got 1\.5"):
        Capacity("x", 1.5, "link")
    with pytest.raises(ConfigError, match="weight of x in a route must be above 0, got 0"):
        Route([(Capacity("x", 1, "link"), 0)], None, 0)
    with pytest.raises(ConfigError, match="bound of a route must be above 0 bytes/s, got -1"):
        Route([], -1, 0)
    with pytest.raises(ValueError, match="got -1"):
        Network(Clock()).start(-1, Route([], None, 0), None)


# What it costs


def crossbar_reads(ranks, rotated, skew_ps, in_flight=1):
    """A mesh of 64 KiB reads, in the named order, with HBM and a link of its own on every path."""
    clock = Clock()
    network = Network(clock)
    hbm = [Capacity(f"hbm{rank}", 1_600 * GB, "hbm") for rank in range(ranks)]
    out = [Capacity(f"egress{rank}", 190 * GB, "egress") for rank in range(ranks)]
    into = [Capacity(f"ingress{rank}", 190 * GB, "ingress") for rank in range(ranks)]

    def begin(rank):
        peers = [(rank + step) % ranks for step in range(1, ranks)]
        left = iter(peers if rotated else sorted(peers))

        def request(_=None):
            peer = next(left, None)
            if peer is not None:
                link = Capacity(f"link{peer}-{rank}", 190 * GB, "link")
                route = Route([(hbm[peer], 1), (out[peer], 1), (link, 1), (into[rank], 1)], None, 0)
                clock.at(clock.now + 2_000_000, lambda _: network.start(65_536, route, request))

        for _ in range(in_flight):
            request()

    for rank in range(ranks):
        clock.at(rank * 7_919_000 % skew_ps if skew_ps else 0, begin, rank)
    requests = ranks * (ranks - 1) + ranks
    clock.run()
    network.close()
    return network, clock.events - requests


def test_a_flow_on_a_free_path_costs_one_event_and_is_never_looked_at():
    network, events = crossbar_reads(8, rotated=True, skew_ps=0)
    assert (network.flows, events) == (56, 56)
    assert (network.visits, network.settles, network.resolves) == (0, 0, 0)


def test_an_incast_looks_at_every_flow_once():
    # The 63 of a round start in one instant and end in one: each settles once, one event serves all ends.
    network, events = crossbar_reads(64, rotated=False, skew_ps=0)
    assert network.flows == 4_032
    assert network.visits <= network.flows
    assert network.settles <= 2 * 64
    assert events <= network.flows


@pytest.mark.parametrize("ranks", [16, 64])
def test_visits_do_not_grow_with_ranks_under_skew(ranks):
    assert crossbar_reads(ranks, rotated=True, skew_ps=3_000_000)[0].visits <= ranks * (ranks - 1)
    assert crossbar_reads(ranks, rotated=False, skew_ps=3_000_000)[0].visits <= 12 * ranks * (ranks - 1)


def test_a_wide_memory_behind_a_narrow_port_does_not_couple_its_readers():
    # 40 flows could ask the HBM for 40 x 100 GB/s, but they all leave by one port of 100 GB/s.
    rates = {f"in{i}": 100 * GB for i in range(40)}
    scene = Scene(hbm=1_600 * GB, port=100 * GB, **rates)
    for i in range(40):
        scene.flow(i, 1_000, f"hbm port in{i}", at=i)
    scene.run()
    assert not scene.capacities["hbm"].bottleneck
    assert scene.network.visits <= 2 * 40


# Against an independent calculation in fractions


def fair_rates(flows, rates):
    """Plain progressive filling. ``flows`` are (weights by capacity, bound)."""
    fixed = {}
    left = dict.fromkeys(range(len(flows)))
    while left:
        levels = {}
        for name, rate in rates.items():
            weight = sum(flows[i][0].get(name, 0) for i in left)
            if weight:
                taken = sum(flows[i][0].get(name, 0) * fixed[i] for i in fixed)
                levels[name] = (rate - taken) / Fraction(weight)
        bounds = [Fraction(flows[i][1]) for i in left if flows[i][1]]
        level = min([*levels.values(), *bounds])
        full = [name for name in levels if levels[name] == level]
        for i in list(left):
            if flows[i][1] == level or any(name in flows[i][0] for name in full):
                fixed[i] = level
                del left[i]
    return fixed


def exact_finishes(flows, rates):
    """Finish times as fractions of ps; ``flows`` are (start_ps, bytes, weights by capacity, bound)."""
    waiting = sorted(range(len(flows)), key=lambda i: flows[i][0])
    left, finish, now = {}, {}, Fraction(0)
    while waiting or left:
        running = list(left)
        shares = fair_rates([flows[i][2:] for i in running], rates)
        speed = {i: shares[position] / PS for position, i in enumerate(running)}
        moments = [now + left[i] / speed[i] for i in running]
        moments += [Fraction(flows[i][0]) for i in waiting[:1]]
        later = min(moments)
        for i in running:
            left[i] -= speed[i] * (later - now)
            if left[i] == 0:
                finish[i] = later
                del left[i]
        now = later
        while waiting and flows[waiting[0]][0] == now:
            i = waiting.pop(0)
            left[i] = Fraction(flows[i][1])
    return [finish[i] for i in range(len(flows))]


@st.composite
def configurations(draw):
    """(rates, flows) of a small network; few values, so that ties and simultaneous starts are common."""
    names = ["a", "b", "c", "d", "e"][: draw(st.integers(1, 5))]
    rates = {name: draw(st.sampled_from([25, 50, 60, 100])) * GB for name in names}
    weights = draw(st.sampled_from([[1], [1, Fraction(20, 17)], [1, Fraction(10, 7), Fraction(20, 17)]]))
    bounds = draw(st.sampled_from([[None], [None, 20 * GB], [None, 12 * GB, 40 * GB]]))
    path = st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True)
    routes = [
        ({name: draw(st.sampled_from(weights)) for name in draw(path)}, draw(st.sampled_from(bounds)))
        for _ in range(draw(st.integers(1, 6)))
    ]
    starts = draw(st.lists(st.integers(0, 100_000), min_size=1, max_size=5))
    sizes = st.one_of(st.sampled_from([1, 512, 4096]), st.integers(1, 5_000))
    flows = draw(
        st.lists(st.tuples(st.sampled_from(starts), sizes, st.sampled_from(routes)), min_size=1, max_size=12)
    )
    return rates, [(start, nbytes, *route) for start, nbytes, route in flows]


def play(rates, flows, order, shared=True):
    """Finish times of the flows when started in that order; capacities are checked in every instant."""
    scene = Scene(**rates)
    routes = {}

    def route_of(i):
        key = (tuple(flows[i][2].items()), flows[i][3]) if shared else i
        if key not in routes:
            uses = [(scene.capacities[name], weight) for name, weight in flows[i][2].items()]
            routes[key] = Route(uses, flows[i][3], 0)
        return routes[key]

    for i in order:
        scene.flow(i, flows[i][1], route_of(i), at=flows[i][0])

    def nothing_above_its_capacity():
        for name, rate in rates.items():
            running = [(flow.rate, flows[i][2].get(name, 0)) for i, flow in scene.flows.items()]
            assert sum(x * float(weight) for x, weight in running) <= rate * (1 + 1e-9)
        now = [i for i, flow in scene.flows.items() if flow.rate]
        for position, level in fair_rates([flows[i][2:] for i in now], rates).items():
            assert scene.flows[now[position]].rate == pytest.approx(float(level), rel=1e-9)

    scene.run(nothing_above_its_capacity)
    for name in rates:
        assert scene.capacities[name].bytes == sum(flow[1] for flow in flows if name in flow[2])
    return [scene.flows[i].finish for i in range(len(flows))]


@settings(max_examples=120)
@given(configurations())
def test_shares_and_ends_are_those_of_progressive_filling(configuration):
    rates, flows = configuration
    finishes = play(rates, flows, range(len(flows)))
    for finish, exact in zip(finishes, exact_finishes(flows, rates), strict=True):
        assert abs(finish - exact) <= 10


@settings(max_examples=60)
@given(configurations(), st.randoms(use_true_random=False))
def test_the_order_of_starts_in_one_instant_does_not_matter(configuration, random):
    rates, flows = configuration
    order = list(range(len(flows)))
    expected = play(rates, flows, order)
    random.shuffle(order)
    assert play(rates, flows, order) == expected
    assert play(rates, flows, order, shared=False) == expected


def test_the_times_do_not_depend_on_hash_seeds():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_network import crossbar_reads\n"
        "network, events = crossbar_reads(12, False, 3_000_000, in_flight=4)\n"
        "print(events, network.visits, network.settles, network.clock.now)\n"
    )
    here = os.path.dirname(__file__)
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, here],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


def test_it_runs_on_the_engine():
    engine = Engine()
    network = Network(engine)
    port = Capacity("port", 100 * GB, "link")
    route = Route([(port, 1)], None, 0)
    ends = []
    engine.at(0, lambda _: [network.start(1_000, route, ends.append) for _ in range(2)])
    engine.run()
    assert [flow.finish for flow in ends] == [20_000, 20_000]
    # The starts, settling, the end that the first would have had alone, the ends, settling.
    assert engine.events == 5
