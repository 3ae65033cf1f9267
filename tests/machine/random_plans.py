"""Random programs that are race-free and cannot deadlock.

A program is a list of phases with a barrier after each. In a phase every row of every rank's data slice is
read-only, or belongs to one core that may read and write it, or takes atomic adds from anybody; so the cores
can be worked out one after the other. Credits go to random cells, and a wait asks only for what had been
sent before the last barrier.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import strategies as st

__all__ = ["COLUMNS", "ROWS", "TILES", "Plan", "plans"]

ROWS, COLUMNS = 6, 48
_KINDS = (
    "load", "remote_load", "remote_load", "remote_load", "add", "add", "scale", "store", "store",
    "remote_store", "remote_store", "remote_store", "put", "get", "save", "save", "back", "write", "read",
    "notify", "wait", "fence", "phase",
)  # fmt: skip
TILES = 5  # that a core keeps


@dataclass
class Plan:
    """What each core does in each phase, and on which machine."""

    ranks: int
    blocks: int
    phases: list = field(default_factory=list)  # of {core: [action]}
    reads: bool = False  # some program value depends on bytes
    config: dict = field(default_factory=dict)

    @property
    def cores(self):
        return [(r, b) for r in range(self.ranks) for b in range(self.blocks)]


@st.composite
def plans(draw, max_ranks=4, phases=3, actions=12, reads=True) -> Plan:
    """A random plan and machine."""
    rng = draw(st.randoms(use_true_random=True))
    plan = Plan(draw(st.integers(2, max_ranks)), draw(st.sampled_from([1, 1, 2, 3])))
    plan.config = _config(rng, draw, plan)
    sent: dict = {}  # (rank, cell) -> credits that were on their way before the last barrier
    for _ in range(draw(st.integers(1, phases))):
        roles = {(r, row): _role(rng, plan) for r in range(plan.ranks) for row in range(ROWS)}
        new: dict = {}
        acts = {c: [] for c in plan.cores}
        for core in plan.cores:
            for _ in range(rng.randint(0, actions)):
                acts[core].append(_action(rng, core, roles, plan, sent, new, reads))
        syncs = rng.random() < 0.5
        for core in plan.cores:  # all blocks or none
            acts[core] = [a for a in acts[core] if a]
            if syncs:
                acts[core].insert(rng.randint(0, len(acts[core])), ("sync",))
        for key, value in new.items():
            sent[key] = sent.get(key, 0) + value
        plan.phases.append(acts)
    return plan


def _config(rng: random.Random, draw, plan: Plan) -> dict:
    machine = draw(st.sampled_from(["ideal", "ideal-switch", "a2", "a3"]))
    choices = {
        "pipe.moves_in_flight": [*(str(k) for k in range(1, 9)), "unlimited"],
        "pipe.queue": ["1", "2", "5", "unlimited"],
        "pipe.rate": ["3GB/s", "30GB/s", "unlimited"],
        "hbm.latency": ["0", "1ns", "300ns", "2us"],
        "hbm.bandwidth": ["1GB/s", "7GB/s", "1500GB/s", "unlimited"],
        "ub.size": ["8KiB", "9KiB", "12KiB"],
        "link.latency": ["0", "100ns", "5us"],
        "link.bandwidth": ["1GB/s", "10GB/s", "unlimited"],
        "port.egress": ["20GB/s"],
        "port.ingress": ["20GB/s"],
        "efficiency.read": ["50%", "85%"],
        "signal.poll": ["0", "41ns", "300ns"],
        "signal.atomic": ["0", "20ns", "100ns"],
        "signal.issue": ["0", "10cycles"],
        "core.issue": ["0", "1cycles", "17cycles"],
        "core.sync": ["0", "50ns"],
        "vector.default.default.startup": ["0", "10cycles", "1000cycles"],
    }
    overrides = {key: rng.choice(values) for key, values in choices.items() if rng.random() < 0.35}
    overrides["align.row"] = "none"
    if "ub.size" in overrides:
        overrides["ub.reserved"] = "0"
    devices = 8 if machine == "a2" else 16
    return {
        "machine": machine,
        "platform_overrides": overrides,
        "fences": draw(st.sampled_from(["statement", "statement", "notify", "explicit"])),
        "seed": draw(st.sampled_from([0, 0, 1, 5])),
        "skew": rng.choice([None, "none", "3us"]),
        "slow": rng.choice([{}, {}, {0: "2x"}, {1: "1.5x"}]),
        "place": rng.sample(range(devices), plan.ranks) if rng.random() < 0.3 else None,
    }


def _role(rng: random.Random, plan: Plan):
    kind = rng.random()
    return "read" if kind < 0.3 else "add" if kind < 0.5 else rng.choice(plan.cores)


def _region(rng: random.Random, roles, rank: int, allowed):
    """(row, rows, column, columns) of rows whose role is allowed, or None."""
    rows = [row for row in range(ROWS) if roles[rank, row] in allowed]
    if not rows:
        return None
    row, count = rng.choice(rows), 1
    while row + count < ROWS and roles[rank, row + count] in allowed and rng.random() < 0.6:
        count += 1
    column = rng.choice([0, 0, rng.randrange(COLUMNS)])
    return row, count, column, rng.choice([COLUMNS - column, rng.randint(1, COLUMNS - column)])


def _action(rng: random.Random, core, roles, plan: Plan, sent, new, reads: bool):
    kind = rng.choice(_KINDS)
    own = core[0]
    peer = rng.choice([own, rng.randrange(plan.ranks)])
    chunk, pipelined, add = rng.choice([0, 0, 8, 16]), rng.random() < 0.5, rng.random() < 0.4
    if kind in ("remote_load", "get", "load", "read"):
        peer = own if kind in ("load", "read") else peer
        region = _region(rng, roles, peer, ("read", core))
        if region is None or (kind == "read" and not reads):
            return None
        plan.reads |= kind == "read"
        return (kind, peer, region, chunk, pipelined)
    if kind in ("store", "remote_store", "put", "write"):
        peer = own if kind in ("store", "write") else peer
        add &= kind != "write"
        region = _region(rng, roles, peer, ("add",) if add else (core,))
        return region and (kind, peer, region, chunk, pipelined, add, rng.random())
    if kind == "notify":
        cell, value = rng.randrange(8 * (len(roles) // plan.ranks)), rng.choice([1, 1, 2, 5])
        new[peer, cell] = new.get((peer, cell), 0) + value
        return (kind, peer, cell, value)
    if kind == "wait":
        cells = [cell for rank, cell in sent if rank == own]
        if not cells:
            return None
        cell = rng.choice(cells)
        return (kind, cell, rng.randint(0, sent[own, cell]))
    return (kind, rng.random(), rng.random(), rng.random())
