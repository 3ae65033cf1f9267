"""A compiled program: bound to devices, called with tensors, keeping the result of its last run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from a2a3sim.config import DistributedConfig, RunConfig, check_backend
from a2a3sim.errors import SelectionError
from a2a3sim.language.host.functions import Function
from a2a3sim.run.call_arguments import CallArguments
from a2a3sim.run.calls import run_call
from a2a3sim.run.fabrics import Fabrics
from a2a3sim.units import nearest

if TYPE_CHECKING:
    from a2a3sim.result import RunResult
    from a2a3sim.trace.record import Trace

__all__ = ["CompiledProgram"]


class CompiledProgram:
    """A program without host body, bound to one device; the base of
    `a2a3sim.run.compile.DistributedCompiledProgram`.

    ``compiled[name]`` and ``compiled.name`` select one of several orchestrations.

    Attributes:
        name: the program's.
        output_dir: the directory of this compilation.
        platform: PyPTO's name of what it was compiled for.
        last_run: the `RunResult` of the last call, also of one that raised.
        last_trace: its `a2a3sim.trace.Trace`; None before it, and unless ``RunConfig(keep_trace=True)`` was asked for.
        last_call: the call itself, to be made again (`a2a3sim.run.rerun.Call`), where a session asks for that.
        fabrics: what its calls on equal machines share, outside of a session.
        facts: what a closed form knows about this program (`a2a3sim.kernels`): algorithm, bytes_per_rank,
            dtype, bound (from the platform).
        scalars: values of scalar parameters that a call may leave away.
    """

    def __init__(
        self, name: str, entries: list[Function], owner, platform: str, distributed, output_dir: Path
    ) -> None:
        self.name = name
        self.entries = entries
        self.owner = owner
        self.platform = platform
        self.distributed_config = distributed or DistributedConfig()
        self.output_dir = output_dir
        self.last_run: RunResult | None = None
        self.last_trace: Trace | None = None
        self.last_call: Any = None
        self.fabrics = Fabrics()
        self.facts: dict = {}
        self.scalars: dict = {}

    @property
    def entry(self) -> Function:
        """Where a call starts.

        Raises:
            SelectionError: the program has several orchestrations.
        """
        if len(self.entries) != 1:
            names = ", ".join(f.name for f in self.entries)
            raise SelectionError(
                f"{self.name} has several orchestrations ({names}): select one explicitly, compiled[name]"
            )
        return self.entries[0]

    def __getitem__(self, name: str) -> CompiledProgram:
        for entry in self.entries:
            if entry.name == name:
                return type(self)(
                    name, [entry], self.owner, self.platform, self.distributed_config, self.output_dir
                )
        known = [f.name for f in self.entries]
        raise KeyError(
            f"{self.name} has no orchestration {name!r}{nearest(str(name), known)}: {', '.join(known)}"
        )

    def __getattr__(self, name: str):
        if not name.startswith("_") and any(f.name == name for f in self.__dict__.get("entries", ())):
            return self[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def devices(self, config: RunConfig) -> tuple[list[int], int]:
        """Labels of the devices of a run, and its number of sub-workers."""
        return [config.device_id], 0

    def __call__(self, *args, config: RunConfig | None = None, golden=None):
        """Run the program on numpy arrays or torch CPU tensors, in place.

        Args:
            golden: an array, or a tuple in the order of the Out and InOut parameters; the comparison is in
                ``last_run.numerics``.

        Returns:
            None with all arguments given. With the Out arguments left away: the Out arrays, freshly made.

        Raises:
            InvalidOperationError: wrong number or kind of arguments.
            KernelError, DeadlockError: what the program did wrong.
            ConfigError: the machine or a setting is wrong.
        """
        config = config or RunConfig(platform=self.platform)
        check_backend(config.platform)
        entry = self.entry
        arguments = CallArguments(self.name, entry, args, self.scalars)
        if config.codegen_only:
            return None
        return run_call(self, entry, arguments, config, golden)

    def __repr__(self) -> str:
        return f"<compiled program {self.name}>"
