"""One table of operations: everything that tells of an operation follows from its line."""

import ast
import inspect
import runpy
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.language import operations
from a2a3sim.language.context import caller_site, kernel_context
from a2a3sim.language.host.directions import directions
from a2a3sim.language.kernel import demands
from a2a3sim.language.operations import OPERATIONS, Operation
from a2a3sim.models.quantities import INSTRUCTIONS

from .programs import MACHINE, floats, run

DOCS = Path(__file__).parents[2] / "docs"
NAMES = [name for operation in OPERATIONS for name in operation.names.split()]
# What machines price although the language has no such operation.
PRICED_ONLY = set(
    ["div", "divs", "exp", "ln", "sqrt", "rsqrt", "recip", "abs", "neg", "relu", "row_max", "row_min"]
)


def test_no_name_means_two_operations():
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.names.split()[0])
def test_programs_get_what_the_table_says(operation):
    for name in operation.names.split():
        space, *path = name.split(".")
        found = {"pl": pl, "pld": pld}[space]
        for attribute in path:
            found = getattr(found, attribute)
        assert found is operation.resolve()


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.writes or o.signal], ids=lambda o: o.names)
def test_arguments_are_where_the_table_says(operation):
    for position, name in filter(None, (operation.writes, operation.signal)):
        assert list(inspect.signature(operation.resolve()).parameters)[position] == name


def test_machines_price_every_instruction():
    issued = {name for operation in OPERATIONS for name in operation.instructions}
    assert issued == set(INSTRUCTIONS) - PRICED_ONLY


def test_the_language_reference_is_up_to_date():
    page = runpy.run_path(str(DOCS / "language_refresh.py"))["reference"]()
    assert page == (DOCS / "language.md").read_text(), "python docs/language_refresh.py updates the page"
    for name in NAMES:
        assert f"`{name}" in page


def twice(tile):
    """Twice a tile."""
    ctx = kernel_context("pl.tile.twice")
    return demands.vector(
        ctx, caller_site(), "twice", tile.dtype, tile.shape, (tile,), lambda: tile.data + tile.data
    )


def test_a_vector_instruction_is_a_function_a_line_of_the_table_and_a_price(monkeypatch):
    # 1. the function that issues it
    module = ModuleType("a2a3sim.toy")
    module.twice = twice
    monkeypatch.setitem(sys.modules, "a2a3sim.toy", module)
    # 2. its line in the table
    toy = Operation("pl.tile.twice", "a2a3sim.toy:twice", "tiles", "V", instructions=("twice",))
    monkeypatch.setattr(operations, "OPERATIONS", (*OPERATIONS, toy))
    # 3. its name among what machines price, with its number of tile operands
    monkeypatch.setitem(INSTRUCTIONS, "twice", 1)

    # 30 cycles of a 1 GHz core to start, nothing per repeat: 30 ns.
    prices = {
        "core.clock": "1GHz",
        "vector.twice.default.startup": "30cycles",
        "vector.twice.default.slope": "0cycles",
    }
    kept = []
    x = floats(1, 256)
    try:
        y = run(
            lambda x, y: pl.store(pl.tile.twice(pl.load(x, [0, 0], [1, 256])), [0, 0], y),
            x,
            config=MACHINE.with_(platform_overrides=prices),
            keep=kept,
        )
        assert np.array_equal(y, x + x)
        assert [op.end - op.start for op in kept[0].last_trace.operations() if op.kind == "twice"] == [30_000]
        assert "twice" in dir(pl.tile)
    finally:
        vars(pl.tile).pop("twice", None)


def test_blocks_know_what_operations_write_and_which_windows_only_signal():
    body = ast.parse(
        "pl.store(t, [0, 0], out)\npld.system.notify(sig, 1, [0], 1, op=op)\npl.load(a, [0], [8])"
    )
    assert directions(body.body) == ({"t", "a", "op", "pl", "pld"}, {"out"})
