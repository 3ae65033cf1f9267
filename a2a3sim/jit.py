"""The function form: ``@pl.jit.host`` entries, ``@pl.jit`` per device, ``@pl.jit.incore`` kernels."""

from __future__ import annotations

from a2a3sim.compiled import DistributedCompiledProgram, output_directory
from a2a3sim.config import RunConfig
from a2a3sim.errors import InvalidOperationError
from a2a3sim.frontend.context import current
from a2a3sim.frontend.program import Function

__all__ = ["JITFunction", "jit"]


class JITFunction(Function):
    """A function that compiles itself for its arguments when called from Python."""

    def __init__(self, fn, kind: str) -> None:
        super().__init__(fn, kind, method=False, jit=True)
        self._compiled: dict[tuple, DistributedCompiledProgram] = {}

    def compile(self, *samples, config: RunConfig | None = None, **scalars) -> DistributedCompiledProgram:
        """Bind the program to devices without running it.

        Args:
            samples: tensors of the shapes it will be called with, or none (then every parameter must declare its).

        Raises:
            InvalidOperationError: no samples and a parameter without declared shape.
        """
        config = config or RunConfig()
        if not samples:
            for p in self.parameters:
                if p.type is not None and p.type.kind != "scalar" and p.type.dims is None:
                    raise InvalidOperationError(
                        f"{self.name}.compile() without sample tensors needs declared shapes: {p.name} is bare"
                    )
        elif len(samples) > len(self.parameters):
            raise InvalidOperationError(
                f"{self.name} takes {len(self.parameters)} arguments, got {len(samples)} samples"
            )
        directory = output_directory(self.name)
        return DistributedCompiledProgram(
            self.name, self, None, config.platform, config.distributed_config, directory
        )

    def __call__(self, *args, config: RunConfig | None = None, **kwargs):
        if current() is not None:
            return self.call(None, args, kwargs)
        config = config or RunConfig()
        key = (
            config.platform,
            tuple(config.distributed_config.device_ids) if config.distributed_config else None,
            tuple((tuple(getattr(a, "shape", ())), str(getattr(a, "dtype", type(a)))) for a in args),
        )
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self.compile(*args, config=config)
        self.last = compiled
        return compiled(*args, config=config)

    @property
    def last_run(self):
        """The result of the last call from Python."""
        return self.last.last_run


class _Jit:
    """``pl.jit`` and its variants, each usable bare or with parentheses."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __call__(self, func=None, *, auto_scope=True, level=None):
        def make(fn):
            return JITFunction(fn, self._kind)

        return make if func is None else make(func)


class _JitRoot(_Jit):
    host = _Jit("host")
    incore = _Jit("kernel")
    inline = _Jit("inline")
    opaque = _Jit("kernel")


jit = _JitRoot("orchestration")
