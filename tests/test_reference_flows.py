"""The interconnect against published results: exact fractions, and whole collectives made of bare flows."""

import csv
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from a2a3sim.engine import Engine
from a2a3sim.errors import ConfigError
from a2a3sim.experiments.flows import read_flows, run_flows
from a2a3sim.models.network import Capacity, Network, Route

DATA = Path(__file__).parent / "data"
IRREGULAR = DATA / "simgrid_irregular.csv"
RATE = 25 * 10**9
ALPHA_PS = 1_000_000
PS = 10**12
TOLERANCE_PS = 10
LARGEST = 64  # ranks


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


# Irregular sharing


def test_every_irregular_flow_ends_when_the_exact_fraction_says():
    expected = rows_of(IRREGULAR)
    rows = run_flows(IRREGULAR)
    assert len(rows) == len(expected) == 116
    for row, exact in zip(rows, expected, strict=True):
        assert (row["case"], row["flow"]) == (exact["case"], exact["flow"])
        finish = Fraction(int(exact["finish_exact_num"]), int(exact["finish_exact_den"])) * PS
        assert abs(row["finish_ps"] - finish) <= TOLERANCE_PS, (row, float(finish))


def test_a_row_is_read_as_links_with_rates_and_the_first_moment_of_its_data():
    first = read_flows(IRREGULAR)[0]
    assert first.links == (("u0", RATE), ("d1", RATE))
    assert (first.begin_ps, first.nbytes) == (ALPHA_PS, 1_048_576)


HEADER = "case,flow,links,link_capacity_Bps,start_s,alpha_s,bytes\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"flows.csv, line 1: columns must include .*; missing case, .* got an empty file"),
        ("case,flow,links,start_s,alpha_s,bytes\n", r"line 1: .*missing link_capacity_Bps, got case, flow"),
        (HEADER + "a,f,u,1,0,0,1\na,g,u\n", r"line 3: a row must have as many values .* got 'a,g,u'"),
        (HEADER + "a,f,u,fast,0,0,1\n", r"line 2, column link_capacity_Bps: must be a number.* got 'fast'"),
        (HEADER + "a,f,u,0,0,0,1\n", r"line 2, column link_capacity_Bps: must be whole .*least 1, got '0'"),
        (
            HEADER + "a,f,u+v,9,0,0,1\n",
            r"column link_capacity_Bps: must have 2 values joined by \+.* got '9'",
        ),
        (HEADER + "a,f,u+,9+9,0,0,1\n", r"column links: must be names joined by \+, got 'u\+'"),
        (
            HEADER + "a,f,u,9,0,0,1\na,g,u,8,0,0,1\n",
            r"line 3, column link_capacity_Bps: .*case a 9 as before",
        ),
        (HEADER + "a,f,u,9,-1,0,1\n", r"column start_s: must be whole in ps and at least 0, got '-1'"),
        (HEADER + "a,f,u,9,0,1e-13,1\n", r"column alpha_s: must be whole in ps and at least 0, got '1e-13'"),
        (HEADER + "a,f,u,9,0,nan,1\n", r"column alpha_s: must be a number"),
        (HEADER + "a,f,u,9,0,0,1.5\n", r"column bytes: must be whole in bytes and at least 0, got '1.5'"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line_and_column(tmp_path, text, message):
    path = tmp_path / "flows.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_flows(path)


def test_a_missing_or_binary_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"must be readable, got .*none.csv.*: No such file"):
        read_flows(tmp_path / "none.csv")
    path = tmp_path / "binary.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="must be CSV in UTF-8"):
        read_flows(path)


def test_cases_do_not_share_links_and_other_columns_are_ignored(tmp_path):
    path = tmp_path / "flows.csv"
    path.write_text(
        "note,case,flow,links,link_capacity_Bps,start_s,alpha_s,bytes\n"
        "x,one,f,u,1000000000,0,0,1000\n"
        "x,two,f,u,1000000000,0,1e-6,1000\n"
        "x,one,g,u,1000000000,0,0,1000\n"
    )
    assert run_flows(path) == [
        {"case": "one", "flow": "f", "finish_ps": 2_000_000},
        {"case": "two", "flow": "f", "finish_ps": 2_000_000},
        {"case": "one", "flow": "g", "finish_ps": 2_000_000},
    ]


