"""Guaranteed happens-before against an oracle: withhold an access, run everything else as far as it can.

For programs of non-negative Adds and Ge waits the outcome of a withheld run is one and the same on every
schedule, so the relation must agree with it exactly. For Sets, Eq and negative adds from elsewhere it must
not claim an order that some schedule breaks.
"""

import random

import numpy as np
import pytest
from hb_machine import Script

from a2a3sim.checks.happens_before import races
from a2a3sim.checks.happens_before.checker import check_execution
from a2a3sim.checks.happens_before.clocks import Clocks
from a2a3sim.checks.happens_before.plain import mark_plain_accesses


def relation(script):
    """For the last run's sequence: before[i, j] over all accesses, as (thread, position) each."""
    program = script.program()
    mark_plain_accesses(program)
    clocks = Clocks(program)
    rows = np.array(program.access_row)
    columns, segments = clocks.column_of[rows], np.array(program.segment_of)[rows]
    before = segments[:, None] <= clocks.matrix[rows[:, None], columns[None, :]].T
    places = [
        (t, k)
        for t, c in enumerate(script.cores)
        for k, op in enumerate(c.ops)
        if op.kind in ("read", "write")
    ]
    return before, places


def random_adds(rng, own_negative):
    """A random program of Adds and Ge waits that most schedules bring to its end."""
    script = Script()
    ranks, full = rng.randint(2, 4), rng.random()
    most = 1 if own_negative else rng.choice((1, 1, 2))
    threads = [script.core(r, k) for r in range(ranks) for k in range(rng.randint(1, most))]
    sync = most > 1 and rng.random() < 0.5
    values = {}
    for _ in range(rng.randint(8, 40)):
        thread = rng.choice(threads)
        rank, cell, what = thread.spec.rank, rng.randrange(2), rng.random()
        if what < 0.3:
            thread.write("m", 0)
        elif what < 0.7:
            peer, value = rng.randrange(ranks), rng.choice((1, 1, 1, 2))
            if own_negative and peer == rank and rng.random() < 0.5:
                value = -value
            thread.notify(peer, cell, value)
            values[peer, cell] = values.get((peer, cell), 0) + value
        else:
            value = values.get((rank, cell), 0)
            thread.wait(cell, value if rng.random() < full or value < 1 else rng.randint(1, value))
        if sync and rng.random() < 0.1:
            for other in threads:
                if other.spec.rank == rank:
                    other.sync()
    for thread in threads:
        thread.write("m", 0)
    return script


@pytest.mark.parametrize("own_negative", [False, True])
@pytest.mark.parametrize("block", range(4))
def test_adds_and_ge_are_exact(own_negative, block):
    programs = pairs = 0
    for seed in range(60):
        script = random_adds(random.Random(1000 * block + seed), own_negative)
        if not script.run(0)[0]:
            continue
        before, places = relation(script)
        script.run(1)
        assert (relation(script)[0] == before).all()
        programs += 1
        for i, (thread, position) in enumerate(places):
            _, reached = script.run(2, withheld=(thread, position))
            for j, (other, at) in enumerate(places):
                if other != thread:
                    pairs += 1
                    assert before[i, j] == (reached[other] <= at), (block, seed, places[i], places[j])
    assert programs > 20 and pairs > 1000


def random_mixed(rng):
    """A random program with Sets, Eq waits, negative adds, two launches that may be linked, several cores."""
    script = Script()
    ranks = rng.randint(2, 4)
    cores = rng.choice((1, 1, 2))
    threads = [script.core(r, k, group=r) for r in range(ranks) for k in range(rng.randint(1, cores))]
    if rng.random() < 0.3:
        if rng.random() < 0.7:
            script.edges += [(r, 100 + r) for r in range(ranks)]
        threads += [
            script.core(r, k, group=100 + r, launch=1)
            for r in range(ranks)
            for k in range(rng.randint(1, cores))
        ]
    sync, single = rng.random() < 0.5, rng.random() < 0.4
    sets, negatives, equals = rng.choice((0, 0.1, 0.3)), rng.choice((0, 0.1, 0.3)), rng.choice((0, 0.3))
    values, writer = {}, {}
    for _ in range(rng.randint(8, 40)):
        thread = rng.choice(threads)
        rank, cell, what = thread.spec.rank, rng.randrange(2), rng.random()
        if what < 0.25:
            thread.write("m", 0, 16 * rng.randrange(3), 48, rows=rng.choice((1, 2)), stride=64, at="store")
        elif what < 0.35:
            thread.read("m", 0, 16 * rng.randrange(3), 48, at="load")
        elif what < 0.65:
            peer = rng.randrange(ranks)
            if single and writer.setdefault((peer, cell), thread) is not thread and rng.random() < 0.9:
                continue
            if rng.random() < sets:
                values[peer, cell] = rng.choice((0, 1, 1, 2, 3))
                thread.set(peer, cell, values[peer, cell])
            else:
                value = rng.choice((1, 1, 1, 2)) * (-1 if rng.random() < negatives else 1)
                thread.notify(peer, cell, value)
                values[peer, cell] = values.get((peer, cell), 0) + value
        else:
            value = values.get((rank, cell), 0) if rng.random() < 0.6 else rng.randint(0, 2)
            thread.wait(cell, value, equal=rng.random() < equals)
        if sync and rng.random() < 0.1:
            for other in threads:
                if other.spec.group == thread.spec.group:
                    other.sync()
    for thread in threads:
        thread.write("m", 0, at="store")
    return script


@pytest.mark.parametrize("block", range(4))
def test_no_schedule_breaks_a_claimed_order_and_all_give_one_verdict(block):
    claims = 0
    for seed in range(60):
        script = random_mixed(random.Random(5000 * block + seed))
        done = [s for s in range(6) if script.run(s)[0]]
        if not done:
            continue
        script.run(done[0])
        before, places = relation(script)
        verdict = {f.verdict for f in check_execution(script.program())}
        for other in done[1:3]:
            script.run(other)
            assert (relation(script)[0] == before).all()
            assert {f.verdict for f in check_execution(script.program())} == verdict, (block, seed)
        ops = [script.cores[t].ops[k] for t, k in places]
        pairs = [(i, j) for i, j in np.argwhere(before) if places[i][0] != places[j][0]]
        claims += len(pairs)
        hangs = False
        for schedule in range(10, 30):
            hangs |= not script.run(schedule)[0]
            for i, j in pairs:
                assert ops[j].when < 0 or 0 <= ops[i].when < ops[j].when, (block, seed, places[i], places[j])
        if hangs:
            # A program that ends on one schedule and hangs on another is never called safe.
            assert {"lost-credit", "overshoot"} & {v[0] for v in verdict if v[1] == "error"}, (block, seed)
        for i in {i for i, _ in pairs}:
            script.run(40, withheld=places[i])
            assert all(ops[j].when < 0 for k, j in pairs if k == i), (block, seed, places[i])
    assert claims > 50


@pytest.mark.parametrize("long, batch, block", [(1, 64, 2), (8, 16, 3), (1 << 20, 5, 512)])
def test_how_histories_are_cut_does_not_matter(monkeypatch, long, batch, block):
    def run():
        found = []
        for seed in range(40):
            script = random_mixed(random.Random(777 + seed))
            script.run(0)
            found.append([(f.verdict, f.subtype, f.count) for f in check_execution(script.program())])
        return found

    whole = run()
    monkeypatch.setattr(races, "_LONG", long)
    monkeypatch.setattr(races, "_BATCH", batch)
    monkeypatch.setattr(races, "_BLOCK", block)
    assert run() == whole
