"""Deadlock reports name who waits for what, what it saw, and where the notify went instead."""

import subprocess
import sys

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import DeadlockError

from .programs import add, me, run, wait

WRONG_ROW = """
import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig

@pl.program
class WrongRow:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, y: pl.Out[pl.Tensor[[1, 8], pl.FP32]], signal: pl.InOut[pld.DistributedTensor[[2, 4], pl.INT32]]):
        me = pld.rank(pld.get_comm_ctx(signal))
        for peer in pl.range(4):
            if peer != me:
                pld.system.notify(signal, peer, [0, me], 1, op=pld.NotifyOp.AtomicAdd)
        for peer in pl.range(4):
            if peer != me:
                row = 1 if me == 2 and peer == 3 else 0
                pld.system.wait(signal, [row, peer], 1, cmp=pld.WaitCmp.Ge)

    @pl.function(type=pl.FunctionType.Orchestration)
    def per_rank(self, y: pl.Out[pl.Tensor[[1, 8], pl.FP32]], signal: pl.InOut[pld.DistributedTensor[[2, 4], pl.INT32]]):
        self.kernel(y, signal)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, y: pl.Out[pl.Tensor[[4, 1, 8], pl.FP32]]):
        buf = pld.alloc_window_buffer([2, 4], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            signal = pld.window(buf, [2, 4], dtype=pl.INT32)
            self.per_rank(y[r], signal, device=r)

compiled = ir.compile(WrongRow, distributed_config=DistributedConfig(device_ids=[0, 1, 2, 3]))
compiled(np.zeros((4, 1, 8), np.float32))
print("OK")
"""


def test_a_wait_on_the_wrong_row_ends_with_a_report_and_exit_1(tmp_path):
    script = tmp_path / "wrong_row.py"
    script.write_text(WRONG_ROW)
    done = subprocess.run(
        [sys.executable, "-c", "from a2a3sim.cli import main; main()", "run", str(script)],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "OK" not in done.stdout
    assert "Traceback" not in done.stderr
    for words in (
        "rank 2 waits at wrong_row.py:19",
        "buf[1, 3] >= 1",
        "it holds 0",
        "nobody has notified this cell",
    ):
        assert words in done.stderr
    assert (
        "near miss: rank 3 at wrong_row.py:15 raised buf[0, 3] of rank 2, which nobody waits for"
        in done.stderr
    )


def deadlock(body, **more):
    ran = run(body, raises=True, **more)
    assert isinstance(ran.error, DeadlockError)
    finding = ran.result.findings[0]
    assert (finding.kind, finding.severity) == ("deadlock", "error")
    return ran, finding


def test_the_result_of_a_deadlocked_run_is_kept():
    def body(x, y, data, signal):
        pld.tile.remote_load(data, 1 - me(data), [0, 0], [1, 64])
        wait(signal, 1)

    ran, finding = deadlock(body)
    assert finding.ranks == [0, 1]
    assert [r.remote_read_bytes for r in ran.result.per_rank] == [256, 256]


def test_a_ring_that_notifies_the_wrong_neighbour_shows_the_cycle():
    def body(x, y, data, signal):
        rank = me(data)
        add(signal, (rank + 3) % 4, 0, rank)  # should be the right neighbour
        wait(signal, 1, 0, (rank + 3) % 4)

    ran, finding = deadlock(body, ranks=4)
    assert "wait-for cycle: rank 0 -> rank 3 -> rank 2 -> rank 1 -> rank 0" in str(ran.error)
    assert "near miss" in str(ran.error)
    assert finding.ranks == [0, 1, 2, 3]


def test_an_absent_member_is_named():
    def body(x, y, data, signal):
        rank = me(data)
        for peer in range(3):
            if peer != rank and rank != 2:
                add(signal, peer, 0, rank)
        for peer in range(3):
            if peer != rank:
                wait(signal, 1, 0, peer)

    ran, _ = deadlock(body, ranks=3)
    assert "rank 2 has finished without a notify" in str(ran.error)


def test_an_epoch_off_by_one_shows_what_came():
    def body(x, y, data, signal):
        rank = me(data)
        add(signal, 1 - rank, 0, rank)
        wait(signal, 2 if rank == 1 else 1, 0, 1 - rank)

    ran, finding = deadlock(body)
    assert finding.ranks == [1]
    assert ">= 2; it holds 1" in str(ran.error)
    assert "notified so far by rank 0" in str(ran.error)


def test_blocks_that_do_not_all_come_to_the_barrier():
    def body(x, y, data, signal):
        if pl.get_block_idx() != 2:
            pl.system.sync_all()

    ran, _ = deadlock(body, blocks=3)
    assert "block 0 and 1 of kernel stands at sync_all" in str(ran.error)


@pytest.mark.parametrize("seed", range(5))
def test_the_verdict_does_not_depend_on_the_seed(seed):
    def body(x, y, data, signal):
        rank = me(data)
        add(signal, (rank + 1) % 3, 1, rank)
        wait(signal, 1, 0, (rank + 2) % 3)

    _, finding = deadlock(body, ranks=3, machine="a2", config={"seed": seed})
    assert finding.ranks == [0, 1, 2]
    assert finding.where["cells"] == ["signal_buf[0, 0]", "signal_buf[0, 1]", "signal_buf[0, 2]"]
