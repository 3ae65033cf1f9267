"""What a run keeps in each device's memory: windows, tensors of its arguments, tensors that it makes."""

from __future__ import annotations

from a2a3sim.errors import KernelError
from a2a3sim.language.host.tasks import HostTask
from a2a3sim.language.host_handles import HostTensor
from a2a3sim.units import format_size

__all__ = ["Residency"]

_WINDOW = 512  # bytes: where a window may begin
_SHOWN = 3  # objects named


class Residency:
    """The bytes of each rank's device that are taken.

    Args:
        limit: of a device's memory, bytes; None: no limit.
    """

    def __init__(self, recording, limit: int | None) -> None:
        self.limit = limit
        self._held: dict[int, dict[str, int]] = {}
        if limit is not None:
            self._enter(recording)

    def _enter(self, recording) -> None:
        for buffer in recording.buffers:
            for rank in buffer.devices:
                self._add(rank, f"window {buffer.name}", -(-buffer.nbytes // _WINDOW) * _WINDOW)
        seen = set()
        for task in recording.tasks:
            if isinstance(task, HostTask):
                continue
            for arg in task.args:
                if isinstance(arg, HostTensor):
                    layout = arg.layout
                    key = (task.device, id(arg.buffer), layout.base, layout.shape)
                    if key not in seen:
                        seen.add(key)
                        nbytes = layout.dtype.itemsize
                        for size in layout.shape:
                            nbytes *= size
                        self._add(task.device, f"tensor {arg.buffer.name}", nbytes)

    def _add(self, rank: int, name: str, nbytes: int) -> None:
        held = self._held.setdefault(rank, {})
        held[name] = held.get(name, 0) + nbytes

    def check(self) -> None:
        """KernelError if windows and arguments do not fit."""
        for rank in sorted(self._held):
            self._check(rank)

    def take(self, rank: int, name: str, nbytes: int) -> None:
        """The program makes a tensor on a rank's device; KernelError if there is no room for it."""
        if self.limit is not None:
            self._add(rank, f"tensor {name}", nbytes)
            self._check(rank)

    def _check(self, rank: int) -> None:
        held = self._held[rank]
        total = sum(held.values())
        if self.limit is None or total <= self.limit:
            return
        largest = sorted(held.items(), key=lambda item: (-item[1], item[0]))
        named = ", ".join(f"{name} {format_size(nbytes)}" for name, nbytes in largest[:_SHOWN])
        more = f" and {len(largest) - _SHOWN} more" if len(largest) > _SHOWN else ""
        raise KernelError(
            f"capacity: rank {rank} needs {format_size(total)} ({total} B: {named}{more}), but a device has "
            f"{format_size(self.limit)} ({self.limit} B) of memory"
        )
