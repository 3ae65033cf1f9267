"""One-sided access to other ranks: remote loads and stores."""

from __future__ import annotations

from sys import _getframe
from typing import Any, SupportsIndex

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.context import KernelContext, caller_site, current, kernel_context
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.handles import CommCtx, DistributedTensor, Tensor, Tile
from a2a3sim.language.kernel import demands
from a2a3sim.language.kernel.device_int import device_int
from a2a3sim.language.kernel.local import need_tensor, need_tile, place
from a2a3sim.language.kernel.tensors import whole
from a2a3sim.language.types import AtomicType, Indices
from a2a3sim.models.operation import Site

__all__ = [
    "get_comm_ctx",
    "need_window",
    "nranks",
    "other_end",
    "rank",
    "remote_load",
    "remote_store",
    "remote_store_any",
    "remote_store_tensor",
]


def need_window(what: str, role: str, value: object) -> DistributedTensor:
    """A window, or InvalidOperationError."""
    if not isinstance(value, DistributedTensor):
        shown = f"the tensor {value.name}" if isinstance(value, Tensor) else repr(value)
        raise InvalidOperationError(f"{what}: {role} must be a window (DistributedTensor), got {shown}")
    return value


def get_comm_ctx(window: DistributedTensor) -> CommCtx:
    """The communication domain of a window."""
    return need_window("pld.get_comm_ctx", "dt", window).domain


def _need_ctx(what: str, value: object) -> CommCtx:
    if not isinstance(value, CommCtx):
        raise InvalidOperationError(f"{what} takes the result of pld.get_comm_ctx(window), got {value!r}")
    return value


def rank(ctx: CommCtx) -> int:
    """This rank's index in the communication domain."""
    return device_int(_need_ctx("pld.rank", ctx).rank)


def nranks(ctx: CommCtx) -> int:
    """The number of ranks in the communication domain."""
    return device_int(_need_ctx("pld.nranks", ctx).nranks)


def other_end(target: DistributedTensor, peer: int) -> int | None:
    """The run's rank at the other end, or None if that is the own slice."""
    return None if peer == target.domain.rank else target.domain.devices[peer]


def remote_load(
    target: DistributedTensor,
    peer: SupportsIndex,
    offsets: Indices,
    shape: Indices,
    valid_shape: Indices | None = None,
) -> Tile:
    """Load a rectangle of a peer's slice into a tile (MTE2): a round trip, then the bytes.

    Raises:
        InvalidOperationError: not a window, or ranks differ.
        KernelError: no such peer, out of bounds, or the tile exceeds UB.
    """
    if type(target) is not DistributedTensor:
        need_window("pld.tile.remote_load", "target", target)
    ctx = current()
    if type(ctx) is not KernelContext:
        ctx = kernel_context("pld.tile.remote_load")
    frame = _getframe(1)
    there = target.peer("pld.tile.remote_load", peer)
    if valid_shape is None:
        region = there.layout.region("pld.tile.remote_load", offsets, shape)
        extent = region.shape
    else:
        region = there.layout.region("pld.tile.remote_load", offsets, valid_shape)
        extent = region.shape
        if extent != tuple(shape):
            extent = tuple(dim_value(s) for s in shape)
            if len(extent) != len(region.shape) or any(
                v > s for v, s in zip(region.shape, extent, strict=True)
            ):
                raise InvalidOperationError(
                    f"pld.tile.remote_load: valid_shape {list(region.shape)} must fit into shape "
                    f"{list(extent)}"
                )
    domain = target.domain
    other = None if peer == domain.rank else domain.devices[peer]
    return demands.load(ctx, (frame.f_code, frame.f_lasti), "remote_load", there, region, extent, other)


def remote_store(
    src_tile: Tile,
    target: DistributedTensor,
    peer: SupportsIndex,
    offsets: Indices,
    *,
    atomic: AtomicType = AtomicType.None_,
) -> DistributedTensor:
    """Store a tile into a peer's slice (MTE3), replacing or adding; returns the target.

    Raises:
        InvalidOperationError: wrong kinds, dtypes differ, target of rank < 2.
        KernelError: no such peer, out of bounds, or the machine cannot add this dtype.
    """
    return _push("pld.tile.remote_store", src_tile, target, peer, offsets, atomic, caller_site())


def remote_store_tensor(
    src: Tensor,
    target: DistributedTensor,
    peer: SupportsIndex,
    offsets: Indices,
    *,
    atomic: AtomicType = AtomicType.None_,
) -> DistributedTensor:
    """Store a whole tensor of the own global memory into a peer's slice: a load and a remote store.

    Raises:
        InvalidOperationError: a window as source (`put` copies between windows), wrong kinds, dtypes differ.
        KernelError: no such peer, out of bounds, or the tensor exceeds UB.
    """
    return _push_tensor("pld.tensor.remote_store", src, target, peer, offsets, atomic, caller_site())


def remote_store_any(
    src: Tile | Tensor,
    target: DistributedTensor,
    peer: SupportsIndex,
    offsets: Indices,
    *,
    atomic: AtomicType = AtomicType.None_,
) -> DistributedTensor:
    """``pld.remote_store``: `remote_store` of a tile or `remote_store_tensor` of a tensor."""
    site = caller_site()
    push = _push_tensor if isinstance(src, Tensor) else _push
    return push("pld.remote_store", src, target, peer, offsets, atomic, site)


def _push_tensor(
    what: str,
    src: Any,
    target: DistributedTensor,
    peer: SupportsIndex,
    offsets: Indices,
    atomic: AtomicType,
    site: Site,
) -> DistributedTensor:
    need_tensor(what, "src", src)
    if isinstance(src, DistributedTensor):
        raise InvalidOperationError(
            f"{what}: src must be a plain tensor, got the window {src.name}; use pld.tensor.put"
        )
    need_window(what, "target", target)
    return _push(what, whole(kernel_context(what), site, what, src), target, peer, offsets, atomic, site)


def _push(
    what: str,
    src_tile: Any,
    target: DistributedTensor,
    peer: SupportsIndex,
    offsets: Indices,
    atomic: AtomicType,
    site: Site,
) -> DistributedTensor:
    need_tile(what, "src_tile", src_tile)
    need_window(what, "target", target)
    ctx = kernel_context(what)
    if len(target.layout.shape) < 2:
        raise InvalidOperationError(f"{what}: target must have rank >= 2, got shape {target.shape}")
    there = target.peer(what, peer)
    region = place(what, src_tile, there, offsets)
    add = atomic == AtomicType.Add
    if add:
        ctx.machine.check_atomic(what, src_tile.dtype)
    demands.store(ctx, site, "remote_store", src_tile, there, region, other_end(target, dim_value(peer)), add)
    return target
