"""Names that are not here: unsupported ones say so when used, unknown ones name the nearest."""

from __future__ import annotations

from types import SimpleNamespace

from a2a3sim.errors import InvalidOperationError
from a2a3sim.units import nearest

__all__ = ["UNSUPPORTED", "Namespace", "Unsupported", "unknown_name"]

#: PyPTO's names that no distributed program uses and that are not simulated.
UNSUPPORTED = {
    "pl": (
        "cluster",
        "cond",
        "func_attr",
        "incore",
        "mgather",
        "mscatter",
        "pipeline",
        "scope",
        "split_aic",
        "split_aiv",
        "static_assert",
        "static_print",
        "submit",
        "while_",
    ),
    "pl.jit": ("extern",),
    "pld.system": ("test", "wait_until"),
}


class Unsupported:
    """Stands for a name that is not simulated.

    Raises:
        InvalidOperationError: as soon as it is called, entered or subscripted.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *_args, **_kwargs):
        raise InvalidOperationError(f"{self._name} is not supported by the simulator")

    __call__ = __getitem__ = __enter__ = __exit__ = _refuse

    def __getattr__(self, name: str) -> Unsupported:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unsupported(f"{self._name}.{name}")

    def __repr__(self) -> str:
        return f"<{self._name}, which is not supported>"


def unknown_name(space: str, name: str, known):
    """An `Unsupported` for a name that PyPTO has.

    Raises:
        AttributeError: nobody knows the name; the nearest known one is named.
    """
    if name in UNSUPPORTED.get(space, ()):
        return Unsupported(f"{space}.{name}")
    raise AttributeError(f"{space} has no {name!r}{nearest(name, known)}")


class Namespace(SimpleNamespace):
    """A group of operations, such as ``pl.tile``."""

    def __init__(self, name: str, **operations) -> None:
        super().__init__(**operations)
        object.__setattr__(self, "_name", name)

    def __getattr__(self, name: str):
        if name.startswith("__") or name == "_name":
            raise AttributeError(name)
        return unknown_name(self._name, name, [n for n in vars(self) if n != "_name"])

    def __repr__(self) -> str:
        return f"<{self._name}>"
