"""Which tasks of a call are over, and which wait for others because of the host tensors that they share."""

from __future__ import annotations

import numpy as np

from a2a3sim.engine import Engine, current_kernel
from a2a3sim.errors import A2A3Error
from a2a3sim.language.host.tasks import HostTask
from a2a3sim.language.host_handles import HostTensor
from a2a3sim.locate import foreign, located
from a2a3sim.run.dependences import AccessHistory

__all__ = ["HostThread", "TaskBoard"]


class TaskBoard:
    """The order of a call's tasks beyond the queues of the devices.

    Attributes:
        kernels: by finished task, (dispatch, task) of the kernels that it has run; of those before it,
            where it has run none.
    """

    def __init__(self, tasks, engine: Engine) -> None:
        self._engine = engine
        self._before: dict[int, list[int]] = {}
        self._over: set[int] = set()
        self._waiting: dict[int, list] = {}  # task -> [how many it waits for, its thread of control]
        self._followers: dict[int, list[int]] = {}
        self.kernels: dict[int, list[tuple[int, int]]] = {}
        history = AccessHistory()
        devices = [None if isinstance(t, HostTask) else t.device for t in tasks]
        for index, task in enumerate(tasks):
            used = [
                (t.buffer, t.layout, reads, writes)
                for t, reads, writes in task.function.accesses(task.args)
                if isinstance(t, HostTensor)
            ]
            before = history.enter(index, used)
            # A device's own queue is in order anyway.
            found = [b for b in sorted(before) if devices[index] is None or devices[b] != devices[index]]
            if found:
                self._before[index] = found

    def kernels_before(self, index: int) -> list[tuple[int, int]]:
        """The kernels of other devices that a task follows, also through host tasks."""
        found: dict[tuple[int, int], None] = {}
        for earlier in self._before.get(index, ()):
            found.update(dict.fromkeys(self.kernels.get(earlier, ())))
        return list(found)

    def wait_for(self, index: int) -> None:
        """Wait until a task may start as far as host tensors are concerned."""
        missing = [b for b in self._before.get(index, ()) if b not in self._over]
        if missing:
            self._waiting[index] = [len(missing), current_kernel()]
            for earlier in missing:
                self._followers.setdefault(earlier, []).append(index)
            self._engine.park(("host tensors", missing))

    def done(self, index: int) -> None:
        """A task is over."""
        self._over.add(index)
        if index not in self.kernels:
            self.kernels[index] = self.kernels_before(index)
        for follower in self._followers.pop(index, ()):
            entry = self._waiting[follower]
            entry[0] -= 1
            if entry[0] == 0:
                self._engine.wake(entry[1])


class HostThread:
    """A SubWorker function on the host; it takes no simulated time.

    Args:
        runs: the run has bytes to work on.
    """

    core = None  # as the deadlock report asks every thread of control

    def __init__(self, board: TaskBoard, task: HostTask, runs: bool) -> None:
        self.board = board
        self.task = task
        self.runs = runs

    def main(self) -> None:
        """Wait for the tensors, run, tell the others."""
        np.seterr(all="ignore")
        task, who = self.task, f"sub-worker {self.task.function.name}"
        self.board.wait_for(task.index)
        if self.runs:
            try:
                task.run()
            except A2A3Error as error:
                located(error, who)
                raise
            except Exception as error:
                raise foreign(error, who) from error
        self.board.done(task.index)
