"""Tensors that live on devices between the calls of a worker."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.dynamic import dim_value
from a2a3sim.language.host_handles import HostBuffer, HostTensor
from a2a3sim.language.layout import Layout, row_major
from a2a3sim.language.types import DataType

__all__ = ["DeviceTensor", "StackedDeviceTensor"]


class DeviceTensor:
    """A tensor in the memory of one of a worker's devices.

    Attributes:
        shape, dtype: extents in elements and element type.
        worker_id: rank of the device.
    """

    def __init__(self, number: int, shape: tuple[int, ...], dtype: DataType, worker_id: int) -> None:
        self.shape = tuple(dim_value(s) for s in shape)
        if not self.shape or any(s <= 0 for s in self.shape):
            raise InvalidOperationError(
                f"extents of a device tensor must be positive, got {list(self.shape)}"
            )
        self.dtype = dtype
        self.worker_id = worker_id
        self.name = f"device_tensor_{number}"
        self.freed = False
        self.array = np.zeros(self.shape, dtype.numpy)
        self._buffer = HostBuffer(self.name, self.array)
        self._buffer.resident = worker_id

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(prod(self.shape) * self.dtype.itemsize)

    def handle(self) -> HostTensor:
        """The tensor as an argument of a call.

        Raises:
            InvalidOperationError: it has been freed.
        """
        if self.freed:
            raise InvalidOperationError(f"{self.name} has been freed")
        strides = row_major(self.shape, self.dtype.itemsize)
        return HostTensor(self._buffer, Layout(self.name, self.shape, self.dtype, 0, strides))

    def __repr__(self) -> str:
        return f"<DeviceTensor {list(self.shape)} {self.dtype!r} on rank {self.worker_id}>"


class StackedDeviceTensor:
    """One device tensor for each of several ranks; a program's ``x[r]`` is the r-th of them.

    Attributes:
        shape: (number of shards, extents of a shard).
    """

    def __init__(self, shards: list[DeviceTensor]) -> None:
        self.shards = shards
        self.shape = (len(shards), *shards[0].shape)
        self.dtype = shards[0].dtype

    @property
    def worker_ids(self) -> list[int]:
        """The rank of each shard."""
        return [s.worker_id for s in self.shards]

    def __getitem__(self, index: int) -> DeviceTensor:
        return self.shards[index]

    def handle(self) -> StackedTensor:
        """The tensor as an argument of a call."""
        return StackedTensor([s.handle() for s in self.shards], self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"<StackedDeviceTensor {list(self.shape)} {self.dtype!r} on ranks {self.worker_ids}>"


class StackedTensor(HostTensor):
    """A stacked device tensor in a host body: only its shards can be passed on."""

    __slots__ = ("shards",)

    def __init__(self, shards: list[HostTensor], shape: tuple[int, ...], dtype: DataType) -> None:
        self.shards = shards
        buffer = HostBuffer("stacked_device_tensor", np.zeros(0, dtype.numpy))
        buffer.resident = -1  # nowhere as a whole
        super().__init__(
            buffer, Layout(buffer.name, tuple(shape), dtype, 0, row_major(shape, dtype.itemsize))
        )

    def __getitem__(self, key: Any) -> Any:
        first, *rest = key if isinstance(key, tuple) else (key,)
        if isinstance(first, slice):
            raise InvalidOperationError(
                f"{self.name}: its first subscript must be the number of a shard, got {first}"
            )
        index = dim_value(first)
        if not 0 <= index < len(self.shards):
            raise InvalidOperationError(f"{self.name} has shards 0..{len(self.shards) - 1}, got {index}")
        return self.shards[index][tuple(rest)] if rest else self.shards[index]

    def numpy(self) -> np.ndarray:
        """The shards' values, copied."""
        return np.stack([s.numpy() for s in self.shards])
