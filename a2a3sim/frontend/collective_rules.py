"""What a call of a built-in collective must fulfil, in a kernel and in the host body.

Rules about kinds, dtypes and options are checked when the call is met. Rules about extents need the number of
ranks: a kernel knows it, in a host body it follows from all dispatches, so they are checked when the recording is
complete.
"""

from __future__ import annotations

from math import prod

from a2a3sim.errors import InvalidOperationError
from a2a3sim.frontend.dynamic import Dim, dim_value
from a2a3sim.frontend.handles import DistributedTensor, Tensor, row_major
from a2a3sim.frontend.recording import WindowView
from a2a3sim.frontend.types import FP16, FP32, INT32, ReduceOp
from a2a3sim.trace import resolve_site

__all__ = ["OMITTED", "OWN", "Call", "check_call", "check_extents"]

OWN = "the collective"  # origin of the signal that a host body's all-reduce allocates for itself
OMITTED = type("Omitted", (), {"__repr__": lambda self: "nothing"})()  # a signal that was left away

_CORES = 48  # vector cores of a device, as upstream's kernels assume
_HOST_RANKS = 16
_SOURCES = ("local_data", "input", "send_counts")  # may be plain tensors in a kernel
_COUNTERS = ("signal", "send_counts", "recv_counts")


class Call:
    """One call of a collective.

    Attributes:
        host: it stands in a host body, not in a kernel.
        operands: by role, in the order of the kernel's parameters.
        options: keywords (``op``, ``mode``, ``core_num``, ``root``).
    """

    def __init__(self, name: str, host: bool, site: tuple, operands: dict, options: dict) -> None:
        self.name = name
        self.host = host
        self.site = site
        self.operands = operands
        self.options = options
        self.located = False  # True: errors must say where the call stands, since nobody is there any more

    @property
    def ring(self) -> bool:
        """It is an all-reduce in ring mode."""
        return self.options.get("mode") == "ring"

    @property
    def signal(self):
        """The signal operand."""
        return self.operands["signal"]

    @property
    def target(self):
        """The target operand."""
        return self.operands["target"]

    def error(self, role: str, right: str, got: object, more: str = "") -> InvalidOperationError:
        """``X must Y, got Z``, with the operation in front."""
        where = ""
        if self.located:
            place = resolve_site(self.site)
            where = f"{place.file}:{place.line}: "
        form = "in the host body" if self.host else "in a kernel"
        return InvalidOperationError(f"{where}pld.tensor.{self.name} {form}: {role} must {right}, got {got}{more}")


def _shown(value) -> str:
    if isinstance(value, (Tensor, WindowView)):
        return f"{value.layout.name} {list(value.layout.shape)} {value.layout.dtype!r}"
    return repr(value)


def check_call(call: Call) -> None:
    """The rules that need no number of ranks.

    Raises:
        InvalidOperationError: an operand or option that the form does not take.
    """
    _check_options(call)
    for role, value in call.operands.items():
        _check_kind(call, role, value)
        layout = value.layout
        if layout.strides != row_major(layout.shape, layout.dtype.itemsize):
            raise call.error(role, "be contiguous", f"the part {_shown(value)}")
        if role in _COUNTERS and layout.dtype is not INT32:
            raise call.error(role, "be INT32", _shown(value))
    _check_distinct(call)
    _check_dtypes(call)
    if not call.host:
        _check_domains(call)


