"""A call of a built-in collective, and the rules about it that are known where it stands.

These are about kinds, dtypes and options; rules about extents are in ``collective_extents``.
"""

from __future__ import annotations

from math import prod
from typing import Any

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.dynamic import Dim, dim_value
from a2a3sim.language.handles import DistributedTensor, Tensor
from a2a3sim.language.host_handles import WindowView
from a2a3sim.language.layout import row_major
from a2a3sim.language.types import FP16, FP32, INT32, DataType, ReduceOp
from a2a3sim.models.operation import Site
from a2a3sim.trace.record import resolve_site

__all__ = ["OMITTED", "OWN", "Call", "check_call", "shown"]

OWN = "the collective"  # origin of the signal that a host body's all-reduce allocates for itself
OMITTED = type("Omitted", (), {"__repr__": lambda self: "nothing"})()  # a signal that was left away

_CORES = 48  # vector cores of a device, as upstream's kernels assume
_SOURCES = ("local_data", "input", "send_counts")  # may be plain tensors in a kernel
_COUNTERS = ("signal", "send_counts", "recv_counts")


class Call:
    """One call of a collective.

    Attributes:
        host: it stands in a host body, not in a kernel.
        operands: by role, in the order of the kernel's parameters.
        options: keywords (``op``, ``mode``, ``core_num``, ``root``).
    """

    def __init__(
        self, name: str, host: bool, site: Site, operands: dict[str, Any], options: dict[str, Any]
    ) -> None:
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
    def signal(self) -> Any:
        """The signal operand."""
        return self.operands["signal"]

    @property
    def target(self) -> Any:
        """The target operand."""
        return self.operands["target"]

    def error(self, role: str, right: str, got: object, more: str = "") -> InvalidOperationError:
        """``X must Y, got Z``, with the operation in front."""
        where = ""
        if self.located:
            place = resolve_site(self.site)
            where = f"{place.file}:{place.line}: "
        form = "in the host body" if self.host else "in a kernel"
        return InvalidOperationError(
            f"{where}pld.tensor.{self.name} {form}: {role} must {right}, got {got}{more}"
        )


def shown(value: object) -> str:
    """An operand as errors name it: name, shape and dtype."""
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
            raise call.error(role, "be contiguous", f"the part {shown(value)}")
        if role in _COUNTERS and layout.dtype is not INT32:
            raise call.error(role, "be INT32", shown(value))
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
            "op",
            "be pld.ReduceOp.Sum in mode='ring'",
            f"pld.ReduceOp.{options['op'].name}",
            "; mode='mesh' takes all",
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


def _check_kind(call: Call, role: str, value: Any) -> None:
    if value is OMITTED:
        hint = (
            "; only a host body's allreduce in mode='mesh' has one of its own"
            if call.name == "allreduce"
            else ""
        )
        raise call.error(role, "be given, an INT32 window", "nothing", hint)
    if call.host:
        if not isinstance(value, WindowView):
            raise call.error(role, "be a window (pld.window)", shown(value))
        if value.origin not in ("pld.window", OWN):
            raise call.error(
                role, "come from pld.window itself", f"{value.layout.name}, made by {value.origin}"
            )
    elif role in _SOURCES:
        if not isinstance(value, Tensor):
            raise call.error(role, "be a tensor or a window in global memory", shown(value))
    elif not isinstance(value, DistributedTensor):
        raise call.error(role, "be a window (DistributedTensor)", shown(value))


def _check_distinct(call: Call) -> None:
    seen: list[tuple[str, Any]] = []
    for role, value in call.operands.items():
        for other, earlier in seen:
            if call.host:
                if earlier.buffer is value.buffer:
                    raise call.error(
                        role, f"be another allocation than {other}", f"{value.buffer.name} for both"
                    )
            elif _overlap(earlier, value):
                raise call.error(role, f"lie apart from {other}", f"{value.layout.name} for both")
        seen.append((role, value))


def _overlap(a: Tensor, b: Tensor) -> bool:
    if a.memory is not b.memory:
        return False
    starts = [t.layout.base for t in (a, b)]
    ends = [t.layout.base + prod(t.layout.shape) * t.layout.dtype.itemsize for t in (a, b)]
    return bool(max(starts) < min(ends))


def _check_dtypes(call: Call) -> None:
    target = call.operands.get("target")
    if target is None:
        return
    allowed: tuple[DataType, ...] | None
    if call.name == "allreduce":
        allowed = (FP32,) if call.host and call.ring else (FP32, FP16)
    else:
        allowed = (FP32,) if call.host else None
    if allowed is not None and target.layout.dtype not in allowed:
        mode = " in mode='ring'" if call.ring and call.host else ""
        raise call.error("target", f"be {' or '.join(map(repr, allowed))}{mode}", shown(target))
    for role in ("local_data", "input"):
        value = call.operands.get(role)
        if value is not None and value.layout.dtype is not target.layout.dtype:
            raise call.error(role, f"have target's dtype {target.layout.dtype!r}", shown(value))


def _check_domains(call: Call) -> None:
    devices = call.signal.domain.devices
    for role, value in call.operands.items():
        if isinstance(value, DistributedTensor) and value.domain.devices != devices:
            raise call.error(
                role,
                f"belong to the signal's communication domain (ranks {list(devices)})",
                f"{value.layout.name} on ranks {list(value.domain.devices)}",
            )
