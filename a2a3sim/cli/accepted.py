"""What ``--suppress`` and the comments of a script accept, for the commands that run scripts."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["noted", "read_suppressions", "source_files"]


def read_suppressions(files: Iterable[str] | None, script: str | None = None):
    """The suppressions of some files.

    Raises:
        ConfigError: a malformed one, or one without a reason, there or in the script itself.
    """
    from a2a3sim.checks import Suppressions, in_file, in_source

    if script is not None:
        in_source(script)
    return Suppressions(rule for path in files or () for rule in in_file(path))


def source_files(trace) -> set[str]:
    """The files of the program's lines, as reports name them."""
    from a2a3sim.trace.record import resolve_site

    sites = {op.site[0]: op.site for op in trace.operations() if op.site is not None}
    return {resolve_site(site).file for site in sites.values()}


def noted(suppressions, files: Iterable[str]) -> list[str]:
    """One line for each suppression that silenced nothing.

    Raises:
        ConfigError: one in these files is malformed or has no reason.
    """
    return [
        f"suppression not used: {rule.origin}: {rule.kind} - {rule.reason}"
        for rule in suppressions.unused(sorted(files))
    ]
