"""PyPTO's built-in collectives: ``pld.tensor.allreduce``, ``barrier``, ``broadcast``, ``allgather``, …

In a kernel a collective is more of the kernel's own code: the built-in's body runs inline on the calling
core. In a host body it is a dispatch to every device of its windows' domain, in each device's program
order. The bodies are ordinary kernels of the language (`a2a3sim.kernels.builtin`); whatever they do carries
the line of the user's call.

Kernels import the language, and the language names the collectives. So that imports still run one way, the
kernels are looked up by name through importlib when a collective is called, not when the language is
imported.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from math import prod
from sys import _getframe
from types import FrameType
from typing import Any, SupportsIndex

from a2a3sim.errors import A2A3Error, ParserSyntaxError
from a2a3sim.language.context import KernelContext, current, kernel_context
from a2a3sim.language.dynamic import Bindings, Dim, dim_value
from a2a3sim.language.handles import DistributedTensor
from a2a3sim.language.host.binding import bind_arguments
from a2a3sim.language.host.collective_extents import check_extents
from a2a3sim.language.host.collective_rules import OMITTED, OWN, Call, check_call
from a2a3sim.language.host.collective_task import Collective
from a2a3sim.language.host.functions import Function
from a2a3sim.language.host.recording import host_context
from a2a3sim.language.host_handles import WindowBuffer, WindowView
from a2a3sim.language.layout import Layout, row_major
from a2a3sim.language.source import syntax_tree
from a2a3sim.language.types import INT32, ReduceOp
from a2a3sim.models.operation import Site
from a2a3sim.trace.record import resolve_site

__all__ = ["all_to_all", "all_to_all_v", "allgather", "allreduce", "barrier", "broadcast", "reduce_scatter"]


def allreduce(
    target: Any, signal: Any = OMITTED, *, op: ReduceOp = ReduceOp.Sum, mode: str = "mesh", core_num: int = 1
) -> Any:
    """Every rank's ``target`` becomes the reduction of all ranks' targets, in place; returns it.

    ``mesh`` reads every peer's slice: own elements first, then the peers in ascending order. ``ring`` passes
    chunks around in 2(NR-1) rounds: chunk c is x[c-1] + (x[c-2] + (… + (x[c+1] + x[c]))).

    Args:
        target: FP32 or FP16 window (host ring: FP32, a multiple of NR elements).
        signal: in a kernel ``[NR, 1]``, ring ``[2(NR-1), NR]``; in a host body ``[NR]`` or
            ``[NR, >= core_num]``, ring ``[2(NR-1)+1, NR]``. A host body's mesh may leave it away, outside of
            loops.
        op: any of `ReduceOp`; a host body's ring adds only.
        core_num: cores per device (host body, mesh).

    Raises:
        InvalidOperationError: operands or options that the form does not take.
    """
    call = _call(
        "allreduce", _getframe(1), {"target": target, "signal": signal}, op=op, mode=mode, core_num=core_num
    )
    if call.host and signal is OMITTED and mode == "mesh":
        call.operands["signal"] = _own_signal(call)
    return _perform(call)


def barrier(signal: Any) -> Any:
    """No rank goes on before all have come here; returns the signal.

    Args:
        signal: ``[NR, 1]`` in a kernel, ``[NR]`` in a host body, where a dispatch must take it too.
    """
    return _perform(_call("barrier", _getframe(1), {"signal": signal}))


def broadcast(target: Any, signal: Any, *, root: SupportsIndex) -> Any:
    """Every rank's ``target`` becomes root's; returns it. No barrier follows the read of root's slice.

    Args:
        signal: ``[NR, 1]`` in a kernel, ``[NR]`` in a host body.
        root: a rank of the domain.
    """
    return _perform(_call("broadcast", _getframe(1), {"target": target, "signal": signal}, root=root))


def allgather(local_data: Any, target: Any, signal: Any) -> Any:
    """Row r of every rank's ``target [NR, SIZE]`` becomes rank r's ``local_data [1, SIZE]``; returns target.

    Args:
        local_data: a tensor or window; in a host body a window.
        signal: ``[NR, 1]``, in a host body ``[NR]`` too.
    """
    operands = {"local_data": local_data, "target": target, "signal": signal}
    return _perform(_call("allgather", _getframe(1), operands))


def reduce_scatter(target: Any, signal: Any, *, op: ReduceOp = ReduceOp.Sum) -> Any:
    """Row r of rank r's ``target [NR, SIZE]`` becomes the sum of all ranks' rows r; returns target.

    Own row first, then the peers in ascending order. Other rows keep the input.

    Args:
        signal: ``[NR, 1]`` in a kernel, ``[NR]`` in a host body.
        op: ``ReduceOp.Sum``.
    """
    return _perform(_call("reduce_scatter", _getframe(1), {"target": target, "signal": signal}, op=op))


def all_to_all(input: Any, target: Any, signal: Any) -> Any:
    """Row s of rank d's ``target [NR, SIZE]`` becomes row d of rank s's ``input``; returns target.

    Args:
        input: a tensor or window; in a host body a window.
        signal: ``[NR, 1]``, in a host body ``[NR]`` too.
    """
    return _perform(_call("all_to_all", _getframe(1), {"input": input, "target": target, "signal": signal}))


def all_to_all_v(input: Any, target: Any, signal: Any, send_counts: Any, recv_counts: Any) -> Any:
    """As `all_to_all` with blocks of MAX_RECV = rows of ``target`` / NR rows, of which only some count.

    Whole blocks travel; ``recv_counts[s, 0]`` becomes min(rank s's ``send_counts[d, 0]``, MAX_RECV), and rows
    beyond it hold what the sender's block held there. Returns target.

    Args:
        input, send_counts: tensors or windows; in a host body windows.
        signal, send_counts, recv_counts: INT32 ``[NR, 1]``.
    """
    operands = {"input": input, "target": target, "signal": signal}
    operands |= {"send_counts": send_counts, "recv_counts": recv_counts}
    call = _call("all_to_all_v", _getframe(1), operands)
    if call.host and _in_loop(call):
        raise call.error("the call", "stand outside of loops", "one in a loop")
    return _perform(call)


def _call(name: str, frame: FrameType, operands: dict[str, Any], **options: Any) -> Call:
    """A call at the user's frame, in a kernel or a host body.

    Raises:
        ParserSyntaxError: anywhere else.
    """
    context = current()
    level = None if context is None else context.level
    if level not in ("kernel", "host"):
        where = "outside of a program" if level is None else f"in a body of the kind {level}"
        raise ParserSyntaxError(
            f"pld.tensor.{name} stands {where}; it belongs into a kernel (InCore function) or the host body"
        )
    return Call(name, level == "host", (frame.f_code, frame.f_lasti), operands, options)


def _in_loop(call: Call) -> bool:
    """Whether a host body's call stands in a loop, by its source or because it is met again."""
    again = not host_context(call.name).first_time(call.site)
    tree, line = syntax_tree(call.site[0]), resolve_site(call.site).line
    loops = [] if tree is None else [n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.While))]
    return again or any(n.body[0].lineno <= line <= (n.body[-1].end_lineno or 0) for n in loops)


