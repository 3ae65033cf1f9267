"""PyPTO's built-in collectives: ``pld.tensor.allreduce``, ``barrier``, ``broadcast``, ``allgather``, …

In a kernel a collective is more of the kernel's own code: the built-in's body runs inline on the calling core. In
a host body it is a dispatch to every device of its windows' domain, in each device's program order. The bodies are
ordinary kernels of the language (`a2a3sim.kernels.builtin`); whatever they do carries the line of the user's call.

Kernels import the language, and the language names the collectives. So that imports still run one way, the
kernels are looked up by name through importlib when a collective is called, not when the language is imported.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from math import prod
from sys import _getframe

from a2a3sim.errors import A2A3Error, InvalidOperationError, ParserSyntaxError
from a2a3sim.frontend.collective_rules import OMITTED, OWN, Call, check_call, check_extents
from a2a3sim.frontend.collective_task import Collective
from a2a3sim.frontend.context import current
from a2a3sim.frontend.dynamic import Dim, dim_value
from a2a3sim.frontend.handles import DistributedTensor, Layout, row_major
from a2a3sim.frontend.program import Function, bind_arguments
from a2a3sim.frontend.recording import HostContext, WindowView
from a2a3sim.frontend.types import INT32, ReduceOp

__all__ = ["all_to_all", "all_to_all_v", "allgather", "allreduce", "barrier", "broadcast", "reduce_scatter"]


def allreduce(target, signal=OMITTED, *, op=ReduceOp.Sum, mode="mesh", core_num=1):
    """Every rank's ``target`` becomes the reduction of all ranks' targets, in place; returns it.

    ``mesh`` reads every peer's slice: own elements first, then the peers in ascending order. ``ring`` passes
    chunks around in 2(NR-1) rounds: chunk c is x[c-1] + (x[c-2] + (… + (x[c+1] + x[c]))).

    Args:
        target: FP32 or FP16 window (host ring: FP32, a multiple of NR elements).
        signal: in a kernel ``[NR, 1]``, ring ``[2(NR-1), NR]``; in a host body ``[NR]`` or ``[NR, >= core_num]``,
            ring ``[2(NR-1)+1, NR]``. A host body's mesh may leave it away, outside of loops.
        op: any of `ReduceOp`; a host body's ring adds only.
        core_num: cores per device (host body, mesh).

    Raises:
        InvalidOperationError: operands or options that the form does not take.
    """
    site, host = _place("allreduce", _getframe(1))
    if host is not None and signal is OMITTED and mode == "mesh":
        signal = _own_signal(host, site, core_num)
    options = {"op": op, "mode": mode, "core_num": core_num}
    return _perform(Call("allreduce", host is not None, site, {"target": target, "signal": signal}, options))


def barrier(signal):
    """No rank goes on before all have come here; returns the signal.

    Args:
        signal: INT32 window ``[NR, 1]`` in a kernel, ``[NR]`` in a host body, where a dispatch must take it too.
    """
    site, host = _place("barrier", _getframe(1))
    return _perform(Call("barrier", host is not None, site, {"signal": signal}, {}))


def broadcast(target, signal, *, root):
    """Every rank's ``target`` becomes root's; returns it. Nothing synchronises after the read of root's slice.

    Args:
        signal: ``[NR, 1]`` in a kernel, ``[NR]`` in a host body.
        root: a rank of the domain.
    """
    site, host = _place("broadcast", _getframe(1))
    operands = {"target": target, "signal": signal}
    return _perform(Call("broadcast", host is not None, site, operands, {"root": root}))


def allgather(local_data, target, signal):
    """Row r of every rank's ``target [NR, SIZE]`` becomes rank r's ``local_data [1, SIZE]``; returns target.

    Args:
        local_data: a tensor or window; in a host body a window.
        signal: ``[NR, 1]``, in a host body ``[NR]`` too.
    """
    site, host = _place("allgather", _getframe(1))
    operands = {"local_data": local_data, "target": target, "signal": signal}
    return _perform(Call("allgather", host is not None, site, operands, {}))


def reduce_scatter(target, signal, *, op=ReduceOp.Sum):
    """Row r of rank r's ``target [NR, SIZE]`` becomes the sum of all ranks' rows r; other rows keep the input.

    Own row first, then the peers in ascending order. Returns target.

    Args:
        signal: ``[NR, 1]`` in a kernel, ``[NR]`` in a host body.
        op: ``ReduceOp.Sum``.
    """
    site, host = _place("reduce_scatter", _getframe(1))
    operands = {"target": target, "signal": signal}
    return _perform(Call("reduce_scatter", host is not None, site, operands, {"op": op}))


def all_to_all(input, target, signal):  # noqa: A002 - PyPTO's name
    """Row s of rank d's ``target [NR, SIZE]`` becomes row d of rank s's ``input``; returns target.

    Args:
        input: a tensor or window; in a host body a window.
        signal: ``[NR, 1]``, in a host body ``[NR]`` too.
    """
    site, host = _place("all_to_all", _getframe(1))
    operands = {"input": input, "target": target, "signal": signal}
    return _perform(Call("all_to_all", host is not None, site, operands, {}))


def all_to_all_v(input, target, signal, send_counts, recv_counts):  # noqa: A002 - PyPTO's name
    """As `all_to_all` with blocks of MAX_RECV = rows of ``target`` / NR rows, of which only some count.

    Whole blocks travel; ``recv_counts[s, 0]`` becomes min(rank s's ``send_counts[d, 0]``, MAX_RECV), and rows
    beyond it hold what the sender's block held there. Returns target.

    Args:
        input, send_counts: tensors or windows; in a host body windows.
        signal, send_counts, recv_counts: INT32 ``[NR, 1]``.
    """
    site, host = _place("all_to_all_v", _getframe(1))
    operands = {
        "input": input,
        "target": target,
        "signal": signal,
        "send_counts": send_counts,
        "recv_counts": recv_counts,
    }
    call = Call("all_to_all_v", host is not None, site, operands, {})
    if host is not None and not host.first_time(site):
        raise InvalidOperationError("pld.tensor.all_to_all_v in the host body must not stand in a loop")
    return _perform(call)


def _place(name: str, frame) -> tuple[tuple, HostContext | None]:
    """Where a collective is called: its site, and the host body it stands in (None: a kernel)."""
    context = current()
    level = None if context is None else context.level
    if level not in ("kernel", "host"):
        where = "outside of a program" if level is None else f"in a body of the kind {level}"
        raise ParserSyntaxError(
            f"pld.tensor.{name} stands {where}; it belongs into a kernel (InCore function) or the host body"
        )
    return (frame.f_code, frame.f_lasti), context if level == "host" else None


def _own_signal(host: HostContext, site, core_num) -> WindowView:
    """The signal of an all-reduce that was called without one; its rank count is corrected when it is known."""
    if not host.first_time(site):
        raise InvalidOperationError(
            "pld.tensor.allreduce in the host body: signal must be given where the call stands in a loop, got nothing"
        )
    # A core_num that is no positive number is refused later, with all other rules.
    lanes = max(1, dim_value(core_num)) if isinstance(core_num, (int, Dim)) else 1
    ranks = host.recording.world
    buffer = host.allocate(ranks * lanes * INT32.itemsize, "allreduce_signal")
    buffer.viewed = True
    return _signal_view(buffer, ranks, lanes)


def _signal_view(buffer, ranks: int, lanes: int) -> WindowView:
    layout = Layout(buffer.name, (ranks, lanes), INT32, 0, row_major((ranks, lanes), INT32.itemsize))
    return WindowView(buffer, layout, OWN)


def _perform(call: Call):
    context = current()
    check_call(call)
    if call.host:
        windows = tuple(call.operands.values())
        context.recording.tasks.append(Collective(call.name, windows, call.signal, partial(_plan, call), call.site))
        if call.name == "barrier":
            return WindowView(call.signal.buffer, call.signal.layout, "pld.tensor.barrier")
        return call.target
    ranks = call.signal.domain.nranks
    check_extents(call, ranks)
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
    return import_module("a2a3sim.kernels.builtin").find(factory)(**job)


def _is_window(value) -> bool:
    return isinstance(value, (DistributedTensor, WindowView))


def _run_at(context, site, kernel: Function, args):
    """Run a built-in's body on a core; its operations and errors carry the user's line, the outermost if nested."""
    outermost = context.site is None
    if outermost:
        context.site = site
    try:
        return kernel.run(None, bind_arguments(kernel, args))
    except A2A3Error as error:
        if getattr(error, "site", None) is None:
            error.site, error.lane = context.site, context.lane
        raise
    finally:
        if outermost:
            context.site = None


class _Task(Function):
    """A collective of a host body as a dispatch: its kernel on the cores of one device."""

    def __init__(self, call: Call, ranks: int) -> None:
        super().__init__(_kernel(call, ranks, "statement").fn, "orchestration", method=False, jit=True)
        self._call = call
        self._ranks = ranks

    def run(self, owner, bound_args):
        """Run the kernel as the dispatch says; the run's fences are known only now."""
        context = current()
        kernel = _kernel(self._call, self._ranks, context.launch.settings.fences)
        return context.run_kernel(_Body(kernel, self._call.site), owner, bound_args[0])


class _Body(Function):
    """The kernel of such a dispatch, on the line of the host's call."""

    def __init__(self, kernel: Function, site: tuple) -> None:
        super().__init__(kernel.fn, "kernel", method=False, jit=True)
        self._kernel = kernel
        self._site = site

    def run(self, owner, bound_args):
        """Run the body on the current core."""
        return _run_at(current(), self._site, self._kernel, bound_args[0])


def _plan(call: Call, ranks: int) -> tuple:
    """(function, arguments, blocks) of a host body's collective in a domain of ``ranks`` ranks."""
    call.located = True
    if call.signal.origin == OWN:
        call.operands["signal"] = _signal_view(call.signal.buffer, ranks, call.options["core_num"])
    check_extents(call, ranks)
    return _Task(call, ranks), tuple(call.operands.values()), call.options.get("core_num", 1)
