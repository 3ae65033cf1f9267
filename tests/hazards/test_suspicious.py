"""Correct programs that look suspicious: no error and no warning may come of them."""

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .harness import ADD, EQ, GE, SET, found, me, others

ROW = [1, 64]


def tell(signal, peer, row, column=0, value=1, op=ADD):
    pld.system.notify(signal, peer, [row, column], value, op=op)


def hear(signal, row, value, column=0, cmp=GE):
    pld.system.wait(signal, [row, column], value, cmp=cmp)


def stage(x, data, at=0):
    pl.store(pl.load(x, [0, 0], ROW), [0, at], data)


@pytest.mark.parametrize("ranks", [3, 5])
def test_dissemination_barrier(ranks):
    def body(x, y, data, signal, e):
        rank, acc = me(data), None
        for k in range(1, 4):
            stage(x, data)
            for phase in range(2):  # one barrier before the reads, one after
                step, row = 1, 3 * phase
                while step < ranks:
                    tell(signal, (rank + step) % ranks, row)
                    hear(signal, row, k)
                    step, row = 2 * step, row + 1
                if not phase:
                    acc = pld.tile.remote_load(data, (rank + 2) % ranks, [0, 0], ROW)
        pl.store(acc, [0, 0], y)

    assert found(body, ranks=ranks, cells=(6, 16)) == set()


def test_central_counter_and_release_flags():
    def body(x, y, data, signal, e):
        rank, count = me(data), 4
        for k in range(1, 4):
            stage(x, data)
            for gate in range(2):
                epoch = 2 * (k - 1) + gate + 1
                tell(signal, 0, 0)
                if rank == 0:
                    hear(signal, 0, count * epoch)
                    for p in range(count):
                        tell(signal, p, 1, value=epoch, op=SET)
                hear(signal, 1, epoch)
                if not gate:
                    pld.tile.remote_load(data, (rank + 1) % count, [0, 0], ROW)

    assert found(body, ranks=4) == set()


def test_double_buffers_with_credits_on_every_core():
    def body(x, y, data, signal, e):
        block, peer = pl.get_block_idx(), 1 - me(data)
        base = 128 * block
        for k in range(6):
            slot = base + 64 * (k % 2)
            if k >= 2:
                hear(signal, 1, k - 1, 16 * block)
            pld.tensor.put(data, peer, x, [0, slot], [0, 0], ROW)
            tell(signal, peer, 0, 16 * block)
            hear(signal, 0, k + 1, 16 * block)
            pl.store(pl.load(data, [0, slot], ROW), [0, 64 * block], y)
            tell(signal, peer, 1, 16 * block)

    assert found(body, size=256, tensor=(1, 128), cells=(2, 32), blocks=2) == set()


def test_halo_exchange_with_a_counter_for_each_neighbour():
    def body(x, y, data, signal, e):
        rank, count = me(data), 4
        left, right = (rank + count - 1) % count, (rank + 1) % count
        for k in range(5):
            now = 64 * (k % 2)
            stage(x, data, now)
            for p, row in ((left, 0), (right, 1)):
                tell(signal, p, row)
            hear(signal, 0, k + 1)
            hear(signal, 1, k + 1)
            for p in (left, right):
                pld.tile.remote_load(data, p, [0, now], ROW)

    assert found(body, ranks=4, size=128, tensor=(1, 64)) == set()