# Collectives: a read is one latency and one flow from the peer; barriers and signals cost nothing


class Ranks:
    """P ranks that read from each other."""

    def __init__(self, topology, ranks, issue):
        self.engine = Engine()
        self.network = Network(self.engine)
        self.ranks = ranks
        self.issue = issue
        self.topology = topology
        self.capacities = {}
        self.routes = {}
        self.finish = [0] * ranks

    def capacity(self, name):
        return self.capacities.setdefault(name, Capacity(name, RATE, "link"))

    def route(self, source, reader):
        if (source, reader) not in self.routes:
            crossbar = (f"up{source}", f"down{reader}")
            names = (f"link{source}-{reader}",) if self.topology == "full_mesh" else crossbar
            uses = [(self.capacity(name), 1) for name in names]
            self.routes[source, reader] = Route(uses, None, ALPHA_PS)
        return self.routes[source, reader]

    def read(self, source, reader, nbytes, then):
        route = self.route(source, reader)
        begin = self.engine.now + ALPHA_PS
        self.engine.at(begin, lambda _: self.network.start(nbytes, route, lambda flow: then()))

    def read_all(self, reader, nbytes, then):
        """Read the same amount from every peer, in the order that `issue` names."""
        peers = [(reader + step) % self.ranks for step in range(1, self.ranks)]
        if self.issue == "concurrent":
            missing = [len(peers)]

            def arrived():
                missing[0] -= 1
                if not missing[0]:
                    then()

            for peer in peers:
                self.read(peer, reader, nbytes, arrived)
            return
        left = iter(sorted(peers) if self.issue == "sequential_naive" else peers)

        def following():
            peer = next(left, None)
            if peer is None:
                then()
            else:
                self.read(peer, reader, nbytes, following)

        following()

    def over(self, rank):
        self.finish[rank] = self.engine.now

    def mesh(self, nbytes):
        """Everybody reads everything from everybody."""
        for rank in range(self.ranks):
            self.read_all(rank, nbytes, lambda rank=rank: self.over(rank))

    def two_phase(self, nbytes):
        """Read the own block from all, a barrier, read the others' finished blocks."""
        missing = [self.ranks]

        def barrier():
            missing[0] -= 1
            if not missing[0]:
                for rank in range(self.ranks):
                    self.read_all(rank, nbytes // self.ranks, lambda rank=rank: self.over(rank))

        for rank in range(self.ranks):
            self.read_all(rank, nbytes // self.ranks, barrier)

    def ring(self, nbytes):
        """2(P-1) times: when the left neighbour has done its previous step, read a block from it."""
        steps = 2 * (self.ranks - 1)
        done = [0] * self.ranks
        reading = [False] * self.ranks

        def go(rank):
            left = (rank - 1) % self.ranks
            if not reading[rank] and done[rank] < steps and done[left] >= done[rank]:
                reading[rank] = True
                self.read(left, rank, nbytes // self.ranks, lambda: arrived(rank))

        def arrived(rank):
            reading[rank] = False
            done[rank] += 1
            if done[rank] == steps:
                self.over(rank)
            go(rank)
            go((rank + 1) % self.ranks)

        for rank in range(self.ranks):
            go(rank)


def collectives():
    for row in rows_of(DATA / "simgrid_collectives.csv"):
        if int(row["P"]) <= LARGEST:
            name = "-".join(row[key] for key in ("topology", "algorithm", "issue", "P", "N"))
            yield pytest.param(row, id=name)


@pytest.mark.parametrize("row", list(collectives()))
def test_a_collective_of_bare_flows_takes_the_time_of_its_closed_form(row):
    ranks = Ranks(row["topology"], int(row["P"]), row["issue"])
    getattr(ranks, row["algorithm"])(int(row["N"]))
    ranks.engine.run()
    assert ranks.network.flows == int(row["n_flows"])
    for got, column in (
        (max(ranks.finish), "closed_form_s"),
        (max(ranks.finish), "time_s"),
        (min(ranks.finish), "first_rank_finish_s"),
    ):
        assert abs(got - Decimal(row[column]) * PS) <= TOLERANCE_PS, column
    if ranks.topology == "full_mesh":
        assert ranks.network.visits == 0
