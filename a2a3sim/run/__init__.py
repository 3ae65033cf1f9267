"""From a recorded program and its settings to a run: what commands, experiments and benchmarks need of it."""

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim.language.host.arguments import host_tensors
    from a2a3sim.run.bound import bound_ps
    from a2a3sim.run.calls import record
    from a2a3sim.run.delays import Delay
    from a2a3sim.run.launch import Launch
    from a2a3sim.run.numerics import TOLERANCES
    from a2a3sim.run.rerun import Again, Call
    from a2a3sim.run.settings import Session, Settings, current_session, resolve, session

__all__ = [
    "TOLERANCES", "Again", "Call", "Delay", "Launch", "Session", "Settings", "bound_ps", "current_session", "host_tensors",
    "record", "resolve", "session",
]  # fmt: skip

__getattr__, __dir__ = lazy(__name__)
