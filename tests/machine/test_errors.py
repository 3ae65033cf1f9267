"""What an error carries besides its text."""

from pathlib import Path

import pytest

import a2a3sim.language as pl
from a2a3sim import A2A3Error, KernelError

from .programs import run


def test_an_error_of_the_program_says_where_and_whose():
    def beyond(x, y, data, signal):
        pl.load(x, [0, 200], [1, 100])

    with pytest.raises(KernelError) as caught:
        run(beyond)
    error = caught.value
    line = beyond.__code__.co_firstlineno + 1
    assert Path(error.place.rpartition(f":{line}: ")[0]).name == "test_errors.py"
    assert (error.who, error.located, error.site) == ("rank 0", True, None)
    assert str(error).startswith(f"{error.place}rank 0: out of bounds")


def test_an_error_carries_nothing_until_somebody_knows():
    error = A2A3Error("no")
    assert (error.place, error.who, error.located, error.site, error.lane) == ("", "", False, None, None)
