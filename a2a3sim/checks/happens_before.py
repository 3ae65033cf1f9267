"""Races, early releases, lost credits and their kin: everything that guaranteed happens-before can tell."""

from __future__ import annotations

from a2a3sim.checks.cells import report_line_shares, report_overflow, report_residue
from a2a3sim.checks.clocks import Clocks
from a2a3sim.checks.early_release import EarlyReleases
from a2a3sim.checks.findings import Finding, Folder
from a2a3sim.checks.history import HistoryState
from a2a3sim.checks.lost_credit import report_cell_races, report_lost_credits
from a2a3sim.checks.plain import mark_plain_accesses
from a2a3sim.checks.program import Program
from a2a3sim.checks.race_report import report_races
from a2a3sim.checks.races import Accesses

__all__ = ["check_program"]


def check_program(
    program: Program, history: HistoryState | None = None, kept: bool = False, set_writes_line: bool = True, trace=None
) -> list[Finding]:
    """What can go wrong on some schedule of this operation sequence.

    Args:
        history: cells as earlier calls left them; brought up to date if ``kept``.
        kept: the windows outlive this call.
        set_writes_line: a Set writes its whole 64-byte line back.
        trace: of this call, kept in the history if the next one may overlap with it.
    """
    plain = mark_plain_accesses(program)
    if history is not None:
        history.load(program)
    clocks = Clocks(program)
    folder = Folder(program)
    early = EarlyReleases(program, clocks)
    accesses = Accesses(program, clocks)
    report_races(folder, accesses, early)
    early.report(folder)
    if plain:
        report_cell_races(program, clocks, folder, plain)
    undefined = report_lost_credits(program, clocks, folder)
    report_overflow(program, folder)
    if set_writes_line:
        report_line_shares(program, clocks, folder)
    report_residue(program, folder, kept, early.found, undefined)
    if history is not None and kept:
        history.store(program, trace)
    return folder.findings()
