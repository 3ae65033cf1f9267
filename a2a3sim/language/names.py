"""Names that are not here: unsupported ones say so when used, unknown ones name the nearest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.operations import UNSUPPORTED, find, names_of
from a2a3sim.units import nearest

__all__ = ["Namespace", "Unsupported", "look_up"]


class Unsupported:
    """Stands for a name that is not simulated.

    Raises:
        InvalidOperationError: as soon as it is called, entered or subscripted.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise InvalidOperationError(f"{self._name} is not supported by the simulator")

    __call__ = __getitem__ = __enter__ = __exit__ = _refuse

    def __getattr__(self, name: str) -> Unsupported:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unsupported(f"{self._name}.{name}")

    def __repr__(self) -> str:
        return f"<{self._name}, which is not supported>"


def look_up(space: str, name: str, known: Iterable[str]) -> Any:
    """What a program gets for a name: an operation, or an `Unsupported` for a name that only PyPTO has.

    Args:
        known: what to suggest from where nobody knows the name.

    Raises:
        AttributeError: nobody knows it.
    """
    operation = find(f"{space}.{name}")
    if operation is not None:
        return operation.resolve()
    if name in UNSUPPORTED.get(space, ()):
        return Unsupported(f"{space}.{name}")
    raise AttributeError(f"{space} has no {name!r}{nearest(name, known)}")


class Namespace:
    """A group of operations, such as ``pl.tile``; each is looked up when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = look_up(self._name, name, names_of(self._name))
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return names_of(self._name)

    def __repr__(self) -> str:
        return f"<{self._name}>"
