"""Under plain Python a run with findings or wrong numbers says so once, at the line of the call."""

import warnings

import numpy as np
import pytest
from running import compiled

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig
from a2a3sim.errors import FindingsWarning

from .programs import add, build, me, wait


def racy(x, y, data, signal):
    pl.store(pl.load(x, [0, 0], [1, 256]), [0, 0], data)
    pl.store(pld.tile.remote_load(data, 1 - me(data), [0, 0], [1, 256]), [0, 0], y)


def clean(x, y, data, signal):
    rank = me(data)
    pl.store(pl.load(x, [0, 0], [1, 256]), [0, 0], data)
    add(signal, 1 - rank, rank, 0)
    wait(signal, 1, 1 - rank, 0)
    pl.store(pld.tile.remote_load(data, 1 - rank, [0, 0], [1, 256]), [0, 0], y)


def call(body, **more):
    x = np.arange(512, dtype=np.float32).reshape(2, 1, 256)
    y = np.zeros_like(x)
    compiled(build(body), 2)(x, y, config=RunConfig(machine="ideal"), **more)


def test_a_race_is_told_at_the_line_of_the_call():
    with pytest.warns(FindingsWarning, match="race") as told:
        call(racy)
    assert len(told) == 1
    assert told[0].filename == __file__


def test_wrong_numbers_are_told():
    with pytest.warns(FindingsWarning, match="wrong numerics"):
        call(clean, golden=np.ones((2, 1, 256), np.float32))


def test_a_clean_run_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(clean)
