"""Most programs here have findings on purpose."""

import warnings

import pytest

from a2a3sim.errors import FindingsWarning


@pytest.fixture(autouse=True)
def _no_warnings_of_findings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FindingsWarning)
        yield
