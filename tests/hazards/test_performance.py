"""B45 - B47: right but wasteful, each with its number."""

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .harness import ADD, GE, found, me, others, results


def notes(body, **options):
    """Performance notes by subtype; the program has no other fault."""
    (run,) = results(body, **options)
    assert [f for f in run.findings if f.severity != "note"] == []
    assert run.verdict is not None
    return {f.subtype: f for f in run.findings if f.kind == "performance"}


# ---- B45: a barrier of all in every step of a ring ----------------------------------------------------------


def ring(everybody, size):
    """2(P-1) steps; each rank copies a chunk of its left neighbour."""

    def body(x, y, data, signal, e):
        rank, count = me(data), 8
        left, right = (rank + count - 1) % count, (rank + 1) % count
        pld.tensor.put(data, rank, x, [0, 0], [0, 0], [1, size])
        for step in range(2 * (count - 1)):
            tell, hear = (others(data), others(data)) if everybody else ([left, right], [left, right])
            for p in tell:
                pld.system.notify(signal, p, [rank, 16 * (step % 2)], 1, op=ADD)  # (notify)
            for p in hear:
                pld.system.wait(signal, [p, 16 * (step % 2)], step // 2 + 1, cmp=GE)  # (wait)
            pld.tile.remote_load(data, left, [0, 0], [1, size])

    return body


RING = {"ranks": 8, "cells": (8, 32), "machine": "a3"}


def test_B45_every_step_of_a_ring_notifies_everybody():
    told = notes(ring(True, 4096), size=4096, **RING)
    message = told["idle edges"].message
    assert "56 pairs of ranks notify each other in every round, but data move between 8 only" in message
    assert "% of the cores' time" in message
    assert told["idle edges"].ranks == list(range(8))


def test_B45_twin_neighbours_only():
    assert "idle edges" not in notes(ring(False, 4096), size=4096, **RING)


# ---- B46: everyone starts with peer 0; tiny pieces ---------------------------------------------------------------


def exchange(rotated, size):
    def body(x, y, data, signal, e):
        rank, count = me(data), 8
        for p in others(data):
            pld.system.notify(signal, p, [rank, 0], 1, op=ADD)
        for p in others(data):
            pld.system.wait(signal, [p, 0], 1, cmp=GE)
        peers = [(rank + 1 + k) % count for k in range(count - 1)] if rotated else others(data)
        for p in peers:
            pld.tensor.get(y, p, data, [0, 0], [0, 0], [1, size], chunk_rows=1, chunk_cols=32768)  # (get)

    return body


EXCHANGE = {"ranks": 8, "cells": (8, 16), "machine": "a3", "size": 1 << 16, "config": {"skew": "none"}}


def test_B46_everyone_starts_with_peer_0():
    told = notes(exchange(False, 1 << 16), **EXCHANGE)
    message = told["incast"].message
    assert message.startswith("Ranks 1..7 all turn to rank 0 first and share its port")
    assert "instead of" in message and "% of the run" in message
    assert told["incast"].ranks == list(range(1, 8))


def test_B46_twin_each_begins_with_its_neighbour():
    assert "incast" not in notes(exchange(True, 1 << 16), **EXCHANGE)


def pieces(size, piece):
    def body(x, y, data, signal, e):
        if me(data) == 0:
            for at in range(0, size, piece):
                pld.tile.remote_store(pl.load(x, [0, at], [1, piece]), data, 1, [0, at])  # (piece)
            pld.system.notify(signal, 1, [0, 0], 1, op=ADD)
        else:
            pld.system.wait(signal, [0, 0], 1, cmp=GE)

    return body


def test_B46_pieces_below_the_break_even_size():
    told = notes(pieces(4096, 16), size=4096)
    message = told["small moves"].message
    assert "256 moves of 64 B go one after the other" in message
    assert "up to 256 in a row" in message
    assert "KiB on" in message  # the size at which bytes take as long as latency


def test_B46_twin_one_piece():
    assert "small moves" not in notes(pieces(4096, 4096), size=4096)


# ---- B47: a fence for every peer ------------------------------------------------------------------------------------


def fenced(inside):
    def body(x, y, data, signal, e):
        rank = me(data)
        for k in range(4):
            pld.tensor.put(data, rank, x, [0, 0], [0, 0], [1, 64])
            if not inside:
                pl.system.fence()
            for p in others(data):
                if inside:
                    pl.system.fence()  # (fence)
                pld.system.notify(signal, p, [rank, 0], 1, op=ADD)
            for p in others(data):
                pld.system.wait(signal, [p, 0], 2 * k + 1, cmp=GE)
            for p in others(data):
                pld.tile.remote_load(data, p, [0, 0], [1, 64])
            pl.system.fence()
            for p in others(data):
                pld.system.notify(signal, p, [rank, 0], 1, op=ADD)
            for p in others(data):
                pld.system.wait(signal, [p, 0], 2 * k + 2, cmp=GE)

    return body


FENCED = {"ranks": 8, "cells": (8, 16), "config": {"fences": "explicit"}}


def test_B47_a_fence_before_every_notify():
    told = notes(fenced(True), **FENCED)
    message = told["idle fences"].message
    assert message.startswith("192 of 256 fences stand behind no access")
    assert "of the scalar pipes' time" in message


def test_B47_twin_one_fence_before_the_loop():
    assert "idle fences" not in notes(fenced(False), **FENCED)
    assert found(fenced(False), **FENCED) == set()


# ---- time in waits -----------------------------------------------------------------------------------------------------


def slow_producer(acknowledged):
    def body(x, y, data, signal, e):
        if me(data) == 0:
            for _ in range(40):
                tile = pl.load(x, [0, 0], [1, 64])
                for _ in range(60):
                    tile = pl.add(tile, tile)
                pld.tile.remote_store(tile, data, 1, [0, 0])
            pld.system.notify(signal, 1, [0, 0], 1, op=ADD)
        else:
            pld.system.wait(signal, [0, 0], 1, cmp=GE)  # (long wait)

    return body


def test_most_of_the_time_in_waits():
    told = notes(slow_producer(False), config={"slow": {0: "10x"}})
    assert "Cores wait" in told["waits"].message
    assert told["waits"].sites[0].operation == "wait"
