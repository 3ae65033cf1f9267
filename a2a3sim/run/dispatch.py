"""One rank's device: it works off its dispatches, one at a time, and runs their kernels on its cores."""

from __future__ import annotations

from typing import Literal

import numpy as np

from a2a3sim.engine import Kernel, current_kernel
from a2a3sim.errors import A2A3Error, InvalidOperationError
from a2a3sim.language.context import Note, enter, leave
from a2a3sim.language.handles import Tensor
from a2a3sim.language.host.recording import Dispatch
from a2a3sim.language.layout import Layout, row_major
from a2a3sim.locate import foreign, located
from a2a3sim.run.dependences import AccessHistory
from a2a3sim.run.kernel_run import KernelRun
from a2a3sim.trace.record import DispatchRecord

__all__ = ["Device", "Orchestration"]


class Device:
    """One rank's device.

    Attributes:
        core: the core that runs on this thread of control, for the deadlock report.
        last: the operation that ended last on this device.
    """

    def __init__(self, launch, rank: int, tasks: list[Dispatch]) -> None:
        self.launch = launch
        self.rank = rank
        self.tasks = tasks
        self.core = None
        self.last = None
        self.before: list[tuple] = []  # (dispatch, task) of the kernels of the dispatch before
        self._busy: set[int] = set()  # cores

    def sleep_until(self, time: int) -> None:
        """Let the clock reach a time."""
        engine = self.launch.engine
        if engine.now < time:
            engine.at(time, engine.wake, current_kernel())
            engine.park("launch")

    def take_cores(self, count: int) -> list[int]:
        """The lowest free cores; beyond the device's number only for what needs no core of its own."""
        found: list[int] = []
        core = 0
        while len(found) < count:
            if core not in self._busy:
                found.append(core)
            core += 1
        self._busy.update(found)
        return found

    def give_cores(self, cores: list[int]) -> None:
        """Cores are free again."""
        self._busy.difference_update(cores)

    def main(self) -> None:
        """Work off the queue."""
        launch = self.launch
        costs, settings = launch.platform.launch, launch.settings
        np.seterr(all="ignore")  # this greenlet's own setting: overflow is data, not news
        origin = launch.origin
        for position, task in enumerate(self.tasks):
            launch.tasks.wait_for(task.index)
            begin = launch.engine.now + costs.device
            if settings.launch == "dispatch":
                begin = max(begin, origin + task.index * costs.dispatch + costs.device)
            if position == 0:
                begin += launch.skew_of(self.rank)
            self.sleep_until(begin)
            try:
                Orchestration(self, task).run()
            except A2A3Error as error:
                launch.failed(self.rank, 0, error)
                return
            launch.tasks.done(task.index)


class _Task:
    """A kernel of an orchestration, numbered in program order."""

    __slots__ = ("joined_by", "missing", "name", "number", "over", "parked", "successors", "thread")

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.over = False
        self.missing = 0  # tasks that it still waits for
        self.parked = False  # its thread has got as far as to wait for them
        self.successors: list[_Task] = []
        self.thread: Kernel
        self.joined_by: Kernel | None = None  # the thread that waits for its end


