"""Signals between ranks: notify, wait, and waits that hold back a task instead of a core."""

from __future__ import annotations

from sys import _getframe
from typing import SupportsIndex

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.context import KernelContext, caller_site, current, kernel_context
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.handles import DistributedTensor
from a2a3sim.language.kernel import demands
from a2a3sim.language.kernel.device_int import DeviceInt
from a2a3sim.language.kernel.remote import need_window
from a2a3sim.language.types import Indices, NotifyOp, WaitCmp

__all__ = ["defer_wait", "notify", "wait"]

_INT32_MAX = 2**31 - 1
_CONDITIONS = 64  # of one task


def notify(
    target: DistributedTensor, peer: SupportsIndex, offsets: Indices, value: SupportsIndex, *, op: NotifyOp
) -> DistributedTensor:
    """Add to, or set, a signal cell of a rank (the own one included) after all earlier writes are visible.

    Raises:
        InvalidOperationError: not an INT32 window, ranks differ, or ``op`` is no NotifyOp.
        KernelError: no such peer or cell.
    """
    what = "pld.system.notify"
    # Checks by class first: this is one of the operations that simulations are made of.
    if type(target) is not DistributedTensor:
        need_window(what, "target", target)
    ctx = current()
    if type(ctx) is not KernelContext:
        ctx = kernel_context(what)
    frame = _getframe(1)
    there = target.peer(what, peer)
    if type(op) is not NotifyOp:
        raise InvalidOperationError(
            f"{what}: op must be pld.NotifyOp.AtomicAdd or pld.NotifyOp.Set, got {op!r}"
        )
    cell = there.layout.cell(what, offsets)
    if type(value) is not int:
        value = dim_value(value)
    demands.notify(
        ctx, (frame.f_code, frame.f_lasti), there, cell, there.memory.rank, value, op is NotifyOp.AtomicAdd
    )
    return target


def wait(
    signal: DistributedTensor, offsets: Indices, expected: SupportsIndex, *, cmp: WaitCmp
) -> DistributedTensor:
    """Block until a cell of the own slice is >= or == ``expected`` (signed); the cell is not changed.

    Raises:
        InvalidOperationError: not an INT32 window, ranks differ, or ``cmp`` is no WaitCmp.
        KernelError: no such cell.
        DeadlockError: from the run, if it can never hold.
    """
    what = "pld.system.wait"
    if type(signal) is not DistributedTensor:
        need_window(what, "signal", signal)
    ctx = current()
    if type(ctx) is not KernelContext:
        ctx = kernel_context(what)
    frame = _getframe(1)
    if type(cmp) is not WaitCmp:
        raise InvalidOperationError(f"{what}: cmp must be pld.WaitCmp.Ge or pld.WaitCmp.Eq, got {cmp!r}")
    cell = signal.layout.cell(what, offsets)
    if type(expected) is not int:
        expected = dim_value(expected)
    demands.wait(ctx, (frame.f_code, frame.f_lasti), signal, cell, expected, cmp is WaitCmp.Ge)
    return signal


def defer_wait(
    signal: DistributedTensor, offsets: Indices, expected: SupportsIndex, *, cmp: WaitCmp
) -> DistributedTensor:
    """Hold back the end of its task until a cell of the own slice is >= ``expected``; no core waits.

    Raises:
        InvalidOperationError: not in a ``pl.at(CORE_GROUP)`` block of its own, more than 64 conditions, a
            view instead of a parameter, another comparison than Ge, or no constant in [0, 2^31 - 1].
    """
    what = "pld.system.defer_wait"
    need_window(what, "signal", signal)
    ctx = kernel_context(what)
    site = caller_site()
    if ctx.deferred is None:
        raise InvalidOperationError(
            f"{what}: belongs into a pl.at(level=pl.Level.CORE_GROUP) block of its own"
        )
    if signal.layout.part:
        raise InvalidOperationError(f"{what}: signal must be a parameter, got the view {signal.name}")
    if cmp is not WaitCmp.Ge:
        raise InvalidOperationError(f"{what}: cmp must be pld.WaitCmp.Ge, got {cmp!r}")
    if type(expected) is not int or not 0 <= expected <= _INT32_MAX:
        shown = f"the run-time value {int(expected)}" if isinstance(expected, DeviceInt) else repr(expected)
        raise InvalidOperationError(f"{what}: expected must be a constant in [0, {_INT32_MAX}], got {shown}")
    ctx.deferred += 1
    if ctx.deferred > _CONDITIONS:
        raise InvalidOperationError(
            f"{what}: a task takes at most {_CONDITIONS} conditions, this is one more"
        )
    cell = signal.layout.cell(what, offsets)
    demands.wait(ctx, site, signal, cell, expected, True)
    return signal
