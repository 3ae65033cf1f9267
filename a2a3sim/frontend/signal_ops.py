"""Signals between ranks: notify, wait, and waits that hold back a task instead of a core."""

from __future__ import annotations

from sys import _getframe

from a2a3sim.errors import InvalidOperationError
from a2a3sim.frontend import demands
from a2a3sim.frontend.context import kernel_context
from a2a3sim.frontend.device_int import DeviceInt
from a2a3sim.frontend.dynamic import dim_value
from a2a3sim.frontend.handles import DistributedTensor, Layout
from a2a3sim.frontend.remote_ops import need_window
from a2a3sim.frontend.types import INT32, NotifyOp, WaitCmp

__all__ = ["defer_wait", "notify", "wait"]

_INT32_MAX = 2**31 - 1
_CONDITIONS = 64  # of one task


def _cell(what: str, layout: Layout, offsets):
    if layout.dtype is not INT32:
        raise InvalidOperationError(f"{what}: signal cells are INT32, {layout.name} is {layout.dtype!r}")
    return layout.region(what, offsets, (1,) * len(layout.shape))


def notify(target, peer, offsets, value, *, op) -> DistributedTensor:
    """Add to, or set, a signal cell of a rank (the own one included) after all earlier writes are visible.

    Raises:
        InvalidOperationError: not an INT32 window, ranks differ, or ``op`` is no NotifyOp.
        KernelError: no such peer or cell.
    """
    what = "pld.system.notify"
    need_window(what, "target", target)
    ctx = kernel_context(what)
    frame = _getframe(1)
    there = target.peer(what, peer)
    if not isinstance(op, NotifyOp):
        raise InvalidOperationError(f"{what}: op must be pld.NotifyOp.AtomicAdd or pld.NotifyOp.Set, got {op!r}")
    region = _cell(what, there.layout, offsets)
    devices = target.domain.devices
    demands.notify(
        ctx,
        (frame.f_code, frame.f_lasti),
        there,
        region,
        devices[dim_value(peer)],
        dim_value(value),
        op == NotifyOp.AtomicAdd,
    )
    return target


def wait(signal, offsets, expected, *, cmp) -> DistributedTensor:
    """Block until a cell of the own slice is >= or == ``expected`` (signed); the cell is not changed.

    Raises:
        InvalidOperationError: not an INT32 window, ranks differ, or ``cmp`` is no WaitCmp.
        KernelError: no such cell.
        DeadlockError: from the run, if it can never hold.
    """
    what = "pld.system.wait"
    need_window(what, "signal", signal)
    ctx = kernel_context(what)
    frame = _getframe(1)
    if not isinstance(cmp, WaitCmp):
        raise InvalidOperationError(f"{what}: cmp must be pld.WaitCmp.Ge or pld.WaitCmp.Eq, got {cmp!r}")
    region = _cell(what, signal.layout, offsets)
    demands.wait(ctx, (frame.f_code, frame.f_lasti), signal, region, dim_value(expected), cmp == WaitCmp.Ge)
    return signal


def defer_wait(signal, offsets, expected, *, cmp) -> DistributedTensor:
    """Hold back the end of the task it stands in until a cell of the own slice is >= ``expected``; no core waits.

    Raises:
        InvalidOperationError: not in a ``pl.at(CORE_GROUP)`` block of its own, more than 64 conditions, a view
            instead of a parameter, another comparison than Ge, or no constant in [0, 2^31 - 1].
    """
    what = "pld.system.defer_wait"
    need_window(what, "signal", signal)
    ctx = kernel_context(what)
    frame = _getframe(1)
    if ctx.deferred is None:
        raise InvalidOperationError(f"{what}: belongs into a pl.at(level=pl.Level.CORE_GROUP) block of its own")
    if signal.layout.part:
        raise InvalidOperationError(f"{what}: signal must be a parameter, got the view {signal.name}")
    if cmp is not WaitCmp.Ge:
        raise InvalidOperationError(f"{what}: cmp must be pld.WaitCmp.Ge, got {cmp!r}")
    if type(expected) is not int or not 0 <= expected <= _INT32_MAX:
        shown = f"the run-time value {int(expected)}" if isinstance(expected, DeviceInt) else repr(expected)
        raise InvalidOperationError(f"{what}: expected must be a constant in [0, {_INT32_MAX}], got {shown}")
    ctx.deferred += 1
    if ctx.deferred > _CONDITIONS:
        raise InvalidOperationError(f"{what}: a task takes at most {_CONDITIONS} conditions, this is one more")
    region = _cell(what, signal.layout, offsets)
    demands.wait(ctx, (frame.f_code, frame.f_lasti), signal, region, expected, True)
    return signal
