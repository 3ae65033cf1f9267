"""The tensors that a worker keeps on its devices between calls."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.host.arguments import as_array
from a2a3sim.language.host.device_tensors import DeviceTensor, StackedDeviceTensor
from a2a3sim.language.types import as_dtype

__all__ = ["TensorOwner"]


class TensorOwner:
    """Allocates, fills and frees device tensors; a worker is one."""

    def __init__(self) -> None:
        self._owned_tensors: dict[int, DeviceTensor] = {}
        self._w = SimpleNamespace(_next_alloc_id=0)

    def _check_open(self, what: str) -> None:
        raise NotImplementedError

    def _labels(self) -> list[int] | None:
        raise NotImplementedError

    def _advance(self, frame) -> None:
        raise NotImplementedError

    def alloc_tensor(self, shape, dtype, *, init=None, worker_id: int = 0) -> DeviceTensor:
        """A tensor in the memory of one device, zero or a copy of ``init``.

        Args:
            dtype: of torch, numpy or the language.
            worker_id: rank of the device.

        Raises:
            InvalidOperationError: no such rank, or ``init`` does not fit.
        """
        self._check_open("alloc_tensor")
        ranks = len(self._labels() or ())
        if not 0 <= worker_id < ranks:
            raise InvalidOperationError(f"worker_id must be a rank in [0, {ranks}), got {worker_id!r}")
        number = self._w._next_alloc_id
        tensor = DeviceTensor(number, shape, as_dtype(dtype), worker_id)
        if init is not None:
            _copy(tensor.array, as_array(init, "init"), "init")
        self._w._next_alloc_id = number + 1
        self._owned_tensors[id(tensor)] = tensor
        return tensor

    def free_tensor(self, tensor: DeviceTensor) -> None:
        """Give a device tensor back.

        Raises:
            InvalidOperationError: it is not this worker's, or freed already.
        """
        self._check_open("free_tensor")
        if self._owned_tensors.pop(id(tensor), None) is None:
            raise InvalidOperationError(f"{tensor!r} is no tensor of this worker, or it has been freed")
        tensor.freed = True

    def alloc_stacked_tensor(self, host, worker_ids: Iterable[int] | None = None) -> StackedDeviceTensor:
        """``host[k]`` on the k-th of ``worker_ids`` (default: rank k)."""
        self._check_open("alloc_stacked_tensor")
        array = as_array(host, "host")
        ids = list(range(array.shape[0]) if worker_ids is None else worker_ids)
        if array.ndim < 2 or array.shape[0] != len(ids):
            raise InvalidOperationError(
                f"host must have one leading index for each of the ranks {ids}, got shape {list(array.shape)}"
            )
        shards = [
            self.alloc_tensor(part.shape, array.dtype, init=part, worker_id=k)
            for part, k in zip(array, ids, strict=True)
        ]
        return StackedDeviceTensor(shards)

    def copy_stacked_from(self, host, stacked: StackedDeviceTensor) -> None:
        """Copy all shards back to a host array (the arguments may also stand the other way round)."""
        self._check_open("copy_stacked_from")
        if isinstance(host, StackedDeviceTensor):
            host, stacked = stacked, host
        array = as_array(host, "host")
        if array.shape != stacked.shape:
            raise InvalidOperationError(
                f"host must have shape {list(stacked.shape)}, got {list(array.shape)}"
            )
        for k, shard in enumerate(stacked.shards):
            _copy(array[k], shard.array, "the shard")

    def free_stacked_tensor(self, stacked: StackedDeviceTensor) -> None:
        """Give all shards back."""
        for shard in stacked.shards:
            self.free_tensor(shard)

    def copy_to(self, tensor: DeviceTensor, host) -> None:
        """Copy a host array to a device tensor."""
        self._check_open("copy_to")
        if isinstance(host, DeviceTensor):
            tensor, host = host, tensor
        self._advance(None)
        _copy(self._owned(tensor).array, as_array(host, "host"), "host")

    def copy_from(self, host, tensor: DeviceTensor) -> None:
        """Copy a device tensor to a host array."""
        self._check_open("copy_from")
        if isinstance(host, DeviceTensor):
            tensor, host = host, tensor
        self._advance(None)
        _copy(as_array(host, "host"), self._owned(tensor).array, "the device tensor")

    def _owned(self, tensor) -> DeviceTensor:
        if id(tensor) not in self._owned_tensors:
            raise InvalidOperationError(f"{tensor!r} is no tensor of this worker, or it has been freed")
        return tensor

    def release_inherited_host_tensor_refs(self) -> None:
        """Forget the tensors given as ``inherited_host_tensors``."""
        self._inherited: list[Any] = []

    def _free_all(self) -> None:
        for tensor in self._owned_tensors.values():
            tensor.freed = True
        self._owned_tensors.clear()


def _copy(target, source, what: str) -> None:
    if target.shape != source.shape or target.dtype != source.dtype:
        raise InvalidOperationError(
            f"{what} must have shape {list(target.shape)} and dtype {target.dtype}, got "
            f"{list(source.shape)} {source.dtype}"
        )
    target[...] = source