def test_tree_broadcast_with_acknowledgements():
    def body(x, y, data, signal, e):
        rank, count = me(data), 7
        children = [c for c in (2 * rank + 1, 2 * rank + 2) if c < count]
        for k in range(1, 4):
            if rank:
                hear(signal, 0, k)
                pld.tensor.get(data, (rank - 1) // 2, data)
            else:
                stage(x, data)
            for c in children:
                tell(signal, c, 0)
            if children:
                hear(signal, 1, k * len(children))
            if rank:
                tell(signal, (rank - 1) // 2, 1)

    assert found(body, ranks=7) == set()


def test_accumulation_in_memory_counted_by_one_cell():
    def body(x, y, data, signal, e):
        rank, count = me(data), 4
        for k in range(1, 4):
            pld.tensor.put(data, 0, x, atomic=pld.AtomicType.Add)
            tell(signal, 0, 0)
            if rank == 0:
                hear(signal, 0, count * k)
                pl.store(pl.load(data, [0, 0], ROW), [0, 0], y)
                pl.store(pl.tile.full([1, 64], pl.FP32, 0.0), [0, 0], data)
                for p in range(count):
                    tell(signal, p, 1)
            hear(signal, 1, k)

    assert found(body, ranks=4) == set()


def test_a_flag_that_its_reader_lowers_and_reports():
    def body(x, y, data, signal, e):
        for k in range(1, 4):
            if me(data) == 0:
                pld.tensor.put(data, 1, x, [0, 0], [0, 0], ROW)
                tell(signal, 1, 0, op=SET)
                hear(signal, 1, k)
            else:
                hear(signal, 0, 1, cmp=EQ)
                pl.store(pl.load(data, [0, 0], ROW), [0, 0], y)
                tell(signal, 1, 0, value=0, op=SET)
                tell(signal, 0, 1)

    assert found(body) == set()


def test_one_block_waits_for_all():
    def body(x, y, data, signal, e):
        rank, block = me(data), pl.get_block_idx()
        for k in range(1, 4):
            part = [0, 16 * block]
            pl.store(pl.load(x, part, [1, 16]), part, data)
            pl.system.sync_all()
            if block == 0:
                for p in others(data):
                    tell(signal, p, 0, 16 * rank)
                for p in others(data):
                    hear(signal, 0, k, 16 * p)
            pl.system.sync_all()
            for p in others(data):
                pld.tile.remote_load(data, p, part, [1, 16])
            pl.system.sync_all()
            if block == 0:
                for p in others(data):
                    tell(signal, p, 1, 16 * rank)
                for p in others(data):
                    hear(signal, 1, k, 16 * p)
            pl.system.sync_all()

    assert found(body, ranks=3, blocks=4, cells=(2, 64)) == set()


def test_a_flag_that_is_looked_at_again_and_again():
    """Raised once, for good: later waits need nothing new."""

    def body(x, y, data, signal, e):
        if me(data) == 0:
            stage(x, data)
            tell(signal, 1, 0)
        else:
            for _ in range(4):
                hear(signal, 0, 1)
                pl.store(pld.tile.remote_load(data, 0, [0, 0], ROW), [0, 0], y)

    assert found(body) == set()


def test_a_count_that_is_read_after_its_wait():
    def body(x, y, data, signal, e):
        rank = me(data)
        for p in others(data):
            tell(signal, p, 0, 16 * rank, value=100 + rank, op=SET)
            tell(signal, p, 1)
        hear(signal, 1, len(others(data)))
        for p in others(data):
            assert pl.read(signal, [0, 16 * p]) == 100 + p

    assert found(body, ranks=3, cells=(2, 64)) == set()


def test_two_barriers_on_one_row_told_apart_by_their_counts():
    def body(x, y, data, signal, e):
        rank = me(data)
        for epoch in range(1, 5):
            if epoch % 2:
                stage(x, data)
            for p in others(data):
                tell(signal, p, 0, 16 * rank)
            for p in others(data):
                hear(signal, 0, epoch, 16 * p)
            if epoch % 2:
                for p in others(data):
                    pld.tile.remote_load(data, p, [0, 0], ROW)

    assert found(body, ranks=4, cells=(1, 64)) == set()


def test_a_relay_that_passes_the_news_on():
    """Rank 2 hears of rank 0's data from rank 1 only."""

    def body(x, y, data, signal, e):
        rank = me(data)
        if rank == 0:
            stage(x, data)
            tell(signal, 1, 0)
        elif rank == 1:
            hear(signal, 0, 1)
            tell(signal, 2, 0)
        else:
            hear(signal, 0, 1)
            pl.store(pld.tile.remote_load(data, 0, [0, 0], ROW), [0, 0], y)

    assert found(body, ranks=3) == set()


def test_a_long_ping_pong():
    def body(x, y, data, signal, e):
        rank = me(data)
        for k in range(1, 101):
            if (k + rank) % 2:
                stage(x, data)
                tell(signal, 1 - rank, 0)
            else:
                hear(signal, 0, (k + 1) // 2 if rank else k // 2)
                pld.tile.remote_load(data, 1 - rank, [0, 0], ROW)

    assert found(body) == set()


def test_padding_that_nobody_wrote_is_copied_along():
    """Rows beyond the valid ones hold anything, and nobody looks at them."""

    def body(x, y, data, signal, e):
        room = pl.create_tensor([2, 64], pl.FP32)
        pl.store(pl.load(x, [0, 0], ROW), [0, 0], room)
        pld.tensor.put(data, 1 - me(data), room)
        tell(signal, 1 - me(data), 0)
        hear(signal, 0, 1)
        pl.store(pl.load(data, [0, 0], ROW), [0, 0], y)

    assert found(body, rows=2, tensor=(1, 64)) == set()


def test_values_that_nobody_wrote_are_used():
    """The faulty twin: arithmetic, a scalar read, and an atomic add."""

    def arithmetic(x, y, data, signal, e):
        room = pl.create_tensor([1, 64], pl.FP32)
        pl.store(pl.add(pl.load(room, [0, 0], ROW), pl.load(x, [0, 0], ROW)), [0, 0], y)  # (sum)

    def scalar(x, y, data, signal, e):
        pl.read(y, [0, 3])  # (look)

    def tile(x, y, data, signal, e):
        pl.store(pl.mul(pl.tile.create([1, 64], pl.FP32), 2.0), [0, 0], y)  # (double)

    def adding(x, y, data, signal, e):
        pl.store(pl.load(x, [0, 0], ROW), [0, 0], y, atomic=pld.AtomicType.Add)  # (accumulate)

    for body, mark in ((arithmetic, "sum"), (scalar, "look"), (tile, "double"), (adding, "accumulate")):
        assert found(body) == {("uninitialised", "error", (mark,))}
