"""The columns of a trace, on the builder's costs: 10 ns to issue, 1 µs latency, 1000 bytes a µs."""

import numpy as np
from built_traces import NS, US, Builder

from a2a3sim.result import PairTraffic, Rows, RunResult
from a2a3sim.trace.table import PIPES, Table, summed


def test_columns_stand_lane_by_lane_with_minus_one_for_what_is_missing():
    b = Builder(2)
    b.store(b.lane(1), 500, b.load(b.lane(1), 500, peer=0))
    b.load(b.lane(0), 1000)
    table = Table(b.trace().lanes)
    assert (len(table), table.first.tolist()) == (3, [0, 1, 3])
    assert [table.kinds[code] for code in table.kind] == ["load", "remote_load", "store"]
    assert [PIPES[code] for code in table.pipe] == ["MTE2", "MTE2", "MTE3"]
    assert table.peer.tolist() == [-1, 0, -1]
    assert table.rank.tolist() == table.lane.tolist() == [0, 1, 1]
    assert table.remote.tolist() == [False, True, False]
    assert table.where(lambda kind: kind.side == "write").tolist() == [False, False, True]
    assert table.issued.tolist() == [10 * NS, 10 * NS, 20 * NS]
    assert (table.drained - table.start)[table.on("MTE2")].tolist() == [US, US + US // 2]
    assert table.applied.tolist() == [-1, -1, -1]
    assert all(column.dtype == np.int64 for column in (table.kind, table.peer, table.begun, table.core))


def test_an_empty_table_has_empty_columns():
    assert (len(Table([])), Table([]).begun.tolist(), Table([]).first.tolist()) == (0, [], [0])


def test_sums_are_exact_beyond_what_a_float_holds():
    big = 2**53
    assert summed(np.array([big, 1, 7]), np.array([1, 1, 0]), 3).tolist() == [7, big + 1, 0]


def test_rows_are_made_once_when_somebody_looks():
    made = []

    def make():
        made.append(1)
        return [{"src": 0, "dst": 1, "bytes": 8}]

    fields = {
        "program": "p",
        "platform": "a2",
        "platform_hash": "0",
        "ranks": 2,
        "kernel_ps": 1,
        "sync_ps": 1,
    }
    result = RunResult(**fields, total_ps=1, pairs=Rows(PairTraffic, make))
    assert made == []
    assert result.pairs == [PairTraffic(src=0, dst=1, bytes=8)] and result.pairs[0].bytes == 8
    assert RunResult.from_json(result.to_json()) == result
    assert made == [1]
