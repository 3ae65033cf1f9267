"""Texts, tables and pictures of results and traces; matplotlib is imported by the pictures alone."""

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim.reports.card import ClosedForm, cost_card, typical
    from a2a3sim.reports.findings import finding_lines, finding_title, verdict_lines
    from a2a3sim.reports.heading import header
    from a2a3sim.reports.story import Story
    from a2a3sim.reports.style import (
        algorithm_colour,
        algorithm_marker,
        drawing,
        iec_ticks,
        rank_ticks,
        save,
        short_size,
        time_unit,
    )
    from a2a3sim.reports.table import PerfRow, links_line
    from a2a3sim.reports.timeline import TimelineRun, draw_timeline
    from a2a3sim.reports.traffic import TrafficPoint, draw_traffic, matrix_of

__all__ = [
    "ClosedForm", "PerfRow", "Story", "TimelineRun", "TrafficPoint", "algorithm_colour",
    "algorithm_marker", "cost_card", "draw_timeline", "draw_traffic", "drawing", "finding_lines",
    "finding_title", "header", "iec_ticks", "links_line", "matrix_of", "rank_ticks", "save", "short_size",
    "time_unit", "typical", "verdict_lines",
]  # fmt: skip

__getattr__, __dir__ = lazy(__name__)
