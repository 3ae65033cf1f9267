"""``put`` and ``get``: copies between global memories of two ranks, chunk by chunk through UB."""

from __future__ import annotations

from typing import Any, SupportsIndex, TypeAlias

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.context import KernelContext, caller_site, kernel_context
from a2a3sim.language.dynamic import Dim, dim_value
from a2a3sim.language.handles import DistributedTensor, Tensor
from a2a3sim.language.kernel import demands
from a2a3sim.language.kernel.local import need_tensor
from a2a3sim.language.kernel.remote import need_window, other_end
from a2a3sim.language.layout import Layout, Region
from a2a3sim.language.types import AtomicType, Indices
from a2a3sim.models.operation import Site

__all__ = ["get", "put"]

# dst_offsets, src_offsets, shape: all three or none.
_Parts: TypeAlias = tuple[Indices | None, Indices | None, Indices | None]


def _chunk(what: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, Dim)):
        raise InvalidOperationError(f"{what}: {name} must be an int, got {value!r}")
    number = dim_value(value)
    if number < 0:
        raise InvalidOperationError(f"{what}: {name} must be >= 0 (0 = the full extent), got {number}")
    return number


def _rectangles(
    what: str, dst: Layout, src: Layout, parts: _Parts
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Offsets and extent of a copy: the full slices, or the three region arguments together."""
    dst_offsets, src_offsets, shape = parts
    given = [a is not None for a in parts]
    if any(given) and not all(given):
        raise InvalidOperationError(
            f"{what}: give dst_offsets, src_offsets and shape together or none of them"
        )
    if src.dtype is not dst.dtype:
        raise InvalidOperationError(f"{what}: src is {src.dtype!r} but dst is {dst.dtype!r}")
    if len(src.shape) != len(dst.shape):
        raise InvalidOperationError(
            f"{what}: ranks must be equal, got src shape {list(src.shape)} and dst shape {list(dst.shape)}"
        )
    if dst_offsets is None or src_offsets is None or shape is None:
        if src.shape != dst.shape:
            raise InvalidOperationError(
                f"{what}: a full-slice copy needs equal shapes, got src {list(src.shape)} and dst "
                f"{list(dst.shape)}; "
                "give dst_offsets, src_offsets and shape"
            )
        zeros = (0,) * len(src.shape)
        return zeros, zeros, src.shape
    return (
        tuple(dim_value(o) for o in dst_offsets),
        tuple(dim_value(o) for o in src_offsets),
        tuple(dim_value(s) for s in shape),
    )


def _chunks(
    what: str,
    dst: Layout,
    src: Layout,
    dst_offsets: tuple[int, ...],
    src_offsets: tuple[int, ...],
    shape: tuple[int, ...],
    rows: int,
    cols: int,
) -> list[tuple[Region, Region, tuple[int, ...]]]:
    """Cut a copy into staging tiles of ``rows`` x ``cols`` of [product of leading axes, last axis]."""
    # Both regions are checked whole first, so that an error names what the program asked for.
    src_all = src.region(f"{what} src", src_offsets, shape)
    dst_all = dst.region(f"{what} dst", dst_offsets, shape)
    *lead, last = shape
    total_rows = 1
    for s in lead:
        total_rows *= s
    rows = min(rows or total_rows, total_rows)
    cols = min(cols or last, last)
    if rows == total_rows and cols == last:
        return [(src_all, dst_all, shape)]
    # Rows are cut along the innermost leading axis; outer axes go one index at a time.
    inner = lead[-1] if lead else 1
    outer_count = total_rows // inner
    step_rows = min(rows, inner)
    chunks = []
    for outer in range(outer_count):
        index: tuple[int, ...] = ()
        rest = outer
        for s in reversed(lead[:-1]):
            index = (rest % s, *index)
            rest //= s
        for r0 in range(0, inner, step_rows):
            r = min(step_rows, inner - r0)
            for c0 in range(0, last, cols):
                c = min(cols, last - c0)
                at = (*index, r0, c0) if lead else (c0,)
                extent = (*(1 for _ in index), r, c) if lead else (c,)
                chunks.append(
                    (
                        src.region(what, tuple(o + a for o, a in zip(src_offsets, at, strict=True)), extent),
                        dst.region(what, tuple(o + a for o, a in zip(dst_offsets, at, strict=True)), extent),
                        extent,
                    )
                )
    return chunks


def _check_dynamic(
    what: str, tensors: tuple[Tensor, ...], parts: _Parts, chunk_rows: Any, chunk_cols: Any
) -> None:
    """A whole slice whose extents are only known at run time needs a staging tile that is known before."""
    if any(part is not None for part in parts):
        return
    for tensor in tensors:
        last = len(tensor.layout.shape) - 1
        for axis in tensor.dynamic:
            name, given = ("chunk_cols", chunk_cols) if axis == last else ("chunk_rows", chunk_rows)
            if not given:
                raise InvalidOperationError(
                    f"{what}: axis {axis} of {tensor.name} is dynamic, so {name} must be given (> 0), "
                    f"got {given!r}"
                )


def _copy(
    what: str,
    kind: str,
    ctx: KernelContext,
    site: Site,
    src: Tensor,
    src_peer: int | None,
    dst: Tensor,
    dst_peer: int | None,
    parts: _Parts,
    chunk_rows: Any,
    chunk_cols: Any,
    pipeline: bool,
    add: bool,
) -> None:
    rows = _chunk(what, "chunk_rows", chunk_rows)
    cols = _chunk(what, "chunk_cols", chunk_cols)
    if pipeline and not (rows and cols):
        raise InvalidOperationError(
            f"{what}: pipeline=True needs chunk_rows and chunk_cols > 0, got {rows} and {cols}"
        )
    dst_offsets, src_offsets, shape = _rectangles(what, dst.layout, src.layout, parts)
    chunks = _chunks(what, dst.layout, src.layout, dst_offsets, src_offsets, shape, rows, cols)
    demands.copy(ctx, site, kind, src, src_peer, dst, dst_peer, chunks, bool(pipeline), add)


def put(
    dst: DistributedTensor,
    peer: SupportsIndex,
    src: Tensor,
    dst_offsets: Indices | None = None,
    src_offsets: Indices | None = None,
    shape: Indices | None = None,
    *,
    atomic: AtomicType = AtomicType.None_,
    chunk_rows: int = 0,
    chunk_cols: int = 0,
    pipeline: bool = False,
) -> DistributedTensor:
    """Copy from the own global memory into a peer's slice through a staging tile; synchronous.

    Args:
        dst_offsets, src_offsets, shape: a region, all three or none (then the whole slices).
        atomic: add instead of replacing.
        chunk_rows, chunk_cols: extents of the staging tile, 0 = the full extent.
        pipeline: two staging tiles, so that a chunk's load overlaps the previous chunk's store.
    """
    what = "pld.tensor.put"
    need_window(what, "dst", dst)
    need_tensor(what, "src", src)
    ctx = kernel_context(what)
    site = caller_site()
    there = dst.peer(what, peer)
    add = atomic == AtomicType.Add
    if add:
        ctx.machine.check_atomic(what, src.layout.dtype)
    regions = (dst_offsets, src_offsets, shape)
    _check_dynamic(what, (dst, src), regions, chunk_rows, chunk_cols)
    other = other_end(dst, dim_value(peer))
    _copy(what, "put", ctx, site, src, None, there, other, regions, chunk_rows, chunk_cols, pipeline, add)
    return dst


def get(
    dst: Tensor,
    peer: SupportsIndex,
    src: DistributedTensor,
    dst_offsets: Indices | None = None,
    src_offsets: Indices | None = None,
    shape: Indices | None = None,
    *,
    chunk_rows: int = 0,
    chunk_cols: int = 0,
    pipeline: bool = False,
) -> Tensor:
    """Copy from a peer's slice into the own global memory through a staging tile; synchronous. As `put`."""
    what = "pld.tensor.get"
    need_tensor(what, "dst", dst)
    need_window(what, "src", src)
    ctx = kernel_context(what)
    site = caller_site()
    there = src.peer(what, peer)
    regions = (dst_offsets, src_offsets, shape)
    _check_dynamic(what, (dst, src), regions, chunk_rows, chunk_cols)
    other = other_end(src, dim_value(peer))
    _copy(what, "get", ctx, site, there, other, dst, None, regions, chunk_rows, chunk_cols, pipeline, False)
    return dst
