"""Distributed part of the language: ``import a2a3sim.language.distributed as pld``."""

from types import SimpleNamespace

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
from a2a3sim.frontend.remote_ops import get, get_comm_ctx, notify, nranks, put, rank, remote_load, remote_store, wait
from a2a3sim.frontend.types import AtomicType, NotifyOp, ReduceOp, WaitCmp

tile = SimpleNamespace(remote_load=remote_load, remote_store=remote_store)
tensor = SimpleNamespace(
    put=put,
    get=get,
    allreduce=allreduce,
    barrier=barrier,
    broadcast=broadcast,
    allgather=allgather,
    reduce_scatter=reduce_scatter,
    all_to_all=all_to_all,
    all_to_all_v=all_to_all_v,
)
system = SimpleNamespace(
    notify=notify, wait=wait, get_comm_ctx=get_comm_ctx, rank=rank, nranks=nranks, world_size=world_size
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
