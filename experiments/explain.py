"""A script's runs explained: the story of each, and what its results are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from a2a3sim import A2A3Error, ConfigError, RunResult
from a2a3sim.checks import Suppressions, explain, trace_back
from a2a3sim.experiments.witness import attach_witnesses
from a2a3sim.reports import Story
from a2a3sim.run import Session, session
from a2a3sim.trace import UNKNOWN

__all__ = ["Explained", "explain_script"]

_BUDGET = 4_000_000  # operations of the repetitions that trace one call back
_TRACED = 4  # calls whose right results are traced back; wrong ones always are


@dataclass
class Explained:
    """What a script did.

    Attributes:
        status: its own exit status.
        error: what ended it, if the simulator did.
    """

    stories: list[Story]
    status: int
    error: A2A3Error | None = None

    @property
    def runs(self) -> list[RunResult]:
        """The result of each run."""
        return [story.result for story in self.stories]


def explain_script(
    script: str,
    args: Sequence[str],
    forced: Mapping[str, Any],
    suppressions: Suppressions | None = None,
    witness: bool = False,
) -> Explained:
    """Run a script and find out what each of its calls did and why.

    Args:
        forced: RunConfig fields that come before the script's own.
        suppressions: which findings are accepted.
        witness: look for a schedule on which each race bites.
    """
    from a2a3sim.pypto import run_script

    stories: list[Story] = []

    def observe(program, result, trace) -> None:
        call = program.last_call
        wrong = result.numerics is not None and not result.numerics.ok
        over = all(dispatch.end != UNKNOWN for dispatch in trace.dispatches)
        ask = call is not None and over and (wrong or len(stories) < _TRACED)
        if witness:
            attach_witnesses(program, result, trace)
        reasons = (
            explain(call, trace_back(call, _BUDGET)) if ask and not (call.obstacle and not wrong) else None
        )
        stories.append(Story(result, trace, reasons))

    with session(Session(forced, [observe], keep_calls=True, suppressions=suppressions)):
        error = None
        try:
            status = run_script(script, list(args))
        except A2A3Error as raised:
            if isinstance(raised, ConfigError) and not stories:
                raise
            status, error = 1, raised
    for story in stories:
        story.doubted = bool(status)
    return Explained(stories, status, error)
