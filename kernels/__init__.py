"""The collectives, written in the kernel language only."""

if __name__ != "a2a3sim.kernels":
    raise ImportError("import a2a3sim.kernels, not kernels: a second copy of its modules would be created")

from importlib import import_module

__all__ = ["CATALOGUE", "find"]

#: Where each algorithm stands, by collective and name; imported when asked for.
CATALOGUE = {
    "allreduce": {
        "mesh": "allreduce_mesh:MESH",
        "mesh_rotated": "allreduce_mesh:MESH_ROTATED",
        "two_phase": "allreduce_two_phase:TWO_PHASE",
        "two_phase_rotated": "allreduce_two_phase:TWO_PHASE_ROTATED",
    },
}


def find(collective: str, algorithm: str):
    """The `Collective` of a name.

    Raises:
        ConfigError: unknown names, with the nearest valid one.
    """
    from a2a3sim.errors import ConfigError
    from a2a3sim.units import nearest

    if collective not in CATALOGUE:
        raise ConfigError(
            f"collective must be one of {', '.join(CATALOGUE)}, got {collective!r}{nearest(collective, CATALOGUE)}"
        )
    known = CATALOGUE[collective]
    if algorithm not in known:
        raise ConfigError(
            f"algorithm of {collective} must be one of {', '.join(known)}, got {algorithm!r}{nearest(algorithm, known)}"
        )
    module, _, name = known[algorithm].partition(":")
    return getattr(import_module(f"a2a3sim.kernels.{module}"), name)
