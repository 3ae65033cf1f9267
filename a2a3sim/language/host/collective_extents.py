"""The rules about the extents of a built-in collective's operands.

They need the number of ranks. A kernel knows it; in a host body it follows from all dispatches, so there they
are checked when the recording is complete.
"""

from __future__ import annotations

from math import prod

from a2a3sim.language.host.collective_rules import Call, shown

__all__ = ["check_extents"]

_HOST_RANKS = 16  # what upstream's kernels take


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
    if call.name in _DATA_RULES:
        _DATA_RULES[call.name](call, ranks)


def _check_signal(call: Call, ranks: int) -> None:
    shape, cores = call.signal.layout.shape, call.options.get("core_num", 1)
    right, hint = f"[{ranks}, 1]", ""
    if call.ring:
        rows = 2 * (ranks - 1) + call.host
        fits, right = (
            shape == (rows, ranks),
            f"[{rows}, {ranks}], that is [2(NR-1){'+1' if call.host else ''}, NR]",
        )
    elif not call.host or call.name == "all_to_all_v":
        fits = shape == (ranks, 1)
        if len(shape) == 2 and shape[1] == ranks > 1:
            hint = f"; [k, {ranks}] is the signal of allreduce in mode='ring'"
    elif call.name == "allreduce":
        fits = (shape == (ranks,) and cores == 1) or (
            len(shape) == 2 and shape[0] == ranks and shape[1] >= cores
        )
        right = f"[{ranks}, at least {cores}]" + (
            f" or [{ranks}]" if cores == 1 else f", a column for each of {cores} cores"
        )
    elif call.name in ("allgather", "all_to_all"):
        fits, right = shape in ((ranks,), (ranks, 1)), f"[{ranks}] or [{ranks}, 1]"
    else:
        fits, right = shape == (ranks,), f"[{ranks}]"
    if not fits:
        raise call.error("signal", f"have shape {right} for {ranks} ranks", shown(call.signal), hint)


def _check_ring(call: Call, ranks: int) -> None:
    count = prod(call.target.layout.shape)
    if call.host and call.ring and count % ranks:
        raise call.error(
            "target",
            f"have a multiple of {ranks} elements in mode='ring'",
            f"{shown(call.target)}, {count} elements",
        )


def _check_rows(call: Call, ranks: int) -> None:
    """A target of one row per rank."""
    shape = call.target.layout.shape
    if len(shape) != 2 or shape[0] != ranks:
        raise call.error("target", f"have shape [{ranks}, SIZE], a row for each rank", shown(call.target))


def _check_gather(call: Call, ranks: int) -> None:
    _check_rows(call, ranks)
    right = (1, call.target.layout.shape[1])
    if call.operands["local_data"].layout.shape != right:
        raise call.error(
            "local_data", f"have shape {list(right)}, one row of target", shown(call.operands["local_data"])
        )


def _check_exchange(call: Call, ranks: int) -> None:
    _check_rows(call, ranks)
    _same_shape(call)


def _same_shape(call: Call) -> None:
    right = call.target.layout.shape
    if call.operands["input"].layout.shape != right:
        raise call.error("input", f"have target's shape {list(right)}", shown(call.operands["input"]))


def _check_blocks(call: Call, ranks: int) -> None:
    shape = call.target.layout.shape
    if len(shape) != 2 or shape[0] % ranks:
        raise call.error(
            "target", f"have shape [{ranks} * MAX_RECV, SIZE], a block for each rank", shown(call.target)
        )
    _same_shape(call)
    for role in ("send_counts", "recv_counts"):
        if call.operands[role].layout.shape != (ranks, 1):
            raise call.error(role, f"have shape [{ranks}, 1]", shown(call.operands[role]))


_DATA_RULES = {
    "allreduce": _check_ring,
    "allgather": _check_gather,
    "all_to_all": _check_exchange,
    "all_to_all_v": _check_blocks,
    "reduce_scatter": _check_rows,
}
