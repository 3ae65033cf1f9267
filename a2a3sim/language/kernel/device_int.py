"""Integers on the device: Python's, except that they notice where the machine would calculate differently.

``%`` and ``//`` truncate towards zero on the machine and round down in Python. A kernel that takes the
remainder of a negative number gets Python's answer here, and the run keeps a note of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from a2a3sim.language.context import current, user_site

__all__ = ["DeviceInt", "device_int", "device_ints"]


class DeviceInt(int):
    """A rank, a rank count, a loop variable, a scalar argument or a value read from memory."""

    __slots__ = ()

    def __floordiv__(self, other: int) -> Any:
        return _divided("//", self, other, int.__floordiv__(self, other))

    def __rfloordiv__(self, other: int) -> Any:
        return _divided("//", other, self, int.__rfloordiv__(self, other))

    def __mod__(self, other: int) -> Any:
        return _divided("%", self, other, int.__mod__(self, other))

    def __rmod__(self, other: int) -> Any:
        return _divided("%", other, self, int.__rmod__(self, other))

    def __divmod__(self, other: int) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: int) -> Any:
        return other // self, other % self


def _kept(name: str) -> Callable[..., Any]:
    """The operator of int whose result stays a device integer."""
    plain = getattr(int, name)

    def operator(self: int, *other: int) -> Any:
        result = plain(self, *other)
        return result if result is NotImplemented else DeviceInt(result)

    operator.__name__ = name
    return operator


for _name in ("add", "sub", "mul", "lshift", "rshift", "and", "or", "xor"):
    for _side in ("", "r"):
        setattr(DeviceInt, f"__{_side}{_name}__", _kept(f"__{_side}{_name}__"))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(DeviceInt, f"__{_name}__", _kept(f"__{_name}__"))


def _divided(symbol: str, dividend: int, divisor: int, result: int) -> Any:
    """A quotient or remainder; where C's differs, the run notes it."""
    if result is NotImplemented:
        return result
    if (dividend < 0) != (divisor < 0) and int(dividend) % int(divisor):
        context = current()
        if context is not None and context.level != "host":
            a, b = int(dividend), int(divisor)
            truncated = -(-a // b) if symbol == "//" else a - b * -(-a // b)
            context.note(
                "remainder",
                f"{a} {symbol} {b} is {int(result)} in Python but {truncated} on the machine, which "
                "rounds towards "
                f"zero: keep the left side from being negative, for example (x + {abs(b)}) {symbol} {b}",
                user_site(),
            )
    return DeviceInt(result)


_SMALL = tuple(DeviceInt(k) for k in range(1024))


def device_int(value: int) -> DeviceInt:
    """A device integer of this value."""
    return _SMALL[value] if 0 <= value < 1024 else DeviceInt(value)


class _DeviceRange(Sequence[DeviceInt]):
    """A range whose elements are device integers."""

    __slots__ = ("_values",)

    def __init__(self, values: range) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        found = self._values[index]
        return _DeviceRange(found) if isinstance(found, range) else DeviceInt(found)

    def __iter__(self) -> Iterator[DeviceInt]:
        return map(DeviceInt, self._values)


def device_ints(values: range) -> Sequence[DeviceInt]:
    """The device integers of a range."""
    if values and 0 <= values[0] < 1024 and 0 <= values[-1] < 1024 and values.step > 0:
        return _SMALL[values.start : values.stop : values.step]
    return _DeviceRange(values)
