"""Distributed part of the language: ``import a2a3sim.language.distributed as pld``."""

from typing import Any as _Any

# Most operations have no short form, so their names must not appear here.
from a2a3sim.language.handles import DistributedTensor
from a2a3sim.language.host.ops import alloc_window_buffer, window, world_size
from a2a3sim.language.kernel.remote import get_comm_ctx, nranks, rank, remote_load
from a2a3sim.language.kernel.remote import remote_store_any as remote_store
from a2a3sim.language.names import Namespace as _Namespace
from a2a3sim.language.names import look_up as _look_up
from a2a3sim.language.types import AtomicType, NotifyOp, ReduceOp, WaitCmp

tile = _Namespace("pld.tile")
tensor = _Namespace("pld.tensor")
system = _Namespace("pld.system")

__all__ = [
    "AtomicType", "DistributedTensor", "NotifyOp", "ReduceOp", "WaitCmp", "alloc_window_buffer",
    "get_comm_ctx", "nranks", "rank", "remote_load", "remote_store", "system", "tensor", "tile", "window",
    "world_size",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    """Short forms exist for a few operations only; the error names the nearest."""
    return _look_up("pld", name, __all__)
