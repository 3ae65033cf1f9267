"""What the sharing of the interconnect costs, in bare SimPy timeouts of the same run.

    python benchmarks/network.py [--ranks 64,256] [--repeats 3]

Every rank reads 64 KiB from every other over a crossbar with 190 GB/s in and out per rank and 2 us of
latency. ``naive`` order begins with peer 0 everywhere, ``rotated`` with the right neighbour; ``in flight``
is the number of reads a rank keeps going, ``tiles`` how many it cuts each 64 KiB into (a flow each); a skew
spreads the starts of the ranks. ``path 4`` adds the HBM of the source and a link of its own to every path, as
the machine model has them.

Columns: events of the clock, settlings and flow visits per flow, CPU microseconds per flow with all events,
and that as a multiple of one bare timeout.
"""

from __future__ import annotations

import argparse
import random
from itertools import product

from measuring import bare_timeout_us, cpu

from a2a3sim.engine import Engine
from a2a3sim.models import Capacity, Network, Route

RATE = 190 * 10**9
LATENCY_PS = 2_000_000
SKEW_PS = 3_000_000
NBYTES = 65536


def build_routes(ranks: int, long_path: bool):
    """routes[reader][source]."""
    egress = [Capacity(f"egress{rank}", RATE, "egress") for rank in range(ranks)]
    ingress = [Capacity(f"ingress{rank}", RATE, "ingress") for rank in range(ranks)]
    hbm = [Capacity(f"hbm{rank}", 1_600 * 10**9, "hbm") for rank in range(ranks)]

    def route(reader, source):
        uses = [(egress[source], 1), (ingress[reader], 1)]
        if long_path:
            link = Capacity(f"link{source}-{reader}", RATE, "link")
            uses = [(hbm[source], 1), uses[0], (link, 1), uses[1]]
        return Route(uses, None, LATENCY_PS)

    return [
        [route(reader, source) if reader != source else None for source in range(ranks)]
        for reader in range(ranks)
    ]


def run_mesh(ranks: int, routes, rotated: bool, skew: bool, *, in_flight: int, tiles: int):
    """All reads of a mesh; returns (engine, network, CPU seconds)."""
    engine = Engine()
    network = Network(engine)
    jitter = random.Random(1)

    def begin(rank):
        peers = [(rank + step) % ranks for step in range(1, ranks)]
        if not rotated:
            peers.sort()
        left = iter([peer for peer in peers for _ in range(tiles)])

        def request(_flow=None):
            peer = next(left, None)
            if peer is not None:
                engine.at(engine.now + LATENCY_PS, start, routes[rank][peer])

        def start(route):
            network.start(NBYTES // tiles, route, request)

        for _ in range(in_flight):
            request()

    for rank in range(ranks):
        engine.at(jitter.randrange(SKEW_PS) if skew else 0, begin, rank)
    spent = cpu(engine.run)
    network.close()
    return engine, network, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="64")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    head = "   P path order    skew in flight tiles   flows  events settles visits/flow us/flow timeouts"
    print(head)
    for ranks in map(int, options.ranks.split(",")):
        bare = min(bare_timeout_us(ranks) for _ in range(options.repeats))
        for long_path in (False, True):
            routes = build_routes(ranks, long_path)
            for (in_flight, tiles), rotated, skew in product(
                ((1, 1), (4, 1), (4, 4)), (True, False), (False, True)
            ):
                repeats = options.repeats if in_flight == 1 else 1
                runs = [
                    run_mesh(ranks, routes, rotated, skew, in_flight=in_flight, tiles=tiles)
                    for _ in range(repeats)
                ]
                engine, network, spent = min(runs, key=lambda run: run[2])
                flows = network.flows
                us, visits = spent / flows * 1e6, network.visits / flows
                order, spread = "rotated" if rotated else "naive", "3 us" if skew else "none"
                print(
                    f"{ranks:4} {4 if long_path else 2:4} {order:8} {spread} {in_flight:9} {tiles:5} "
                    f"{flows:7} {engine.events:7} {network.settles:7} {visits:11.2f} {us:7.2f} "
                    f"{us / bare:8.1f}"
                )
        print(f"{ranks:4} one bare timeout: {bare:.2f} us")


if __name__ == "__main__":
    main()
