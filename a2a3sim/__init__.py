"""Cycle-approximate simulator for collective kernels on Ascend A2/A3 NPUs.

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import ir, DistributedConfig, RunConfig
"""

from importlib import import_module

_PUBLIC = {
    "A2A3Error": "a2a3sim.errors",
    "ConfigError": "a2a3sim.errors",
    "DeadlockError": "a2a3sim.errors",
    "KernelError": "a2a3sim.errors",
    "NumericsError": "a2a3sim.errors",
    "DistributedConfig": "a2a3sim.config",
    "RunConfig": "a2a3sim.config",
    "RunResult": "a2a3sim.result",
    "ir": "a2a3sim.ir",
    "language": "a2a3sim.language",
    "load_platform": "a2a3sim.models.platform",
}

__all__ = sorted(_PUBLIC)  # noqa: PLE0605 (a list of texts)


def __getattr__(name: str):
    """Import a public name when it is first used: a command should not wait for what it does not need."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'a2a3sim' has no attribute {name!r}")
    module = import_module(_PUBLIC[name])
    value = module if module.__name__.rpartition(".")[2] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
