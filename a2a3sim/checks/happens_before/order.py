"""Races, early releases, lost credits and their kin: everything that guaranteed happens-before can tell."""

from __future__ import annotations

from typing import NamedTuple

from a2a3sim.checks.happens_before.alignment import report_alignment
from a2a3sim.checks.happens_before.cells import report_overflow, report_residue, report_unawaited
from a2a3sim.checks.happens_before.clocks import Clocks
from a2a3sim.checks.happens_before.early_release import EarlyReleases
from a2a3sim.checks.happens_before.findings import Finding, Folder
from a2a3sim.checks.happens_before.history import HistoryState
from a2a3sim.checks.happens_before.lines import report_line_shares
from a2a3sim.checks.happens_before.lost_credit import report_cell_races, report_lost_credits
from a2a3sim.checks.happens_before.plain import mark_plain_accesses
from a2a3sim.checks.happens_before.program import Program
from a2a3sim.checks.happens_before.race_report import report_races
from a2a3sim.checks.happens_before.races import Accesses
from a2a3sim.checks.happens_before.zero_reads import report_zero_reads

__all__ = ["Options", "check_program"]


class Options(NamedTuple):
    """How a call was made.

    Attributes:
        kept: the windows outlive it.
        set_writes_line: a Set writes its whole 64-byte line back.
        granule: bytes of which addresses and lengths of transfers should be multiples, or None.
        builtin: lines at which built-in collectives are called.
    """

    kept: bool = False
    set_writes_line: bool = True
    granule: int | None = None
    builtin: frozenset[tuple[str, int]] = frozenset()


_USUAL = Options()


def check_program(
    program: Program, history: HistoryState | None = None, options: Options = _USUAL, trace=None
) -> list[Finding]:
    """What can go wrong on some schedule of this operation sequence.

    Args:
        history: cells as earlier calls left them; brought up to date if the windows outlive this one.
        trace: of this call, kept in the history if the next one may overlap with it.
    """
    plain = mark_plain_accesses(program)
    first = history is None or history.calls == 0
    if history is not None:
        history.load(program)
    clocks = Clocks(program)
    folder = Folder(program, clocks)
    early = EarlyReleases(program, clocks)
    accesses = Accesses(program, clocks)
    report_races(folder, accesses, early)
    early.report(folder)
    if plain:
        report_cell_races(program, clocks, folder, plain)
    undefined = report_lost_credits(program, clocks, folder)
    report_overflow(program, folder)
    if options.set_writes_line:
        report_line_shares(program, clocks, folder, options.builtin)
    if options.granule is not None:
        report_alignment(program, folder, options.granule, options.builtin)
    if first:
        report_zero_reads(folder, accesses)
    report_residue(program, folder, options.kept, early.found, undefined)
    if program.complete and not options.kept:
        report_unawaited(program, folder, plain)
    if history is not None and options.kept:
        history.store(program, trace)
    return folder.findings()
