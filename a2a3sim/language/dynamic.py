"""``pl.dynamic``: dimensions whose value is known when a function is called.

A dynamic dimension stands in annotations (also inside expressions) and, in bodies, as the number that it
is bound to. Each call of a function binds the names in its annotations from the shapes of its own
arguments; a stack per kernel keeps the bindings apart.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

from a2a3sim.errors import InvalidOperationError

__all__ = ["Dim", "bound", "dim_value", "dynamic", "present_bindings", "unify"]

_bindings: ContextVar[dict[str, int] | None] = ContextVar("dynamic dimensions", default=None)

Bindings: TypeAlias = dict[str, int]
_Operator: TypeAlias = Callable[[Any, Any], Any]


class Dim:
    """A dynamic dimension or an arithmetic expression with one."""

    __slots__ = ("_compute", "names", "text")

    def __init__(self, text: str, compute: Callable[[Bindings], int], names: tuple[str, ...]) -> None:
        self.text = text
        self._compute = compute
        self.names = names

    def value(self, bindings: Bindings | None = None) -> int:
        """The number it stands for; InvalidOperationError if a name is not bound here."""
        if bindings is None:
            bindings = _bindings.get()
        missing = [n for n in self.names if bindings is None or n not in bindings]
        if missing:
            raise InvalidOperationError(
                f"dynamic dimension {missing[0]!r} has no value here: no argument of the running "
                "function has it"
            )
        return self._compute(bindings)  # type: ignore[arg-type]  # None only where it has no names

    def __index__(self) -> int:
        return self.value()

    __int__ = __index__

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return self.value() != 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim) and self.text == other.text:
            return True
        return bool(self.value() == _number(other))

    def __hash__(self) -> int:
        return hash(self.value())

    def __lt__(self, other: Any) -> bool:
        return bool(self.value() < _number(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.value() <= _number(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value() > _number(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.value() >= _number(other))

    def __neg__(self) -> Dim:
        return Dim(f"-{self.text}", lambda b: -self._compute(b), self.names)


def _number(value: Any) -> Any:
    return value.value() if isinstance(value, Dim) else value


def _binary(symbol: str, op: _Operator) -> tuple[_Operator, _Operator]:
    def forward(self: Dim, other: Any) -> Any:
        return _combine(symbol, op, self, other)

    def backward(self: Dim, other: Any) -> Any:
        return _combine(symbol, op, other, self)

    return forward, backward


def _combine(symbol: str, op: _Operator, a: Any, b: Any) -> Any:
    names = tuple(dict.fromkeys((*getattr(a, "names", ()), *getattr(b, "names", ()))))
    bindings = _bindings.get()
    if bindings is not None and all(n in bindings for n in names):
        return op(_number(a), _number(b))

    def compute(bindings: Bindings) -> Any:
        left = a._compute(bindings) if isinstance(a, Dim) else a
        right = b._compute(bindings) if isinstance(b, Dim) else b
        return op(left, right)

    return Dim(f"({a!r} {symbol} {b!r})", compute, names)


for _symbol, _name, _op in (
    ("+", "add", operator.add),
    ("-", "sub", operator.sub),
    ("*", "mul", operator.mul),
    ("//", "floordiv", operator.floordiv),
    ("%", "mod", operator.mod),
):
    _forward, _backward = _binary(_symbol, _op)
    setattr(Dim, f"__{_name}__", _forward)
    setattr(Dim, f"__r{_name}__", _backward)


def dynamic(name: str) -> Dim:
    """A dynamic dimension, ``NR = pl.dynamic("NR")``.

    Raises:
        InvalidOperationError: if the name is not an identifier.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidOperationError(f"pl.dynamic: name must be an identifier, got {name!r}")
    return Dim(name, lambda bindings: bindings[name], (name,))


def dim_value(value: Any) -> int:
    """A dimension, offset or count as a plain int.

    Raises:
        InvalidOperationError: if it is not an integer.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidOperationError(f"expected an integer, got {value!r}") from None


def unify(dims: Sequence[Any], shape: Sequence[int], bindings: Bindings) -> str | None:
    """Bind the plain names in ``dims`` from ``shape``; returns what does not fit, or None."""
    if len(dims) != len(shape):
        return f"rank {len(shape)} instead of {len(dims)}"
    for dim, size in zip(dims, shape, strict=True):
        plain = isinstance(dim, Dim) and dim.names == (dim.text,)
        if plain and bindings.setdefault(dim.text, size) != size:
            return f"{dim.text} = {size} where another argument says {bindings[dim.text]}"
    return None


def present_bindings() -> Bindings:
    """The bindings in force."""
    return _bindings.get() or {}


class bound:
    """Context manager: the bindings in force while a function's body runs."""

    __slots__ = ("_bindings", "_token")

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings

    def __enter__(self) -> None:
        self._token = _bindings.set(self._bindings)

    def __exit__(self, *_exc: object) -> None:
        _bindings.reset(self._token)
