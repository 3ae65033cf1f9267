"""The collectives, written in the kernel language only."""

if __name__ != "a2a3sim.kernels":
    raise ImportError("import a2a3sim.kernels, not kernels: a second copy of its modules would be created")

from importlib import import_module
from typing import TYPE_CHECKING

from a2a3sim.errors import ConfigError
from a2a3sim.lazy import lazy
from a2a3sim.units import nearest

if TYPE_CHECKING:
    from a2a3sim.kernels.collective import Collective, Job

__all__ = ["CATALOGUE", "DEFAULTS", "Collective", "Job", "find"]

#: Where each algorithm stands, by collective and name; imported when asked for.
CATALOGUE = {
    "allreduce": {
        "mesh": "allreduce_mesh:MESH",
        "mesh_rotated": "allreduce_mesh:MESH_ROTATED",
        "two_phase": "allreduce_two_phase:TWO_PHASE",
        "two_phase_rotated": "allreduce_two_phase:TWO_PHASE_ROTATED",
        "ring": "allreduce_ring:RING",
        "ring_bidirectional": "allreduce_ring:RING_BIDIRECTIONAL",
        "halving_doubling": "allreduce_halving_doubling:HALVING_DOUBLING",
        "recursive_doubling": "allreduce_recursive_doubling:RECURSIVE_DOUBLING",
        "hierarchical": "allreduce_hierarchical:HIERARCHICAL",
        "two_phase_push": "allreduce_two_phase_push:TWO_PHASE_PUSH",
    },
    "allgather": {
        "mesh": "allgather:MESH",
        "mesh_rotated": "allgather:MESH_ROTATED",
        "ring": "allgather:RING",
    },
    "reduce_scatter": {
        "mesh": "reduce_scatter:MESH",
        "mesh_rotated": "reduce_scatter:MESH_ROTATED",
        "ring": "reduce_scatter:RING",
    },
    "broadcast": {"flat": "broadcast:FLAT", "binomial": "broadcast:BINOMIAL"},
    "all_to_all": {"mesh": "all_to_all:MESH", "mesh_rotated": "all_to_all:MESH_ROTATED"},
}

#: What a collective runs when no algorithm is named.
DEFAULTS = {
    "allreduce": "two_phase",
    "allgather": "mesh",
    "reduce_scatter": "mesh",
    "broadcast": "flat",
    "all_to_all": "mesh",
}

__getattr__, __dir__ = lazy(__name__)


def find(collective: str, algorithm: str | None = None) -> "Collective":
    """The `Collective` of a name; without one the collective's default.

    Raises:
        ConfigError: unknown names, with the nearest valid one.
    """
    if collective not in CATALOGUE:
        hint = nearest(collective, CATALOGUE)
        raise ConfigError(f"collective must be one of {', '.join(CATALOGUE)}, got {collective!r}{hint}")
    known = CATALOGUE[collective]
    if algorithm is None:
        algorithm = DEFAULTS[collective]
    if algorithm not in known:
        hint = nearest(algorithm, known)
        raise ConfigError(
            f"algorithm of {collective} must be one of {', '.join(known)}, got {algorithm!r}{hint}"
        )
    module, _, name = known[algorithm].partition(":")
    found: Collective = getattr(import_module(f"a2a3sim.kernels.{module}"), name)
    return found
