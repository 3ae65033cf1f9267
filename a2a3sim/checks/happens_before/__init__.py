"""What could happen on another schedule: checks that follow from guaranteed happens-before."""

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim.checks.happens_before.findings import OrderFinding
    from a2a3sim.checks.happens_before.from_trace import check, forms_used
    from a2a3sim.checks.happens_before.history import HistoryState

__all__ = ["HistoryState", "OrderFinding", "check", "forms_used"]

__getattr__, __dir__ = lazy(__name__)
