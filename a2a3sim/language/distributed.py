"""Distributed part of the language: ``import a2a3sim.language.distributed as pld``."""

# Most operations have no short form, so their names must not appear here.
from a2a3sim.language.handles import DistributedTensor
from a2a3sim.language.host import collectives as _collectives
from a2a3sim.language.host.ops import alloc_window_buffer, window, world_size
from a2a3sim.language.kernel import remote as _remote
from a2a3sim.language.kernel import signals as _signals
from a2a3sim.language.kernel.remote import get_comm_ctx, nranks, rank, remote_load
from a2a3sim.language.kernel.remote import remote_store_any as remote_store
from a2a3sim.language.names import Namespace as _Namespace
from a2a3sim.language.names import unknown_name as _unknown_name
from a2a3sim.language.types import AtomicType, NotifyOp, ReduceOp, WaitCmp

tile = _Namespace("pld.tile", remote_load=remote_load, remote_store=_remote.remote_store)
tensor = _Namespace(
    "pld.tensor",
    all_to_all=_collectives.all_to_all,
    all_to_all_v=_collectives.all_to_all_v,
    allgather=_collectives.allgather,
    allreduce=_collectives.allreduce,
    alloc_window_buffer=alloc_window_buffer,
    barrier=_collectives.barrier,
    broadcast=_collectives.broadcast,
    get=_remote.get,
    put=_remote.put,
    reduce_scatter=_collectives.reduce_scatter,
    remote_store=_remote.remote_store_tensor,
    window=window,
)
system = _Namespace(
    "pld.system",
    defer_wait=_signals.defer_wait,
    get_comm_ctx=get_comm_ctx,
    notify=_signals.notify,
    nranks=nranks,
    rank=rank,
    wait=_signals.wait,
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
    return _unknown_name("pld", name, __all__)