def _own_signal(call: Call) -> WindowView:
    """The signal of an all-reduce that was called without one, for as many ranks as there may be."""
    if _in_loop(call):
        raise call.error("signal", "be given where the call stands in a loop", "nothing")
    # A core_num that is no positive number is refused later, with all other rules.
    core_num = call.options["core_num"]
    lanes = max(1, dim_value(core_num)) if isinstance(core_num, (int, Dim)) else 1
    host = host_context(call.name)
    ranks = host.recording.world
    buffer = host.allocate(ranks * lanes * INT32.itemsize, "allreduce_signal")
    buffer.viewed = True
    return _signal_view(buffer, ranks, lanes)


def _signal_view(buffer: WindowBuffer, ranks: int, lanes: int) -> WindowView:
    layout = Layout(buffer.name, (ranks, lanes), INT32, 0, row_major((ranks, lanes), INT32.itemsize))
    return WindowView(buffer, layout, OWN)


def _perform(call: Call) -> Any:
    check_call(call)
    if call.host:
        windows = tuple(call.operands.values())
        host_context(call.name).recording.tasks.append(
            Collective(call.name, windows, call.signal, partial(_plan, call), call.site)
        )
        if call.name == "barrier":
            return WindowView(call.signal.buffer, call.signal.layout, "pld.tensor.barrier")
        return call.target
    ranks = call.signal.domain.nranks
    check_extents(call, ranks)
    context = kernel_context(call.name)
    _run_at(context, call.site, _kernel(call, ranks, context.core.fences), tuple(call.operands.values()))
    return call.signal if call.name == "barrier" else call.target


