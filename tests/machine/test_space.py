"""The wait for space in UB, by hand.

On ``ideal`` a remote load of 256 fp32 takes 2 us + 40,960 ps; a store of them into the own ``y`` takes what
``hbm.bandwidth`` says: at 1 GB/s 1,024,000 ps. UB holds tiles of 1 KiB.
"""

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import KernelError
from a2a3sim.models.operation import Move, Vector
from a2a3sim.models.ub import peak_usage

from .programs import US, me, run

READ = 2 * US + 40_960
STORE = 1_024_000


def with_tiles(tiles, **overrides):
    overrides = {key.replace("__", "."): value for key, value in overrides.items()}
    return {
        "platform_overrides": {
            "ub.size": f"{tiles}KiB",
            "ub.reserved": "0",
            "pipe.moves_in_flight": "4",
            **overrides,
        }
    }


def test_a_result_in_the_place_of_an_operand_waits_until_a_store_has_read_it():
    def body(x, y, data, signal):
        if me(data) == 0:
            tile = pl.tile.full([1, 256], pl.FP32, 1.0)
            pl.store(tile, [0, 0], y)
            pl.mul(tile, 2.0)

    ran = run(body, config=with_tiles(1, hbm__bandwidth="1GB/s"))
    assert ran.log(0, "store", "muls") == [("store", 0, STORE), ("muls", STORE, STORE)]
    assert ran.ops(0, "muls")[0].after == ("space", ran.ops(0, "store")[0])


def test_a_result_in_the_place_of_an_operand_does_not_wait_for_what_makes_the_operand():
    def body(x, y, data, signal):
        if me(data) == 0:
            tile = pld.tile.remote_load(data, 1, [0, 0], [1, 256])
            pl.mul(tile, 2.0)
            pl.tile.full([1, 8], pl.FP32, 0.0)

    ran = run(body, config=with_tiles(1.25))
    assert ran.ops(0, "muls")[0].issued == 0
    assert ran.log(0, "muls") == [("muls", READ, READ)]


def test_a_tile_that_rested_takes_space_again_when_it_is_used_again():
    # Nobody uses `kept` while the two loads are on their way; its store must not make a third tile of two.
    def body(x, y, data, signal):
        if me(data) == 0:
            kept = pl.tile.full([1, 256], pl.FP32, 1.0)
            pld.tile.remote_load(data, 1, [0, 0], [1, 256])
            pld.tile.remote_load(data, 1, [0, 0], [1, 256])
            pl.store(kept, [0, 0], y)

    ran = run(body, config=with_tiles(2))
    first, second = ran.ops(0, "remote_load")
    assert (first.issued, second.issued) == (0, 0)
    assert first.end == second.end
    assert ran.ops(0, "store")[0].issued == first.end
    assert ran.ops(0, "store")[0].after[0] == "space"


def test_a_tile_made_without_an_operation_does_not_hold_space_for_ever():
    def body(x, y, data, signal):
        if me(data) == 0:
            pl.tile.create([1, 256], dtype=pl.FP32)
            for _ in range(3):
                pld.tile.remote_load(data, 1, [0, 0], [1, 256])

    ran = run(body, config=with_tiles(2))
    assert [op.issued for op in ran.ops(0, "remote_load")][:2] == [0, 0]


def test_tiles_that_are_alive_together_must_fit():
    def body(x, y, data, signal):
        tiles = [pl.load(x, [0, 0], [1, 256]) for _ in range(3)]
        for tile in tiles:
            pl.store(tile, [0, 0], y)

    ran = run(body, raises=True, config=with_tiles(2))
    assert isinstance(ran.error, KernelError)
    assert "3 tiles of kernel are alive together and need 3072 B" in str(ran.error)
    assert "UB holds 2048 B" in str(ran.error)
    assert ran.result.findings[0].kind == "capacity"


def lane_of(*specs):
    """Operations from (bytes made, operands' positions)."""
    ops = []
    for seq, (makes, operands) in enumerate(specs):
        op = Vector(None, "add", "V", None) if operands else Move(None, "load", "MTE2", None)
        op.seq, op.makes, op.operands = seq, makes, tuple(ops[k] for k in operands)
        ops.append(op)
    return ops


@pytest.mark.parametrize(
    ("specs", "peak", "alive"),
    [
        ([(4, ()), (2, ()), (4, (0, 1))], 6, [0, 1]),  # the sum stands where the first operand did
        ([(2, ()), (4, ()), (4, (0, 0)), (1, (1, 2))], 10, [0, 1, 2]),  # the operand is too small for it
        ([(4, ()), (4, (0,)), (4, (0,))], 8, [0, 1]),  # the operand is used again
        ([(8, ()), (1, ())], 8, [0]),  # nobody uses the first
    ],
)
def test_peak_usage_by_liveness_in_program_order(specs, peak, alive):
    ops = lane_of(*specs)
    used, tiles = peak_usage(ops)
    assert used == peak
    assert [op.seq for op in tiles] == alive
