"""How a program is compiled and run: PyPTO's configuration objects with the simulator's own settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from a2a3sim.errors import ConfigError
from a2a3sim.setting import (
    Setting,
    at_least_0,
    checked,
    different_devices,
    factor,
    factor_text,
    factors,
    one_of,
    parse_devices,
    parse_pairs,
    read_delays,
    read_factors,
    setting,
    skew_width,
)
from a2a3sim.units import nearest

__all__ = ["FENCES", "LAUNCHES", "DistributedConfig", "RunConfig", "check_backend"]

FENCES = ("statement", "notify", "explicit")
LAUNCHES = ("together", "dispatch")
_PLATFORMS = ("a2a3sim", "a2a3", "a5sim", "a5")


def _check_platform(name: str, platform: Any) -> None:
    if platform not in _PLATFORMS:
        raise ConfigError(
            f"{name} must be one of {', '.join(_PLATFORMS)}, got "
            f"{platform!r}{nearest(str(platform), _PLATFORMS)}"
        )


def check_backend(platform: str) -> None:
    """ConfigError unless the PyPTO platform is one that runs here."""
    _check_platform("platform", platform)
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


def _check_ring(name: str, value: Any) -> None:
    if value is None:
        return
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(values) not in (1, 4) or any(
        isinstance(v, bool) or not isinstance(v, int) or v <= 0 or v & (v - 1) for v in values
    ):
        raise ConfigError(f"{name} must be a power of two or a list of four, got {value!r}")


def _check_seed(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise ConfigError(f"{name} must be a whole number >= 0 and below 2^64, got {value!r}")


def _check_names(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise ConfigError(f"{name} must be a list of tensor names, got the text {value!r}")


def _resolve_jitter(value: Any, *_: Any) -> Fraction:
    return factor("jitter", value, least=1)


def _resolve_delays(value: Mapping[Any, Any], ranks: int, _platform: Any) -> tuple[Any, ...]:
    from a2a3sim.run.delays import parse_delays

    return parse_delays(value, ranks)


@dataclass(frozen=True)
class RunConfig:
    """How one run is made: PyPTO's fields, then the simulator's: one line each, from which its flag, its axis of
    sweeps, its key in their files and what results state follow (`a2a3sim.setting.setting`).

    Args:
        machine: name of a platform or path of its TOML file (default ``a2``).
        platform_overrides: parameters by dotted name, with units (``{"link.bandwidth": "10GB/s"}``).
        place: platform device of each rank (default rank i on device i).
        fences: ``statement`` (what the vendor's compiler emits), ``notify`` or ``explicit``.
        skew: width of the launch skew with its unit; None takes the platform's.
        slow: factor per rank on its core and vector costs (``{2: "2x"}``).
        jitter: most by which a link's latency is stretched (``"4x"``); each link has its own factor, by the seed.
        delay: (rank, ``"file.py:line"`` or dispatch, occurrence) -> time that this rank's cores stand still there
            before the operation (``{(2, "prog.py:40", 0): "10us"}``).
        seed: fixed sample of skews and tie orders; equal seeds give equal runs.
        poison: fill fresh memory with a recognisable value instead of zeros.
        checks: look for findings.
        timing_only: shapes and times but no bytes.
        keep: names of tensors that keep their bytes in a timing-only run.
        launch: ``together`` or ``dispatch``.
        keep_trace: leave the run's trace at ``compiled.last_trace`` (`a2a3sim.trace`), about a KiB an operation;
            without, that is None.
        rtol, atol: tolerance of the golden comparison; None takes the dtype's.
    """

    platform: str = checked("a2a3sim", _check_platform)
    device_id: int = 0
    rtol: float | None = checked(None, at_least_0)
    atol: float | None = checked(None, at_least_0)
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
    ring_task_window: Any = checked(None, _check_ring)
    ring_heap: Any = checked(None, _check_ring)
    ring_dep_pool: Any = checked(None, _check_ring)
    distributed_config: DistributedConfig | None = None
    block_dim: int | None = None
    aicpu_thread_num: int | None = None
    # -- the simulator's own, in the order of the flags
    machine: str | None = setting(
        None,
        "--platform",
        "Machine: a name (`a2a3sim platforms`) or a TOML file.",
        axis="Machines. Default a2.",
    )
    platform_overrides: Mapping[str, str] = setting(
        {}, "--set", "Override a parameter: link.bandwidth=10GB/s (repeatable).",
        kind=list[str], read=lambda items: parse_pairs("--set", items),
        axis="A platform parameter: link.bandwidth=10GB/s:100GB/s:x2 (repeatable).",
    )  # fmt: skip
    place: Sequence[int] | None = setting(
        None,
        "--place",
        "Platform device of each rank: 0,2,4,6.",
        read=parse_devices,
        resolve=different_devices,
    )
    fences: str = setting(
        "statement", "--fences", "statement, notify or explicit.", axis="statement, notify, explicit.",
        check=one_of(FENCES),
    )  # fmt: skip
    skew: str | int | None = setting(
        None, "--skew", "Width of the launch skew (2us), or none; default: the platform's.",
        axis="Widths of the launch skew, or none.", resolve=skew_width,
    )  # fmt: skip
    slow: Mapping[int, Any] = setting(
        {}, "--slow", "Slow a rank's cores down: 2=1.5x (repeatable).", kind=list[str], read=read_factors,
        resolve=factors, text=lambda slow: {str(rank): factor_text(slow[rank]) for rank in slow},
    )  # fmt: skip
    jitter: Any = setting(
        1, "--jitter", "Stretch each link's latency by its own factor, at most this (4x), by the seed.",
        axis="Most by which links' latencies are stretched: 1x,2x,4x.", resolve=_resolve_jitter, text=factor_text,
    )  # fmt: skip
    delay: Mapping[Any, Any] = setting(
        {}, "--delay", "Hold a rank's core before an operation: RANK@FILE:LINE#K=TIME, K counting from 0 (repeatable).",
        kind=list[str], kernels=False, read=read_delays, resolve=_resolve_delays,
        text=lambda delays: {str(k): str(delay) for k, delay in enumerate(delays)},
    )  # fmt: skip
    seed: int = setting(
        0, "--seed", "Sample of skews and tie orders.", kind=int, axis="Seeds. Default 0.", check=_check_seed
    )
    poison: bool = setting(False, "--poison", "Fill fresh memory with NaN instead of zeros.", kind=bool)
    checks: bool = setting(True, "--check", "Look for races and other findings.", kind=bool)
    timing_only: bool = setting(False, "--timing-only", "Times and traffic without moving bytes.", kind=bool)
    keep: Sequence[str] = setting((), check=_check_names)
    launch: str = setting("together", check=one_of(LAUNCHES))
    keep_trace: bool = setting(False)

    def __post_init__(self) -> None:
        for each in fields(self):
            if check := each.metadata.get("check"):
                check(each.name, getattr(self, each.name))

    @classmethod
    def settings(cls) -> tuple[Setting, ...]:
        """The simulator's own fields, in the order of the flags."""
        own = [each for each in fields(cls) if "setting" in each.metadata]
        return tuple(replace(each.metadata["setting"], name=each.name) for each in own)

    @classmethod
    def flags(cls, values: Mapping[str, Any]) -> list[str]:
        """The words of a command line that set these fields."""
        own = {s.name: s for s in cls.settings()}
        return [word for name, value in values.items() for word in own[name].words(value)]

    def with_(self, **changes) -> RunConfig:
        """A copy with some fields changed."""
        return replace(self, **changes)