def _kernel(call: Call, ranks: int, fences: str) -> Function:
    """The built-in's kernel for a call."""
    factory, job = call.name, {"ranks": ranks, "fenced": fences == "explicit"}
    if "target" in call.operands:
        layout = call.target.layout
        job["dtype"] = layout.dtype
        shape = layout.shape
        if call.name in ("allreduce", "broadcast"):
            job["count"] = prod(shape)
        else:
            job["size"] = shape[1]
    if call.name == "broadcast":
        job["root"] = call.options["root"]
    elif call.ring:
        factory = "allreduce_ring_host" if call.host else "allreduce_ring"
        job["op"] = call.options["op"]
    elif call.name == "allreduce":
        signal = call.signal.layout.shape
        job |= {"op": call.options["op"], "lanes": call.options["core_num"], "host": call.host}
        job["columns"] = signal[1] if len(signal) == 2 else 1
    elif call.name == "allgather":
        job["window"] = _is_window(call.operands["local_data"])
    elif call.name in ("all_to_all", "all_to_all_v"):
        job["window"] = _is_window(call.operands["input"])
    if call.name == "all_to_all_v":
        job |= {"rows": shape[0] // ranks, "counts_window": _is_window(call.operands["send_counts"])}
    kernel: Function = import_module("a2a3sim.kernels.builtin").find(factory)(**job)
    return kernel


def _is_window(value: object) -> bool:
    return isinstance(value, (DistributedTensor, WindowView))


def _run_at(context: KernelContext, site: Site, kernel: Function, args: Sequence[Any]) -> Any:
    """Run a built-in's body on a core; what it does carries the line of the call (nested: the outermost)."""
    outermost = context.site is None
    if outermost:
        context.site = site
        context.task.launch.trace.builtins.add(site)
    try:
        return kernel.run(None, bind_arguments(kernel, args))
    except A2A3Error as error:
        if error.site is None:
            error.site, error.lane = context.site, context.lane
        raise
    finally:
        if outermost:
            context.site = None


class _HostKernel(Function):
    """A collective of a host body as a dispatch: the built-in's kernel, on the line of the host's call."""

    def __init__(self, call: Call, ranks: int) -> None:
        super().__init__(_kernel(call, ranks, "statement").fn, "kernel", method=False, jit=True)
        self._call = call
        self._ranks = ranks

    def run(self, owner: Any, bound_args: tuple[Sequence[Any], Bindings]) -> Any:
        """Run the body on the current core; the run's fence mode is known only now."""
        context = kernel_context(self.name)
        kernel = _kernel(self._call, self._ranks, context.core.fences)
        return _run_at(context, self._call.site, kernel, bound_args[0])


def _plan(call: Call, ranks: int) -> tuple[Function, tuple[Any, ...], int]:
    """(function, arguments, blocks) of a host body's collective in a domain of ``ranks`` ranks."""
    call.located = True
    if call.signal.origin == OWN:
        call.operands["signal"] = _signal_view(call.signal.buffer, ranks, call.options["core_num"])
    check_extents(call, ranks)
    return _HostKernel(call, ranks), tuple(call.operands.values()), call.options.get("core_num", 1)
