"""Cycle-approximate simulator for collective kernels on Ascend A2/A3 NPUs.

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import ir, DistributedConfig, RunConfig
"""

from typing import TYPE_CHECKING

from a2a3sim.lazy import lazy

if TYPE_CHECKING:
    from a2a3sim import ir, language, trace
    from a2a3sim.config import DistributedConfig, RunConfig
    from a2a3sim.errors import A2A3Error, ConfigError, DeadlockError, KernelError, NumericsError
    from a2a3sim.models.platform import load_platform
    from a2a3sim.result import RunResult

__all__ = [
    "A2A3Error", "ConfigError", "DeadlockError", "DistributedConfig", "KernelError", "NumericsError",
    "RunConfig", "RunResult", "ir", "language", "load_platform", "trace",
]  # fmt: skip

__getattr__, __dir__ = lazy(__name__)
