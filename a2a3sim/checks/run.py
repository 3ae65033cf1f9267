"""Findings of one run, in the order in which people should read them."""

from __future__ import annotations

__all__ = ["check_run"]


def check_run(launch, settings, error) -> list:
    """Everything the checks say about a finished or failed run."""
    return []
