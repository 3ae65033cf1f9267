"""PyPTO's built-in collectives as ordinary kernels: what `pld.tensor.allreduce` and its kin run.

Each is written in the language alone, so its traffic, its time and its findings come out of the machine
like those of any other kernel. A factory gives the kernel for one job (ranks, extents, dtype, …); the front
end asks for it by name when a program calls the collective.
"""

if __name__ != "a2a3sim.kernels.builtin":
    raise ImportError("import a2a3sim.kernels.builtin, not a second copy of it")

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["BUILTIN", "find"]

#: Where the factory of each kernel stands, imported when asked for. The two forms of a ring differ in their
#: barriers, so they are two kernels; all others serve a kernel's own call and the host's alike.
BUILTIN = {
    "allgather": "allgather:build",
    "all_to_all": "all_to_all:build",
    "all_to_all_v": "all_to_all_v:build",
    "allreduce": "allreduce:build",
    "allreduce_ring": "allreduce_ring:build",
    "allreduce_ring_host": "allreduce_ring:build_host",
    "barrier": "barrier:build",
    "broadcast": "broadcast:build",
    "reduce_scatter": "reduce_scatter:build",
}


def find(name: str) -> Callable[..., Any]:
    """The factory of a built-in's kernel; KeyError for a name that is not in `BUILTIN`."""
    module, _, factory = BUILTIN[name].partition(":")
    build: Callable[..., Any]
    build = getattr(import_module(f"a2a3sim.kernels.builtin.{module}"), factory)
    return build
