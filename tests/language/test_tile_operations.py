"""Operations on tiles: what they compute, what they accept, what they refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.errors import InvalidOperationError, KernelError
from a2a3sim.language.kernel.casting import convert

from .programs import floats, run


def refused(body, message, error=InvalidOperationError, x=None, **more):
    with pytest.raises(error, match=message):
        run(body, floats(1, 16) if x is None else x, **more)


# ---- load and store ---------------------------------------------------------------------------------


def test_only_the_valid_part_is_read_and_the_rest_of_the_tile_is_empty():
    # 3 of 8 rows are valid; shapes may exceed the tensor.
    x = floats(3, 8)

    def body(x, y):
        tile = pl.load(x, [0, 0], [8, 8], valid_shape=[3, 8])
        pl.store(pl.add(tile, 1.0), [0, 0], y)

    assert np.array_equal(run(body, x), x + 1)


def test_valid_shape_must_lie_inside_the_tensor():
    refused(
        lambda x, y: pl.load(x, [0, 0], [8, 8], valid_shape=[4, 8]),
        "out of bounds",
        KernelError,
        floats(3, 8),
    )


def test_clamp_cuts_the_valid_part_at_the_end():
    x = floats(1, 20)

    def body(x, y):
        for at in pl.range(0, 20, 8):
            pl.store(pl.load(x, [0, at], [1, 8], clamp=True), [0, at], y)

    assert np.array_equal(run(body, x), x)


def test_load_and_store_by_keyword():
    x = floats(1, 16)

    def body(x, y):
        tile = pl.load(x, offsets=[0, 0], shapes=[1, 16], target_memory=pl.MemorySpace.Vec)
        pl.store(tile, offsets=[0, 0], output_tensor=y)

    assert np.array_equal(run(body, x), x)


def test_a_matrix_goes_into_the_trailing_axes():
    x = floats(4, 8)

    def body(x, y):
        for j in pl.range(3):
            pl.store(pl.load(x, [0, 0], [2, 8]), [j, 1, 0], y)

    y = run(body, x, (3, 4, 8))
    assert np.array_equal(y[:, 1:3], np.stack([x[:2]] * 3))
    assert not y[:, 0].any()


def test_store_returns_the_tensor():
    x = floats(1, 16)

    def body(x, y):
        other = pl.store(pl.load(x, [0, 0], [1, 16]), [0, 0], y)
        assert other is y

    run(body, x)


def test_an_atomic_store_adds():
    x = floats(1, 16)

    def body(x, y):
        tile = pl.load(x, [0, 0], [1, 16])
        for _ in pl.range(3):
            pl.store(tile, [0, 0], y, atomic=pld.AtomicType.Add)

    assert np.array_equal(run(body, x), x + x + x)


# ---- arithmetic -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, expected", [("add", np.add), ("sub", np.subtract), ("mul", np.multiply)])
def test_arithmetic_of_tiles_and_scalars(name, expected):
    x = floats(2, 16)
    operation = getattr(pl, name)

    def tiles(x, y):
        a, b = pl.load(x, [0, 0], [1, 16]), pl.load(x, [1, 0], [1, 16])
        pl.store(operation(operation(a, b), 3.0), [0, 0], y)

    assert np.array_equal(run(tiles, x, (1, 16))[0], expected(expected(x[0], x[1]), np.float32(3)))
    assert operation(7, 2) == expected(7, 2)


def test_arithmetic_refuses_other_operands():
    def tile(x):
        return pl.load(x, [0, 0], [1, 16])

    refused(lambda x, y: pl.add(tile(x), x), "pl.add: cannot combine a tile with the tensor x\\[0\\]")
    refused(lambda x, y: pl.add(2.0, tile(x)), "a scalar can only be the second operand, got 2.0")
    refused(lambda x, y: pl.add(tile(x), "one"), "cannot combine a tile with 'one'")
    refused(
        lambda x, y: pl.add(tile(x), pl.load(x, [0, 0], [1, 8])), r"one shape, got \[1, 16\] and \[1, 8\]"
    )
    refused(lambda x, y: pl.mul(tile(x), 0.5), "takes a whole number, got 0.5", x=np.zeros((1, 16), np.int32))
    for wrong in (TypeError, ValueError):
        with pytest.raises(wrong):
            pl.add([], 3)


def test_minimum_and_maximum_take_scalars():
    assert (pl.min(3, 4), pl.max(3, 4.5)) == (3, 4.5)
    with pytest.raises(TypeError, match=r"pl.min takes two scalars"):
        pl.min([1], 2)


# ---- cast -------------------------------------------------------------------------------------------

VALUES = [2.5, -2.5, 0.5, -0.5, 1.25, -1.75, 3.0, 2.6]
WHOLE = {
    "none": [2, -2, 0, 0, 1, -2, 3, 3],
    "rint": [2, -2, 0, 0, 1, -2, 3, 3],
    "round": [3, -3, 1, -1, 1, -2, 3, 3],
    "floor": [2, -3, 0, -1, 1, -2, 3, 2],
    "ceil": [3, -2, 1, 0, 2, -1, 3, 3],
    "trunc": [2, -2, 0, 0, 1, -1, 3, 2],
    "odd": [3, -3, 1, -1, 1, -1, 3, 3],
}


@pytest.mark.parametrize("number, mode", list(enumerate(WHOLE)))
def test_cast_modes_by_name_and_number(number, mode):
    x = np.array([VALUES], np.float32)
    for given_mode in (mode, number):

        def body(x, y, given_mode=given_mode):
            pl.store(pl.cast(pl.load(x, [0, 0], [1, 8]), pl.INT32, given_mode), [0, 0], y)

        assert run(body, x, out_dtype=pl.INT32).tolist() == [WHOLE[mode]]


def test_cast_saturates_and_drops_nan():
    x = np.array([1e20, -1e20, np.nan, np.inf, 200.0, -200.0], np.float32)
    assert convert(x, pl.INT32, "round").tolist() == [2147483647, -2147483648, 0, 2147483647, 200, -200]
    assert convert(x, pl.INT8, "round").tolist() == [127, -128, 0, 127, 127, -128]
    assert convert(x[:2], pl.INT64, "trunc").tolist() == [2**63 - 1, -(2**63)]


def test_narrow_floats_round_as_asked():
    # fp16 has 10 bits behind the point: neighbours of 1 are 1 + 2^-10 and 1 - 2^-11.
    step = 2.0**-10
    x = np.array([1 + step / 2, 1 + 3 * step / 2, -(1 + step / 2), 1 + step / 4], np.float32)
    found = {m: ((np.abs(convert(x, pl.FP16, m).astype(float)) - 1) / step).tolist() for m in WHOLE}
    assert found["rint"] == [0, 2, 0, 0]
    assert found["round"] == [1, 2, 1, 0]
    assert found["trunc"] == [0, 1, 0, 0]
    assert found["floor"] == [0, 1, 1, 0]
    assert found["ceil"] == [1, 2, 0, 1]
    assert found["odd"] == [1, 1, 1, 1]


@settings(max_examples=60)
@given(
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20), st.sampled_from(["fp16", "bf16"])
)
def test_directed_modes_are_neighbours_of_the_value(values, name):
    target = {"fp16": pl.FP16, "bf16": pl.BF16}[name]
    x = np.array(values, np.float32)
    with np.errstate(all="ignore"):
        low, high = (convert(x, target, m).astype(np.float64) for m in ("floor", "ceil"))
        near, odd = (convert(x, target, m).astype(np.float64) for m in ("round", "odd"))
    assert (low <= x).all() and (x <= high).all()
    assert ((near == low) | (near == high)).all()
    assert ((odd == low) | (odd == high)).all()


def test_cast_of_scalars_takes_the_default_mode_only():
    assert pl.cast(2.5, pl.INT32) == 3
    assert pl.cast(3, pl.FP32) == 3.0
    with pytest.raises(ValueError, match="of a scalar takes the default mode only"):
        pl.cast(2.5, pl.INT32, "floor")
    with pytest.raises(ValueError, match="mode must be one of none, rint, round"):
        pl.cast(2.5, pl.INT32, "up")


# ---- other tile operations --------------------------------------------------------------------------


def test_reshape_costs_nothing_and_keeps_the_order():
    x = floats(4, 8)
    keep = []

    def body(x, y):
        pl.store(pl.tile.reshape(pl.load(x, [0, 0], [4, 8]), [8, 4]), [0, 0], y)

    assert np.array_equal(run(body, x, (8, 4), keep=keep), x.reshape(8, 4))
    assert [op.kind for op in keep[0].last_trace.operations()] == ["load", "store"]


def test_reshape_must_keep_the_number_of_elements():
    refused(lambda x, y: pl.tile.reshape(pl.load(x, [0, 0], [1, 16]), [3, 5]), "not as many elements")


def test_row_sum_keeps_the_axis():
    x = floats(4, 8)

    def body(x, y):
        tile = pl.load(x, [0, 0], [4, 8])
        pl.store(pl.tile.row_sum(tile, pl.tile.create([4, 8], dtype=pl.FP32)), [0, 0], y)

    assert np.array_equal(run(body, x, (4, 1)), x.sum(axis=1, keepdims=True))


def test_full_create_and_assemble_tiles():
    x = floats(1, 8)

    def body(x, y):
        tile = pl.tile.full([2, 8], dtype=pl.FP32, value=4.0)
        tile = pl.tile.assemble(tile, pl.load(x, [0, 0], [1, 8]), [1, 0])
        pl.store(tile, [0, 0], y)

    y = run(body, x, (2, 8))
    assert (y[0] == 4).all() and np.array_equal(y[1], x[0])


def test_a_slice_of_a_tile():
    x = floats(4, 8)

    def body(x, y):
        part = pl.slice(pl.load(x, [0, 0], [4, 8]), [2, 4], [1, 4])
        pl.store(pl.mul(part, 2.0), [0, 0], y)

    assert np.array_equal(run(body, x, (2, 4)), 2 * x[1:3, 4:8])
    refused(lambda x, y: pl.slice(pl.load(x, [0, 0], [1, 16]), [1, 8], [0, 9]), "out of bounds", KernelError)


def test_matmul_gives_fp32_of_floats():
    x = floats(8, 8, dtype=np.float16)

    def body(x, y):
        a = pl.move(pl.load(x, [0, 0], [8, 8]), target_memory=pl.MemorySpace.Left)
        pl.store(pl.matmul(a, pl.load(x, [0, 0], [8, 8])), [0, 0], y)

    y = run(body, x, out_dtype=pl.FP32)
    assert np.array_equal(y, x.astype(np.float32) @ x.astype(np.float32))
    refused(
        lambda x, y: pl.matmul(*[pl.load(x, [0, 0], [1, 16])] * 2),
        "inner extents must be equal, got 16 and 1",
    )


# ---- arrays and numbers -----------------------------------------------------------------------------


def test_an_array_holds_numbers():
    def body(x, y):
        counts = pl.array.create(4, pl.INT32)
        for k in pl.range(4):
            counts[k] = 10 * k
        pl.write(y, [0, 0], counts[1] + counts[3])

    assert run(body, np.zeros((1, 8), np.int32))[0, 0] == 40


def test_an_array_has_bounds_and_integers_only():
    def beyond(x, y):
        pl.array.create(4, pl.INT32)[4] = 1

    refused(beyond, r"array element 4, but the array holds \[0, 4\)", KernelError)
    refused(lambda x, y: pl.array.create(4, pl.FP32), "dtype must be an integer, BOOL or TASK_ID, got FP32")
    refused(lambda x, y: pl.array.create(0, pl.INT32), "size must be positive, got 0")


def test_reading_and_writing_elements():
    def body(x, y):
        pl.write(y, [0, 0], pl.read(x, [0, 3]))
        pl.write(y, 1, pl.read(x, 5))
        y[0, 2] = x[0, 7]
        pl.write(y, [0, 3], pl.read(pl.load(x, [0, 0], [1, 16]), [0, 9]))

    x = np.arange(16, dtype=np.int32).reshape(1, 16)
    assert run(body, x)[0, :5].tolist() == [3, 5, 7, 9, 0]
    refused(lambda x, y: pl.read(x, 16), r"element 16 of x\[0\], which holds \[0, 16\)", KernelError)
    refused(lambda x, y: pl.read(x, [1, 0]), "out of bounds", KernelError)


def test_const_must_fit_its_dtype():
    assert pl.const(-3, pl.INT32) == -3
    assert pl.const(0.1, pl.FP32) == float(np.float32(0.1))
    with pytest.raises(ValueError, match="300 does not fit into INT8"):
        pl.const(300, pl.INT8)
