"""Distributed part of the language: ``import a2a3sim.language.distributed as pld``."""

from a2a3sim.frontend.collectives import (
    all_to_all,
    all_to_all_v,
    allgather,
    allreduce,
    barrier,
    broadcast,
    reduce_scatter,
)
from a2a3sim.frontend.handles import DistributedTensor
from a2a3sim.frontend.host_ops import alloc_window_buffer, window, world_size
from a2a3sim.frontend.names import Namespace, unknown_name
from a2a3sim.frontend.remote_ops import (
    get,
    get_comm_ctx,
    nranks,
    put,
    rank,
    remote_load,
    remote_store_tensor,
)
from a2a3sim.frontend.remote_ops import remote_store as remote_store_tile
from a2a3sim.frontend.remote_ops import remote_store_any as remote_store
from a2a3sim.frontend.signal_ops import defer_wait, notify, wait
from a2a3sim.frontend.types import AtomicType, NotifyOp, ReduceOp, WaitCmp

tile = Namespace("pld.tile", remote_load=remote_load, remote_store=remote_store_tile)
tensor = Namespace(
    "pld.tensor",
    all_to_all=all_to_all,
    all_to_all_v=all_to_all_v,
    allgather=allgather,
    allreduce=allreduce,
    alloc_window_buffer=alloc_window_buffer,
    barrier=barrier,
    broadcast=broadcast,
    get=get,
    put=put,
    reduce_scatter=reduce_scatter,
    remote_store=remote_store_tensor,
    window=window,
)
system = Namespace(
    "pld.system",
    defer_wait=defer_wait,
    get_comm_ctx=get_comm_ctx,
    notify=notify,
    nranks=nranks,
    rank=rank,
    wait=wait,
    world_size=world_size,
)

__all__ = [
    "AtomicType",
    "DistributedTensor",
    "NotifyOp",
    "ReduceOp",
    "WaitCmp",
    "alloc_window_buffer",
    "get_comm_ctx",
    "nranks",
    "rank",
    "remote_load",
    "remote_store",
    "system",
    "tensor",
    "tile",
    "window",
    "world_size",
]


def __getattr__(name: str):
    """Short forms exist for a few operations only; the error names the nearest."""
    return unknown_name("pld", name, __all__)
