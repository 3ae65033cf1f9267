"""Which earlier accesses of a core a new one must follow, against looking at every byte and every access."""

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a3sim.models.memory import Access
from a2a3sim.models.operation import UNKNOWN, Move
from a2a3sim.models.overlap import OpenAccesses, overlaps

MEMORY = object()


@st.composite
def regions(draw):
    rows, row = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    stride = row if rows == 1 else draw(st.integers(row, 14))
    return Access(MEMORY, draw(st.integers(0, 40)), rows, row, stride)


def bytes_of(access):
    _, offset, rows, row_bytes, stride = access
    return {offset + r * stride + k for r in range(rows) for k in range(row_bytes)}


@given(regions(), regions())
def test_regions_overlap_if_they_share_a_byte(a, b):
    assert overlaps(a, b) == overlaps(b, a) == bool(bytes_of(a) & bytes_of(b))


@settings(max_examples=200, derandomize=True)
@given(st.lists(st.tuples(regions(), st.booleans(), st.integers(0, 3)), min_size=2, max_size=200))
def test_every_conflict_is_ordered_directly_or_through_another(accesses):
    # The third number is how many operations may be unfinished: the oldest end as the core goes on.
    opened, number = OpenAccesses(), count()
    ops: list[Move] = []
    follows: dict[Move, set] = {}
    for now, (access, writes, keep) in enumerate(accesses):
        for op in ops[: max(0, len(ops) - 10 * keep)]:
            if op.end == UNKNOWN:
                op.end = now
        op = Move(None, "load", "MTE2", None)
        op.seq = next(number)
        if writes:
            op.writes = (access,)
        else:
            op.reads = (access,)
        before = opened.add(op, now)
        follows[op] = set(before).union(*(follows[b] for b in before))
        for o in ops:
            if o.end == UNKNOWN and (writes or o.writes):
                (earlier,) = (*o.reads, *o.writes)
                assert o in follows[op] or not bytes_of(access) & bytes_of(earlier)
        assert all(o.end == UNKNOWN for o in before)
        assert [o.seq for o in before] == sorted((o.seq for o in before), reverse=True)
        ops.append(op)


def test_the_work_does_not_grow_with_what_is_open_elsewhere():
    # Tiles of 64 B side by side, all unfinished: a write meets only what it overlaps.
    opened = OpenAccesses()
    for k in range(2000):
        op = Move(None, "store", "MTE3", None)
        op.seq, op.writes = k, (Access(MEMORY, 64 * k, 1, 64, 64),)
        assert opened.add(op, 0) == []
    looked = 0

    class Counting(Move):
        @property
        def end(self):
            nonlocal looked
            looked += 1
            return UNKNOWN

        @end.setter
        def end(self, value):
            pass

    for k in range(2000, 2100):
        op = Counting(None, "store", "MTE3", None)
        op.seq, op.writes = k, (Access(MEMORY, 64 * k, 1, 64, 64),)
        opened.add(op, 0)
    assert looked < 2000
