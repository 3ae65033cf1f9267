"""The function form: ``@pl.jit.host`` entries, ``@pl.jit`` per device, ``@pl.jit.incore`` kernels."""

from __future__ import annotations

from a2a3sim.config import RunConfig
from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.context import current
from a2a3sim.language.host.arguments import as_array, is_scalar
from a2a3sim.language.host.functions import Function
from a2a3sim.language.host.program import Program
from a2a3sim.language.names import look_up
from a2a3sim.run.compile import bound_program
from a2a3sim.run.compiled import CompiledProgram

__all__ = ["RUNTIME", "JITFunction", "jit"]

_KEPT = 32  # compiled programs of one function, by the shapes of its arguments


class _Runtime:
    """``pl.RUNTIME``: a scalar whose value comes with the call, not with ``compile``."""

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME = _Runtime()


class JITFunction(Function):
    """A function that compiles itself for its arguments when called from Python."""

    def __init__(self, fn, declared: str) -> None:
        super().__init__(fn, declared, method=False, jit=True)
        self._compiled: dict[tuple, CompiledProgram] = {}
        self._last: CompiledProgram | None = None

    def compile(self, *samples, config: RunConfig | None = None, **scalars) -> CompiledProgram:
        """Bind the program to devices without running it.

        Args:
            samples: tensors of the shapes it will be called with, or none: then its annotations say them.
            scalars: values of scalar parameters that calls may then leave away; `RUNTIME` leaves one open.

        Raises:
            InvalidOperationError: no samples and a tensor without declared shape, or what does not fit.
        """
        config = config or RunConfig()
        names = [p.name for p in self.parameters]
        for name in scalars:
            if name not in names or self.parameters[names.index(name)].tensor:
                raise InvalidOperationError(
                    f"{self.name}.compile(): {name} is no scalar parameter; it takes {', '.join(names)}"
                )
        if len(samples) > len(self.parameters):
            raise InvalidOperationError(
                f"{self.name} takes {len(self.parameters)} arguments ({', '.join(names)}), got "
                f"{len(samples)} samples"
            )
        for sample, parameter in zip(samples, self.parameters, strict=False):
            if not is_scalar(sample) and sample is not RUNTIME:
                as_array(sample, f"sample {parameter.name} of {self.name}")
        if all(is_scalar(s) for s in samples):
            for p in self.parameters:
                if p.tensor and p.type is not None and p.type.dims is None:
                    raise InvalidOperationError(
                        f"{self.name}.compile() without sample tensors needs declared shapes: {p.name} "
                        "is bare"
                    )
        compiled = bound_program(self.name, [self], None, config.platform, config.distributed_config)
        compiled.scalars = {k: v for k, v in scalars.items() if v is not RUNTIME}
        return compiled

    def lower(self, *_samples, config: RunConfig | None = None, **_scalars) -> Program:
        """The program that ``compile`` would bind: this function and all that it calls."""
        found: dict[str, Function] = {}
        pending: list[Function] = [self]
        while pending:
            function = pending.pop(0)
            if function.name not in found:
                found[function.name] = function
                pending += function.callees()
        return Program(self.name, found, {})

    def __call__(self, *args, config: RunConfig | None = None, **kwargs):
        if current() is not None:
            return self.call(None, args, kwargs)
        if kwargs:
            args = self._positional(args, kwargs)
        config = config or RunConfig()
        distributed = config.distributed_config
        key = (
            config.platform,
            None if distributed is None else (tuple(distributed.device_ids), distributed.num_sub_workers),
            tuple((tuple(getattr(a, "shape", ())), str(getattr(a, "dtype", type(a)))) for a in args),
        )
        compiled = self._compiled.pop(key, None) or self.compile(*args, config=config)
        self._compiled[key] = compiled  # the last used one stands last
        if len(self._compiled) > _KEPT:
            del self._compiled[next(iter(self._compiled))]
        self._last = compiled
        return compiled(*args, config=config)

    @property
    def last_run(self):
        """The result of the last call from Python, None before the first."""
        return None if self._last is None else self._last.last_run


class _Jit:
    """``pl.jit`` and its variants, each usable bare or with parentheses."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __call__(self, func=None, *, auto_scope=True, level=None):
        def make(fn):
            return JITFunction(fn, self._kind)

        return make if func is None else make(func)


class _JitRoot(_Jit):
    """``@pl.jit``: a function that compiles itself for the arguments it is called with.

    ``@pl.jit.host`` marks the entry on the host, ``@pl.jit`` what runs once per device, ``@pl.jit.incore`` a kernel;
    ``@pl.jit.inline`` is code of its caller, ``@pl.jit.opaque`` the same as ``@pl.jit``.
    """

    host = _Jit("host")
    incore = _Jit("kernel")
    inline = _Jit("inline")
    opaque = _Jit("opaque")

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return look_up("pl.jit", name, ("host", "incore", "inline", "opaque"))


jit = _JitRoot("opaque")
