"""Races, early releases, lost credits and their kin: everything that guaranteed happens-before can tell."""

from __future__ import annotations

from typing import NamedTuple

from a2a3sim.checks.happens_before.alignment import report_alignment
from a2a3sim.checks.happens_before.cells import report_overflow, report_residue, report_unawaited
from a2a3sim.checks.happens_before.clocks import Clocks
from a2a3sim.checks.happens_before.early_release import EarlyReleases
from a2a3sim.checks.happens_before.execution import Execution
from a2a3sim.checks.happens_before.findings import Folder, OrderFinding
from a2a3sim.checks.happens_before.history import HistoryState
from a2a3sim.checks.happens_before.lines import report_line_shares
from a2a3sim.checks.happens_before.lost_credit import report_cell_races, report_lost_credits
from a2a3sim.checks.happens_before.plain import mark_plain_accesses
from a2a3sim.checks.happens_before.race_report import report_races
from a2a3sim.checks.happens_before.races import Accesses
from a2a3sim.checks.happens_before.zero_reads import report_zero_reads

__all__ = ["Options", "check_execution"]


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


def check_execution(
    execution: Execution, history: HistoryState | None = None, options: Options = _USUAL, trace: object = None
) -> list[OrderFinding]:
    """What can go wrong on some schedule of this operation sequence.

    Args:
        history: cells as earlier calls left them; brought up to date if the windows outlive this one.
        trace: of this call, kept in the history if the next one may overlap with it.
    """
    plain = mark_plain_accesses(execution)
    first = history is None or history.calls == 0
    if history is not None:
        history.load(execution)
    clocks = Clocks(execution)
    folder = Folder(execution, clocks)
    early = EarlyReleases(execution, clocks)
    accesses = Accesses(execution, clocks)
    report_races(folder, accesses, early)
    early.report(folder)
    if plain:
        report_cell_races(execution, clocks, folder, plain)
    undefined = report_lost_credits(execution, clocks, folder)
    report_overflow(execution, folder)
    if options.set_writes_line:
        report_line_shares(execution, clocks, folder, options.builtin)
    if options.granule is not None:
        report_alignment(execution, folder, options.granule, options.builtin)
    if first:
        report_zero_reads(folder, accesses)
    report_residue(execution, folder, options.kept, early.found, undefined)
    if execution.complete and not options.kept:
        report_unawaited(execution, folder, plain)
    if history is not None and options.kept:
        history.store(execution, trace)
    return folder.findings()
