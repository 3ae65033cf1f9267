"""``pl.array``: a few numbers in the scalar unit's registers."""

from __future__ import annotations

from typing import Any, SupportsIndex

from a2a3sim.errors import InvalidOperationError, KernelError
from a2a3sim.language.context import device_context, user_site
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.kernel.device_int import device_int
from a2a3sim.language.types import TASK_ID, DataType, as_dtype

__all__ = ["Array", "create"]

_UNDEFINED = 0x7FFF  # what an element holds that nobody wrote


class Array:
    """A fixed number of integers, booleans or task ids; ``arr[i]`` reads, ``arr[i] = v`` writes."""

    __slots__ = ("_values", "dtype")

    def __init__(self, size: int, dtype: DataType) -> None:
        self.dtype = dtype
        self._values: list[Any] = [None] * size

    def __len__(self) -> int:
        return len(self._values)

    def _index(self, at: SupportsIndex) -> int:
        index = dim_value(at)
        if not 0 <= index < len(self._values):
            raise KernelError(
                f"out of bounds: array element {index}, but the array holds [0, {len(self._values)})"
            )
        return index

    def __getitem__(self, index: SupportsIndex) -> Any:
        value = self._values[self._index(index)]
        if value is None:
            device_context("pl.array").note(
                "undefined",
                f"array element {int(index)} is read before anything was written to it",
                user_site(),
            )
            return device_int(_UNDEFINED)
        return value

    def __setitem__(self, at: SupportsIndex, value: Any) -> None:
        index = self._index(at)
        if self.dtype is TASK_ID:
            self._values[index] = value
        elif self.dtype.name == "bool":
            self._values[index] = bool(value)
        else:
            self._values[index] = device_int(self.dtype.numpy.type(dim_value(value)).item())

    def written(self) -> list[Any]:
        """The elements that have a value."""
        return [value for value in self._values if value is not None]

    def __repr__(self) -> str:
        return f"<array of {len(self._values)} {self.dtype!r}>"


def create(size: SupportsIndex, dtype: Any) -> Array:
    """An array of ``size`` elements, undefined until written.

    Raises:
        InvalidOperationError: a size that is not positive, or a floating dtype.
    """
    what = "pl.array.create"
    number = dim_value(size)
    if number <= 0:
        raise InvalidOperationError(f"{what}: size must be positive, got {number}")
    kind = dtype if dtype is TASK_ID else as_dtype(dtype)
    if kind is not TASK_ID and kind.floating:
        raise InvalidOperationError(f"{what}: dtype must be an integer, BOOL or TASK_ID, got {kind!r}")
    device_context(what)
    return Array(number, kind)