class Orchestration:
    """A dispatched function on its device: the context in which it calls kernels.

    Attributes:
        blocks: cores of the next kernel (`pl.spmd`).
        manual: inside of `pl.manual_scope`.
        tasks: kernels so far.
    """

    level: Literal["orchestration"] = "orchestration"

    def __init__(self, device: Device, task: Dispatch) -> None:
        self.device = device
        self.launch = device.launch
        self.task = task
        self.blocks = task.blocks
        self.manual = False
        self.tasks = 0
        self.record = DispatchRecord(
            task.index,
            task.function.name,
            device.rank,
            self.launch.placement[device.rank],
            call=self.launch.call,
        )
        self.launch.trace.dispatches.append(self.record)
        self._history = AccessHistory()
        self._submitted: dict[int, _Task] = {}
        self._joined: set[int] = set()  # tasks whose results the orchestration itself has used
        # Everything that ran before this dispatch is over, as far as its own tasks are concerned.
        self._before = [*device.before, *self.launch.tasks.kernels_before(task.index)]

    # ---- the body ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the orchestration's body, and wait for the tasks that it left running."""
        task, rank = self.task, self.device.rank
        args = tuple(self.launch.handle(a, rank) for a in task.args)
        token = enter(self)
        try:
            function = task.function
            if function.kind == "kernel":
                self.run_kernel(function, task.owner, args)
            else:
                function.run(task.owner, function.bind(args))
            self._join(self._submitted)
        except A2A3Error as error:
            located(error, f"rank {rank}")
            raise
        except Exception as error:
            raise foreign(error, f"rank {rank}") from error
        finally:
            leave(token)
        if self.tasks:
            self.device.before = [(task.index, number) for number in range(self.tasks)]
            self.launch.tasks.kernels[task.index] = self.device.before

    def remember(self, note: Note) -> None:
        """Keep a note for the checks, once per place and rank."""
        self.launch.notes.setdefault((note.kind, note.site, note.rank), note)

    def note(self, kind: str, message: str, site: tuple) -> None:
        """Remember something that the orchestration itself did."""
        self.remember(Note(kind, message, site, self.device.rank, None, self.launch.engine.now))

    def created(self, name: str, shape, dtype) -> Tensor:
        """A new tensor in this device's memory."""
        nbytes = dtype.itemsize
        for size in shape:
            nbytes *= size
        memory = self.launch.scratch(name, self.device.rank, nbytes)
        return Tensor(memory, Layout(memory.name, tuple(shape), dtype, 0, row_major(shape, dtype.itemsize)))

    # ---- kernels ----------------------------------------------------------------------------------

    def run_kernel(self, function, owner, args, keep=None):
        """Run a kernel on as many cores as `pl.spmd` says and wait for its end.

        Args:
            keep: of a block's local names those that the code after it uses.
        """

        def body(_ctx):
            return function.run(owner, function.bind(args))

        return self._run(function.name, body, self._accesses(function, args), keep)

    def run_small(self, name: str, body, accesses, site, joins: bool = False):
        """Run ``body(context)`` as a kernel of its own on one core.

        Args:
            accesses: (tensor, reads, writes) of each tensor that it uses.
            site: the user's line that its operations carry.
            joins: the orchestration uses its result, so all later kernels follow it.
        """

        def at_site(ctx):
            ctx.site = site
            return body(ctx)

        blocks, self.blocks = self.blocks, 1
        try:
            number = self.tasks
            used = [(t.memory, t.layout, reads, writes) for t, reads, writes in accesses]
            result = self._run(name, at_site, used, None)
        finally:
            self.blocks = blocks
        if joins:
            self._joined.add(number)
        return result

    @staticmethod
    def _accesses(function, args) -> list[tuple]:
        return [(t.memory, t.layout, reads, writes) for t, reads, writes in function.accesses(args)]

    def _enter(self, name: str, accesses, deps=(), manual: bool = False) -> tuple[_Task, set[int]]:
        """Number a kernel and say which earlier ones precede it, to it and to the checks."""
        number = self.tasks
        self.tasks += 1
        shared = self._history.enter(number, accesses)
        before = set(deps) if manual else {*shared, *deps}
        edges, index = self.launch.trace.edges, self.task.index
        if self._before:
            edges += [(earlier, (index, number)) for earlier in self._before]
        edges += [((index, earlier), (index, number)) for earlier in sorted(before | self._joined)]
        return _Task(number, name), before

    def _run(self, name: str, body, accesses, keep):
        task, before = self._enter(name, accesses)
        self._join(before)
        return KernelRun(self, task, name, body, self.blocks, keep).run()

    def submit(self, block, args, deps) -> int:
        """Start a block's kernel once the tasks before it are over, and go on; returns its number.

        Args:
            deps: `TaskId`s that must be over; in an automatic scope also those whose tensors it uses.
        """
        for dep in deps:
            if dep.number not in self._submitted:
                raise InvalidOperationError(
                    f"pl.at: deps names task {dep.name}, which is not of this orchestration"
                )
        blocks = self.blocks
        if block.defers and blocks != 1:
            raise InvalidOperationError("pld.system.defer_wait: its task has no core, so it takes no pl.spmd")
        task, before = self._enter(
            block.name, self._accesses(block, args), [d.number for d in deps], self.manual
        )

        def body(_ctx):
            return block.run(None, block.bind(args))

        kernel = KernelRun(self, task, block.name, body, blocks, (), block.defers)
        for number in sorted(before):
            earlier = self._submitted.get(number)
            if earlier is not None and not earlier.over:
                earlier.successors.append(task)
                task.missing += 1
        self._submitted[task.number] = task
        task.thread = self.launch.engine.spawn(kernel.main, kernel)
        return task.number

    def _join(self, numbers) -> None:
        """Wait until submitted tasks are over."""
        for number in numbers:
            task = self._submitted.get(number)
            while task is not None and not task.over:
                task.joined_by = current_kernel()
                self.launch.engine.park(("task", task.name))

    def finished(self, task: _Task) -> None:
        """A submitted task is over: whoever waits for it goes on."""
        engine = self.launch.engine
        task.over = True
        if task.joined_by is not None:
            engine.wake(task.joined_by)
        for successor in task.successors:
            successor.missing -= 1
            if successor.missing == 0 and successor.parked:
                engine.wake(successor.thread)
