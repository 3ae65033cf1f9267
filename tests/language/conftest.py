"""Compilations of the tests leave their directories where pytest cleans up."""

import pytest


@pytest.fixture(autouse=True)
def build_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))
    return tmp_path
