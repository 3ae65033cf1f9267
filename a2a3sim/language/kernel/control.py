"""Blocks, phases, barriers and fences of kernel code."""

from __future__ import annotations

from sys import _getframe
from types import FrameType
from typing import Self, SupportsIndex

from a2a3sim.errors import InvalidOperationError, ParserSyntaxError
from a2a3sim.language.context import caller_site, current, kernel_context
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.kernel.device_int import device_int
from a2a3sim.models.operation import Signal

__all__ = ["drain", "fence", "get_block_idx", "get_block_num", "phase", "spmd", "sync_all"]


def get_block_idx() -> int:
    """Which of the kernel's blocks this core runs, from 0."""
    return device_int(kernel_context("pl.get_block_idx").lane.block)


def get_block_num() -> int:
    """On how many cores of the device the kernel runs."""
    return device_int(kernel_context("pl.get_block_num").lane.blocks)


class spmd:
    """``with pl.spmd(n):`` around a kernel call in an orchestration: the kernel runs as n blocks on n cores.

    Raises:
        ParserSyntaxError: outside of an orchestration.
        InvalidOperationError: n is not positive.
    """

    def __init__(self, blocks: SupportsIndex) -> None:
        self.blocks = dim_value(blocks)
        if self.blocks < 1:
            raise InvalidOperationError(f"pl.spmd: the number of blocks must be positive, got {self.blocks}")

    def __enter__(self) -> Self:
        context = current()
        if context is None or context.level != "orchestration":
            raise ParserSyntaxError("pl.spmd stands around a kernel call in an orchestration")
        self._before = context.blocks
        context.blocks = self.blocks
        self._context = context
        return self

    def __exit__(self, *_exc: object) -> None:
        self._context.blocks = self._before


class phase:
    """``with pl.phase("reduce-scatter"):`` names what a rank does there, for reports; it costs nothing."""

    def __init__(self, name: str) -> None:
        self.name = str(name)

    def __enter__(self) -> Self:
        self._around = self._mark(self.name, _getframe(1))
        return self

    def __exit__(self, *_exc: object) -> None:
        self._mark(self._around, _getframe(1))

    @staticmethod
    def _mark(name: str | None, frame: FrameType) -> str | None:
        """Enter the marker; returns the phase that it ends or interrupts."""
        ctx = kernel_context("pl.phase")
        before: str | None = ctx.lane.phase
        op = Signal(ctx.lane, "phase", "S", (frame.f_code, frame.f_lasti))
        op.value = ctx.lane.phase = name  # type: ignore[assignment]  # of a marker it is the name
        ctx.core.mark(op)
        return before


def sync_all() -> None:
    """Barrier of a kernel's blocks on one device: none leaves before all writes of all are visible."""
    ctx = kernel_context("pl.system.sync_all")
    ctx.group.arrive(ctx.core, Signal(ctx.lane, "sync_all", "S", caller_site()))


def fence() -> None:
    """The scalar pipe stands until all earlier writes of this core are visible everywhere."""
    _fence("fence", True, _getframe(1))


def drain() -> None:
    """The scalar pipe stands until this core's pipes are empty: earlier writes have left it, no more."""
    _fence("drain", False, _getframe(1))


def _fence(kind: str, visible: bool, frame: FrameType) -> None:
    ctx = kernel_context(f"pl.system.{kind}")
    ctx.core.fence(Signal(ctx.lane, kind, "S", (frame.f_code, frame.f_lasti)), visible)
