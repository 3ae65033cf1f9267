"""Faces of packages: their names are imported when they are first used, so that a command waits for nothing else."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["lazy"]


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package (PEP 562) whose public names its last ``if``, ``if TYPE_CHECKING:``, imports.

    That block is all there is to write: type checkers and editors read it, and so does the package when the first
    name is asked for. A public name must not be that of a submodule.
    """
    places: dict[str, tuple[str, str]] = {}

    def read() -> dict[str, tuple[str, str]]:
        """The module and the name there of each public name."""
        if not places:
            source = sys.modules[package].__loader__.get_source(package)  # type: ignore[union-attr]
            blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
            for node in blocks[-1].body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    places.update({a.asname or a.name: (node.module, a.name) for a in node.names})
        return places

    def __getattr__(name: str) -> Any:
        if name.startswith("__") or name not in read():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, inner = places[name]
        value = (
            import_module(f"{package}.{inner}")
            if module == package
            else getattr(import_module(module), inner)
        )
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__, lambda: sorted(read())
