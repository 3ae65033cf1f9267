"""How a program is compiled and run: PyPTO's configuration objects with the simulator's own settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from a2a3sim.errors import ConfigError
from a2a3sim.units import nearest

__all__ = ["FENCES", "LAUNCHES", "DistributedConfig", "RunConfig", "check_backend"]

FENCES = ("statement", "notify", "explicit")
LAUNCHES = ("together", "dispatch")
_PLATFORMS = ("a2a3sim", "a2a3", "a5sim", "a5")


def _check_platform(platform: str) -> None:
    if platform not in _PLATFORMS:
        raise ConfigError(
            f"platform must be one of {', '.join(_PLATFORMS)}, got "
            f"{platform!r}{nearest(str(platform), _PLATFORMS)}"
        )


def check_backend(platform: str) -> None:
    """ConfigError unless the PyPTO platform is one that runs here."""
    _check_platform(platform)
    if platform != "a2a3sim":
        what = "is another chip generation" if platform.startswith("a5") else "needs NPU hardware"
        raise ConfigError(f"platform {platform!r} {what}; a2a3sim runs programs with -p a2a3sim")


@dataclass(frozen=True)
class DistributedConfig:
    """On which devices a distributed program runs.

    Args:
        device_ids: labels of the devices; their number is the rank count.
        num_sub_workers: host processes for SubWorker functions.

    Raises:
        ConfigError: no devices, negative or repeated ids, fewer than 0 sub-workers, a bad thread number.
    """

    device_ids: Sequence[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: str = "tensormap_and_ringbuffer"
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        ids = list(self.device_ids)
        if not ids:
            raise ConfigError("device_ids must name at least one device, got none")
        for label in ids:
            if isinstance(label, bool) or not isinstance(label, int):
                raise ConfigError(f"device ids must be whole numbers, got {label!r}")
            if label < 0:
                raise ConfigError(f"device ids must not be negative, got {label}")
        twice = [label for k, label in enumerate(ids) if label in ids[:k]]
        if twice:
            raise ConfigError(f"device ids must differ, got {twice[0]} more than once in {ids}")
        if self.num_sub_workers < 0:
            raise ConfigError(f"num_sub_workers must not be negative, got {self.num_sub_workers}")
        if self.aicpu_thread_num < 0 or self.aicpu_thread_num == 1:
            raise ConfigError(f"aicpu_thread_num must be 0 or at least 2, got {self.aicpu_thread_num}")


def _check_ring(name: str, value) -> None:
    if value is None:
        return
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(values) not in (1, 4) or any(
        isinstance(v, bool) or not isinstance(v, int) or v <= 0 or v & (v - 1) for v in values
    ):
        raise ConfigError(f"{name} must be a power of two or a list of four, got {value!r}")


@dataclass(frozen=True)
class RunConfig:
    """How one run is made: PyPTO's fields, then the simulator's.

    Args:
        machine: name of a platform or path of its TOML file (default ``a2``).
        platform_overrides: parameters by dotted name, with units (``{"link.bandwidth": "10GB/s"}``).
        seed: fixed sample of skews and tie orders; equal seeds give equal runs.
        skew: width of the launch skew with its unit; None takes the platform's.
        fences: ``statement`` (what the vendor's compiler emits), ``notify`` or ``explicit``.
        launch: ``together`` or ``dispatch``.
        timing_only: shapes and times but no bytes.
        keep: names of tensors that keep their bytes in a timing-only run.
        checks: look for findings.
        slow: factor per rank on its core and vector costs (``{2: "2x"}``).
        jitter: most by which a link's latency is stretched (``"4x"``); each link has its own factor, by the seed.
        delay: (rank, ``"file.py:line"`` or dispatch, occurrence) -> time that this rank's cores stand still there
            before the operation (``{(2, "prog.py:40", 0): "10us"}``).
        place: platform device of each rank (default rank i on device i).
        poison: fill fresh memory with a recognisable value instead of zeros.
        keep_trace: leave the run's trace at ``compiled.last_trace`` (`a2a3sim.trace`), about a KiB an operation;
            without, that is None.
        rtol, atol: tolerance of the golden comparison; None takes the dtype's.
    """

    platform: str = "a2a3sim"
    device_id: int = 0
    rtol: float | None = None
    atol: float | None = None
    strategy: Any = None
    backend_type: Any = None
    dump_passes: bool = False
    save_kernels: bool = False
    save_kernels_dir: Any = None
    codegen_only: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    ring_task_window: Any = None
    ring_heap: Any = None
    ring_dep_pool: Any = None
    distributed_config: DistributedConfig | None = None
    block_dim: int | None = None
    aicpu_thread_num: int | None = None
    # -- the simulator's own
    machine: str | None = None
    platform_overrides: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    skew: str | int | None = None
    fences: str = "statement"
    launch: str = "together"
    timing_only: bool = False
    keep: Sequence[str] = ()
    checks: bool = True
    slow: Mapping[int, Any] = field(default_factory=dict)
    jitter: Any = 1
    delay: Mapping[Any, Any] = field(default_factory=dict)
    place: Sequence[int] | None = None
    poison: bool = False
    keep_trace: bool = False

    def __post_init__(self) -> None:
        _check_platform(self.platform)
        for name in ("ring_task_window", "ring_heap", "ring_dep_pool"):
            _check_ring(name, getattr(self, name))
        if self.fences not in FENCES:
            raise ConfigError(f"fences must be one of {', '.join(FENCES)}, got {self.fences!r}")
        if self.launch not in LAUNCHES:
            raise ConfigError(f"launch must be one of {', '.join(LAUNCHES)}, got {self.launch!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 64:
            raise ConfigError(f"seed must be a whole number >= 0 and below 2^64, got {self.seed!r}")
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ConfigError(f"{name} must be >= 0, got {value!r}")
        if isinstance(self.keep, str):
            raise ConfigError(f"keep must be a list of tensor names, got the text {self.keep!r}")

    def with_(self, **changes) -> RunConfig:
        """A copy with some fields changed."""
        return replace(self, **changes)