def _check_options(call: Call) -> None:
    options, host = call.options, call.host
    if "op" in options:
        op = options["op"]
        if not isinstance(op, ReduceOp):
            raise call.error("op", "be a pld.ReduceOp (Sum, Max, Min, Prod)", repr(op))
        if call.name == "reduce_scatter" and op is not ReduceOp.Sum:
            raise call.error("op", "be pld.ReduceOp.Sum", f"pld.ReduceOp.{op.name}")
    if "mode" in options and options["mode"] not in ("mesh", "ring"):
        raise call.error("mode", "be 'mesh' or 'ring'", repr(options["mode"]))
    if host and call.ring and options["op"] is not ReduceOp.Sum:
        raise call.error(
            "op", "be pld.ReduceOp.Sum in mode='ring'", f"pld.ReduceOp.{options['op'].name}", "; mode='mesh' takes all"
        )
    if "core_num" in options:
        cores = options["core_num"] = _whole(call, "core_num")
        if cores <= 0:
            raise call.error("core_num", "be positive", cores)
        if not host and cores != 1:
            raise call.error("core_num", "be 1", cores, ": a kernel reduces on the core that calls")
        if call.ring and cores != 1:
            raise call.error("core_num", "be 1 in mode='ring'", cores)
        if cores > _CORES:
            raise call.error("core_num", f"be at most {_CORES}, the vector cores of a device", cores)
    if "root" in options:
        root = options["root"] = _whole(call, "root")
        if root < 0:
            raise call.error("root", "be a rank of the domain, from 0", root)


def _whole(call: Call, name: str) -> int:
    value = call.options[name]
    if isinstance(value, bool) or not isinstance(value, (int, Dim)):
        raise call.error(name, "be an int", repr(value))
    return dim_value(value)


def _check_kind(call: Call, role: str, value) -> None:
    if value is OMITTED:
        hint = "; only a host body's allreduce in mode='mesh' has a signal of its own" if call.name == "allreduce" else ""
        raise call.error(role, "be given, an INT32 window", "nothing", hint)
    if call.host:
        if not isinstance(value, WindowView):
            raise call.error(role, "be a window (pld.window)", _shown(value))
        if value.origin not in ("pld.window", OWN):
            raise call.error(role, "come from pld.window itself", f"{value.layout.name}, made by {value.origin}")
    elif role in _SOURCES:
        if not isinstance(value, Tensor):
            raise call.error(role, "be a tensor or a window in global memory", _shown(value))
    elif not isinstance(value, DistributedTensor):
        raise call.error(role, "be a window (DistributedTensor)", _shown(value))


def _check_distinct(call: Call) -> None:
    seen: list[tuple[str, object]] = []
    for role, value in call.operands.items():
        for other, earlier in seen:
            if call.host:
                if earlier.buffer is value.buffer:
                    raise call.error(role, f"be another allocation than {other}", f"{value.buffer.name} for both")
            elif _overlap(earlier, value):
                raise call.error(role, f"lie apart from {other}", f"{value.layout.name} for both")
        seen.append((role, value))


def _overlap(a: Tensor, b: Tensor) -> bool:
    if a.memory is not b.memory:
        return False
    starts = [t.layout.base for t in (a, b)]
    ends = [t.layout.base + prod(t.layout.shape) * t.layout.dtype.itemsize for t in (a, b)]
    return max(starts) < min(ends)


def _check_dtypes(call: Call) -> None:
    target = call.operands.get("target")
    if target is None:
        return
    if call.name == "allreduce":
        allowed = (FP32,) if call.host and call.ring else (FP32, FP16)
    else:
        allowed = (FP32,) if call.host else None
    if allowed is not None and target.layout.dtype not in allowed:
        mode = " in mode='ring'" if call.ring and call.host else ""
        raise call.error("target", f"be {' or '.join(map(repr, allowed))}{mode}", _shown(target))
    for role in ("local_data", "input"):
        value = call.operands.get(role)
        if value is not None and value.layout.dtype is not target.layout.dtype:
            raise call.error(role, f"have target's dtype {target.layout.dtype!r}", _shown(value))


def _check_domains(call: Call) -> None:
    devices = call.signal.domain.devices
    for role, value in call.operands.items():
        if isinstance(value, DistributedTensor) and value.domain.devices != devices:
            raise call.error(
                role,
                f"belong to the signal's communication domain (ranks {list(devices)})",
                f"{value.layout.name} on ranks {list(value.domain.devices)}",
            )


