"""One kernel of an orchestration while it runs, on one core or as blocks on several."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from a2a3sim.engine import current_kernel
from a2a3sim.errors import A2A3Error, InvalidOperationError, KernelError
from a2a3sim.language.context import KernelContext, enter, leave
from a2a3sim.language.handles import Tile
from a2a3sim.language.kernel.tensors import spill
from a2a3sim.locate import foreign, located
from a2a3sim.models.barrier import BlockBarrier
from a2a3sim.models.operation import Lane
from a2a3sim.trace.kinds import kind_of

__all__ = ["KernelRun"]


class KernelRun:
    """One kernel of an orchestration on one or several cores.

    Args:
        body: the kernel's code, given its context.
        keep: a block's names whose values outlive it (None: the body's result does).
        defers: it only holds back its task's completion.
    """

    def __init__(self, orchestration, task, name, body, blocks, keep, defers=False) -> None:
        self.orchestration = orchestration
        self.task = task
        self.name = name
        self.body = body
        self.blocks = blocks
        self.keep = keep
        self.defers = defers
        self.core = None  # for the deadlock report, while it runs as a task

    def main(self) -> None:
        """Run as a submitted task, on a thread of control of its own."""
        np.seterr(all="ignore")
        engine = self.orchestration.launch.engine
        if self.task.missing:
            self.task.parked = True
            engine.park(("task", self.name))
        try:
            self.run(self)
        except A2A3Error as error:
            self.orchestration.launch.failed(self.orchestration.device.rank, 0, error)
            return
        self.orchestration.finished(self.task)

    def run(self, shown=None):
        """Run it and wait for its end.

        Args:
            shown: whose ``core`` tells on which core this thread of control works.
        """
        orchestration = self.orchestration
        device, launch = orchestration.device, orchestration.launch
        platform, blocks = launch.platform, self.blocks
        if platform.core.count is not None and blocks > platform.core.count:
            raise KernelError(
                f"capacity: {self.name} is to run on {blocks} cores, but a device of {platform.name} has "
                f"{platform.core.count}"
            )
        start = launch.engine.now + platform.launch.device_per_core * blocks
        if self.task.number:
            start += platform.launch.task
        device.sleep_until(start)
        group = BlockBarrier(launch.engine, blocks, platform.core.sync if blocks > 1 else 0)
        place, record = launch.placement[device.rank], orchestration.record
        record.cores = max(record.cores, blocks)
        if record.start < 0:
            record.start = start
        cores = device.take_cores(blocks)
        runs = []
        for block, number in enumerate(cores):
            lane = Lane(
                index=len(launch.trace.lanes),
                call=record.call,
                dispatch=record.index,
                task=self.task.number,
                device=place,
                rank=device.rank,
                core=number,
                kernel=self.name,
                block=block,
                blocks=blocks,
            )
            launch.trace.lanes.append(lane)
            core = launch.machine.core(lane, start)
            if device.last is not None:
                core.after = ("dispatch", device.last)
            context = KernelContext(launch.machine, core, lane, place, launch.bytes, group, orchestration)
            context.deferred = 0 if self.defers else None
            runs.append(_Block(self, context))
        if blocks == 1:
            shown = shown or device
            shown.core = runs[0].core
            result = runs[0].run()
            shown.core = None
        else:
            result = self._run_blocks(runs)
        device.give_cores(cores)
        last = max((r.context.lane for r in runs), key=lambda lane: lane.end)
        if last.operations:
            device.last = last.last[1] if last.last[1] is not None else last.operations[-1]
        record.end = max(record.end, launch.engine.now)
        return result

    def _run_blocks(self, runs: list[_Block]):
        engine, waiting = self.orchestration.launch.engine, current_kernel()
        left = len(runs)

        def finished() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                engine.wake(waiting)

        for run in runs:
            run.finished = finished
            engine.spawn(run.main, run)
        engine.park("the blocks of its kernel")
        return runs[0].result


class _Block:
    """One block of a kernel on one core."""

    finished: Callable[[], None]  # to be called at the end of `main`

    def __init__(self, kernel: KernelRun, context: KernelContext) -> None:
        self.kernel = kernel
        self.context = context
        self.result = None

    @property
    def core(self):
        """The core on which it runs."""
        return self.context.core

    def run(self):
        """Run the kernel's code on the current thread of control."""
        context = self.context
        core = context.core
        core.kernel = current_kernel()
        rank = context.lane.rank
        token = enter(context)
        try:
            self.result = self._outlasting(self.kernel.body(context))
            core.finish()
            return self.result
        except A2A3Error as error:
            located(error, f"rank {rank}")
            raise
        except Exception as error:
            raise foreign(error, f"rank {rank}") from error
        finally:
            leave(token)

    def _outlasting(self, result):
        """Tiles do not outlive their kernel: what leaves it is stored into tensors."""
        lane = self.context.lane
        if self.kernel.defers and not all(kind_of(op.kind).waits for op in lane.operations):
            raise InvalidOperationError(
                f"pld.system.defer_wait: needs a pl.at block of its own, but {self.kernel.name} does "
                "other work too"
            )
        keep = self.kernel.keep
        if keep is not None:
            result = {name: result[name] for name in keep if name in result}
        named = result.items() if isinstance(result, dict) else ((self.kernel.name, result),)
        if any(isinstance(value, Tile) for _, value in named):
            stored = {n: spill(self.context, v, n) if isinstance(v, Tile) else v for n, v in named}
            return stored if isinstance(result, dict) else stored[self.kernel.name]
        return result

    def main(self) -> None:
        """The same on a thread of control of its own."""
        np.seterr(all="ignore")
        try:
            self.run()
        except A2A3Error as error:
            lane = self.context.lane
            self.kernel.orchestration.launch.failed(lane.rank, lane.core, error)
            return
        self.finished()
