"""Programs written for PyPTO, unmodified: this front end answers to its module names while they run."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

from a2a3sim.errors import A2A3Error, ConfigError
from a2a3sim.run.settings import Session, current_session, session

__all__ = ["aliases", "run_script"]

# PyPTO's modules and where their names come from: "*" takes a whole module, else name -> "module:name".
_ERRORS = {
    name: f"a2a3sim.errors:{name}"
    for name in (
        "InternalError",
        "InvalidOperationError",
        "ParserError",
        "ParserSyntaxError",
        "ParserTypeError",
    )
}
_WORKER = {
    name: f"a2a3sim.run.worker:{name}"
    for name in ("DeviceTensor", "DistributedWorker", "StackedDeviceTensor", "WorkerHandle")
}
_PROGRAMS = {
    "CompiledProgram": "a2a3sim.run.compiled:CompiledProgram",
    "DistributedCompiledProgram": "a2a3sim.run.compile:DistributedCompiledProgram",
    "DistributedConfig": "a2a3sim.config:DistributedConfig",
}
_TYPES = {
    name: f"a2a3sim.language.types:{name}"
    for name in ("DataType", "FunctionType", "Level", "MemorySpace", "Role")
}
_RUN = {"RunConfig": "a2a3sim.config:RunConfig"}

_MODULES: dict[str, dict[str, str] | str] = {
    "pypto": {**_ERRORS, **_TYPES},
    "pypto.language": "a2a3sim.language",
    "pypto.language.distributed": "a2a3sim.language.distributed",
    "pypto.language.parser": {},
    "pypto.language.parser.diagnostics": _ERRORS,
    "pypto.language.parser.diagnostics.exceptions": _ERRORS,
    "pypto.ir": {
        "compile": "a2a3sim.ir:compile",
        **_PROGRAMS,
        **_TYPES,
        "Program": "a2a3sim.language.host.program:Program",
    },
    "pypto.ir.compiled_program": _PROGRAMS,
    "pypto.ir.distributed_compiled_program": _PROGRAMS,
    "pypto.runtime": {**_RUN, **_WORKER, "DistributedConfig": "a2a3sim.config:DistributedConfig"},
    "pypto.runtime.runner": _RUN,
    "pypto.runtime.distributed_runner": {
        **_WORKER,
        "_tensor_from_continuous": "a2a3sim.run.worker:_tensor_from_continuous",
    },
    "pypto.runtime.distributed_worker": _WORKER,
    "pypto.runtime.device_tensor": _WORKER,
    "pypto.jit": {
        "JITFunction": "a2a3sim.jit:JITFunction",
        "RUNTIME": "a2a3sim.jit:RUNTIME",
        "jit": "a2a3sim.jit:jit",
    },
    "pypto.jit.decorator": {"JITFunction": "a2a3sim.jit:JITFunction", "jit": "a2a3sim.jit:jit"},
}


class _Alias(ModuleType):
    """A PyPTO module whose names are looked up here when they are first used."""

    def __init__(self, name: str, names: dict[str, str]) -> None:
        super().__init__(name, f"PyPTO's {name}, answered by a2a3sim.")
        self._names = names
        self.__path__: list[str] = []  # a package without files: what is not listed does not exist

    def __getattr__(self, name: str):
        names = self.__dict__.get("_names", {})
        if name not in names:
            raise AttributeError(
                f"{self.__name__} has no {name!r} in the simulator; it has {', '.join(sorted(names))}"
            )
        module, _, attribute = names[name].partition(":")
        value = getattr(import_module(module), attribute)
        setattr(self, name, value)
        return value


def _is_ours(name: str) -> bool:
    return name == "pypto" or name.startswith("pypto.")


@contextmanager
def aliases() -> Iterator[None]:
    """PyPTO's module names mean this front end, even where a real PyPTO is installed."""
    before = {name: module for name, module in sys.modules.items() if _is_ours(name)}
    for name in before:
        del sys.modules[name]
    made = {
        name: import_module(names) if isinstance(names, str) else _Alias(name, names)
        for name, names in _MODULES.items()
    }
    for name, module in made.items():
        parent, _, child = name.rpartition(".")
        if parent and isinstance(made[parent], _Alias):
            setattr(made[parent], child, module)
    sys.modules.update(made)
    try:
        yield
    finally:
        for name in [n for n in sys.modules if _is_ours(n)]:
            del sys.modules[name]
        sys.modules.update(before)


@contextmanager
def _as_main(path: Path, argv: Sequence[str]) -> Iterator[dict]:
    """The namespace of a script as if started by ``python path argv…``; all is put back afterwards."""
    main = ModuleType("__main__")
    main.__file__ = str(path)
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    kept = sys.argv, sys.path[:], sys.modules["__main__"], set(sys.modules)
    sys.argv = [str(path), *argv]
    sys.path.insert(0, str(path.parent))
    sys.modules["__main__"] = main
    try:
        yield main.__dict__
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"], names = kept
        for name in set(sys.modules) - names:
            # Helpers beside the script: the next script may have others of the same name.
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(path.parent) and not name.startswith("a2a3sim"):
                del sys.modules[name]


def _status(code) -> int:
    """The exit status of a SystemExit."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def run_script(path: str | os.PathLike, argv: Sequence[str] = (), on_run: Callable | None = None) -> int:
    """Run a PyPTO program as ``__main__`` and return its exit status.

    Args:
        argv: its arguments.
        on_run: called with (compiled program, RunResult, Trace) after each run that it makes.

    Raises:
        A2A3Error: what the simulator found and the script did not catch.
        ConfigError: the script cannot be read.
    """
    file = Path(path).absolute()
    try:
        source = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"script {os.fspath(path)} cannot be read: {error.strerror}") from None
    outer = current_session()
    observers = [*(outer.observers if outer else []), *([on_run] if on_run else [])]
    imposed = replace(outer, observers=observers) if outer else Session({}, observers)
    with aliases(), _as_main(file, argv) as namespace, session(imposed):
        try:
            exec(compile(source, str(file), "exec"), namespace)
        except SystemExit as end:
            return _status(end.code)
        except A2A3Error:
            raise
        except Exception as error:
            _print_traceback(error)
            return 1
        finally:
            sys.stdout.flush()
    return 0


def _print_traceback(error: Exception) -> None:
    """As Python prints it, without the frames that started the script."""
    trace = error.__traceback__
    if trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)