def check_extents(call: Call, ranks: int) -> None:
    """The rules about shapes in a domain of ``ranks`` ranks.

    Raises:
        InvalidOperationError: an operand of another shape, a root that does not exist, too many ranks.
    """
    if call.host and ranks > _HOST_RANKS:
        raise call.error("the domain", f"have at most {_HOST_RANKS} ranks", ranks)
    if call.ring and ranks < 2:
        raise call.error("the domain", "have at least 2 ranks in mode='ring'", ranks)
    root = call.options.get("root")
    if root is not None and root >= ranks:
        raise call.error("root", f"be a rank of the domain, 0 to {ranks - 1}", root)
    _check_signal(call, ranks)
    _DATA_RULES.get(call.name, lambda call, ranks: None)(call, ranks)


def _check_signal(call: Call, ranks: int) -> None:
    shape, cores = call.signal.layout.shape, call.options.get("core_num", 1)
    right, hint = f"[{ranks}, 1]", ""
    if call.ring:
        rows = 2 * (ranks - 1) + call.host
        fits, right = shape == (rows, ranks), f"[{rows}, {ranks}], that is [2(NR-1){'+1' if call.host else ''}, NR],"
    elif not call.host or call.name == "all_to_all_v":
        fits = shape == (ranks, 1)
        if len(shape) == 2 and shape[1] == ranks > 1:
            hint = f"; [k, {ranks}] is the signal of allreduce in mode='ring'"
    elif call.name == "allreduce":
        fits = (shape == (ranks,) and cores == 1) or (len(shape) == 2 and shape[0] == ranks and shape[1] >= cores)
        right = f"[{ranks}, at least {cores}]" + (f" or [{ranks}]" if cores == 1 else f", a column for each of {cores} cores,")
    elif call.name in ("allgather", "all_to_all"):
        fits, right = shape in ((ranks,), (ranks, 1)), f"[{ranks}] or [{ranks}, 1]"
    else:
        fits, right = shape == (ranks,), f"[{ranks}]"
    if not fits:
        raise call.error("signal", f"have shape {right} for {ranks} ranks", _shown(call.signal), hint)


def _check_ring(call: Call, ranks: int) -> None:
    count = prod(call.target.layout.shape)
    if call.host and call.ring and count % ranks:
        raise call.error(
            "target", f"have a multiple of {ranks} elements in mode='ring'", f"{_shown(call.target)}, {count} elements"
        )


def _check_rows(call: Call, ranks: int) -> None:
    """A target of one row per rank."""
    shape = call.target.layout.shape
    if len(shape) != 2 or shape[0] != ranks:
        raise call.error("target", f"have shape [{ranks}, SIZE], a row for each rank,", _shown(call.target))


def _check_gather(call: Call, ranks: int) -> None:
    _check_rows(call, ranks)
    right = (1, call.target.layout.shape[1])
    if call.operands["local_data"].layout.shape != right:
        raise call.error("local_data", f"have shape {list(right)}, one row of target,", _shown(call.operands["local_data"]))


def _check_exchange(call: Call, ranks: int) -> None:
    _check_rows(call, ranks)
    _same_shape(call)


def _same_shape(call: Call) -> None:
    right = call.target.layout.shape
    if call.operands["input"].layout.shape != right:
        raise call.error("input", f"have target's shape {list(right)}", _shown(call.operands["input"]))


def _check_blocks(call: Call, ranks: int) -> None:
    shape = call.target.layout.shape
    if len(shape) != 2 or shape[0] % ranks:
        raise call.error("target", f"have shape [{ranks} * MAX_RECV, SIZE], a block for each rank,", _shown(call.target))
    _same_shape(call)
    for role in ("send_counts", "recv_counts"):
        if call.operands[role].layout.shape != (ranks, 1):
            raise call.error(role, f"have shape [{ranks}, 1]", _shown(call.operands[role]))


_DATA_RULES = {
    "allreduce": _check_ring,
    "allgather": _check_gather,
    "all_to_all": _check_exchange,
    "all_to_all_v": _check_blocks,
    "reduce_scatter": _check_rows,
}
