"""``ir.compile``: a program is bound to devices, for single calls or for a worker's."""

from __future__ import annotations

import os
import time
from pathlib import Path

from a2a3sim.config import RunConfig, check_backend
from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.host.functions import Function
from a2a3sim.language.host.program import Program
from a2a3sim.run.compiled import CompiledProgram
from a2a3sim.run.worker import DistributedWorker

__all__ = ["DistributedCompiledProgram", "bound_program", "compile_program", "output_directory"]


class DistributedCompiledProgram(CompiledProgram):
    """A program with a host body, bound to several devices."""

    def devices(self, config: RunConfig) -> tuple[list[int], int]:
        """Device labels and number of sub-workers of a run: the call's, else the compile-time ones."""
        distributed = config.distributed_config or self.distributed_config
        return list(distributed.device_ids), distributed.num_sub_workers

    def prepare(
        self,
        config: RunConfig | None = None,
        *,
        extra_compiled=(),
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks=None,
        sub_worker_overrides=None,
        startup_timeout_s: float | None = None,
    ):
        """A worker that keeps the devices for many calls; see `DistributedWorker`."""
        return DistributedWorker(
            [self, *extra_compiled],
            config,
            persistent=persistent,
            reset_persistent_windows=reset_persistent_windows,
            callbacks=callbacks,
            sub_worker_overrides=sub_worker_overrides,
            startup_timeout_s=startup_timeout_s,
        )

    def __repr__(self) -> str:
        return f"<compiled program {self.name} on devices {list(self.distributed_config.device_ids)}>"


def output_directory(name: str, output_dir=None) -> Path:
    """A compilation's directory, created: ``$PYPTO_PROG_BUILD_DIR`` or ``build_output``, name and time."""
    if output_dir is not None:
        path = Path(output_dir)
    else:
        base = Path(os.environ.get("PYPTO_PROG_BUILD_DIR") or "build_output")
        stamp = time.strftime("%Y%m%d_%H%M%S")
        path = base / f"{name}_{stamp}"
        count = 1
        while path.exists():
            path = base / f"{name}_{stamp}_{count}"
            count += 1
    path.mkdir(parents=True, exist_ok=True)
    return path


def bound_program(
    name: str, entries: list[Function], owner, platform, distributed, output_dir=None
) -> CompiledProgram:
    """A compiled program of the kind that its entry asks for.

    Raises:
        ConfigError: a platform that does not run here.
    """
    platform = platform or "a2a3sim"
    check_backend(platform)
    kind = DistributedCompiledProgram if entries[0].kind == "host" else CompiledProgram
    return kind(name, entries, owner, platform, distributed, output_directory(name, output_dir))


def compile_program(
    program,
    output_dir=None,
    *,
    strategy=None,
    dump_passes=False,
    backend_type=None,
    skip_ptoas=False,
    profiling=False,
    platform=None,
    distributed_config=None,
    **options,
) -> CompiledProgram:
    """``ir.compile``: bind a program to devices.

    Options that steer the vendor's code generation are accepted and mean nothing here.

    Raises:
        InvalidOperationError: not a program.
        ConfigError: a platform that does not run here.
    """
    if not isinstance(program, Program):
        raise InvalidOperationError(f"ir.compile takes a program (a class with @pl.program), got {program!r}")
    return bound_program(program.name, program.entries, program, platform, distributed_config, output_dir)
