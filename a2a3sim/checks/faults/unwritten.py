"""Outputs, or parts of them, that no device has written: garbage on the machine, whatever stands there here."""

from __future__ import annotations

import numpy as np

from a2a3sim.checks.extent import Extent
from a2a3sim.checks.wording import plural
from a2a3sim.language.host.recording import Dispatch
from a2a3sim.language.host_handles import HostTensor
from a2a3sim.result import Finding, FindingSite
from a2a3sim.run.call_arguments import CallArguments
from a2a3sim.run.launch import Launch
from a2a3sim.trace.record import resolve_site

__all__ = ["unwritten_outputs"]


def unwritten_outputs(launch: Launch, arguments: CallArguments, compared: bool) -> list[Finding]:
    """One finding for each output of which something is missing.

    Args:
        compared: the outputs are held against a golden; if not, they count only where no kernel did anything.
    """
    findings: list[Finding] = []
    if not compared and any(lane.operations for lane in launch.trace.lanes):
        return findings
    for parameter, handle in arguments.tensors():
        flags = launch.unwritten.get(id(handle.buffer))
        if flags is None:
            continue
        layout = handle.layout
        missing = ~np.ndarray(layout.shape, np.bool_, flags, layout.base, layout.strides)
        count = int(np.count_nonzero(missing))
        if count:
            findings.append(_finding(launch, parameter.name, handle, missing, count, compared))
    return findings


def _finding(
    launch: Launch, name: str, handle: HostTensor, missing: np.ndarray, count: int, compared: bool
) -> Finding:
    extent = Extent(name, "bytes")
    itemsize = handle.layout.dtype.itemsize
    flat = np.flatnonzero(np.diff(np.r_[False, missing.reshape(-1), False].astype(np.int8)))
    for low, high in flat.reshape(-1, 2).tolist():
        extent.add(0, low * itemsize, high * itemsize)
    where = extent.where()
    parts, sites = _parts(launch, handle)
    where["ranks"] = sorted(parts)
    pieces = where.pop("pieces", None)
    if pieces:
        where["pieces"] = pieces["0"][:64]
    text = ", ".join(parts[rank] for rank in list(parts)[:3]) + (
        f" and {len(parts) - 3} more ranks" if len(parts) > 3 else ""
    )
    message = (
        f"{plural(count, 'element')} of the output {name} {'was' if count == 1 else 'were'} written by nobody"
    )
    message += f": {text}." if text else "."
    if compared:
        message += " They are compared with the golden, but on the machine they hold whatever was in that memory before."
    else:
        message += " No kernel did anything before it returned."
    fix = f"write all of {name}, or compare only what the program writes"
    return Finding(
        kind="uninitialised", subtype="output", severity="error" if compared else "warning", ranks=sorted(parts), sites=sites,
        where=where, message=message, fix=fix,
    )  # fmt: skip


def _parts(launch: Launch, handle: HostTensor) -> tuple[dict[int, str], list[FindingSite]]:
    """Per rank what is missing of the part that it was handed, in words; and the dispatches that handed it."""
    whole = handle.layout
    parts: dict[int, str] = {}
    sites: dict[tuple[str, int], FindingSite] = {}
    for task in launch.recording.tasks:
        if not isinstance(task, Dispatch):
            continue
        for arg in task.args:
            if not isinstance(arg, HostTensor) or arg.buffer is not handle.buffer:
                continue
            part = arg.layout
            flags = np.ndarray(
                part.shape, np.bool_, launch.unwritten[id(handle.buffer)], part.base, part.strides
            )
            mine = ~flags
            if task.device in parts or not mine.any() or part.dtype is not whole.dtype:
                continue
            parts[task.device] = f"{_elements(mine)} of {arg.name}"
            if task.site is not None:
                place = resolve_site(task.site)
                sites.setdefault(
                    (place.file, place.line),
                    FindingSite(
                        file=place.file, line=place.line, source=place.source, rank=task.device, operation="dispatch",
                        dispatch=task.index,
                    ),
                )  # fmt: skip
    return parts, list(sites.values())


def _elements(mask: np.ndarray) -> str:
    """``all``, ``rows 2..3``, ``elements 250..255``, or how many."""
    if mask.all():
        return "all"
    rows = mask.reshape(mask.shape[0], -1)
    if mask.ndim > 1 and mask.shape[0] > 1 and np.array_equal(rows.all(axis=1), rows.any(axis=1)):
        return _run("row", np.flatnonzero(rows.all(axis=1)))
    return _run("element", np.flatnonzero(mask.reshape(-1)))


def _run(noun: str, found: np.ndarray) -> str:
    if len(found) == 1:
        return f"{noun} {found[0]}"
    if found[-1] - found[0] + 1 == len(found):
        return f"{noun}s {found[0]}..{found[-1]}"
    return f"{len(found)} {noun}s from {found[0]} to {found[-1]}"
