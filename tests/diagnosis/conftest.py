"""Compilations of these tests leave nothing behind."""

import pytest


@pytest.fixture(autouse=True)
def _own_build_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    monkeypatch.delenv("A2A3SIM_PLATFORM", raising=False)
