"""Run a recorded program on a modelled machine: all devices, each with its dispatches in order."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import numpy as np

from a2a3sim.frontend.arguments import HostBuffer, HostTensor
from a2a3sim.engine import Engine, current_kernel
from a2a3sim.errors import A2A3Error, KernelError
from a2a3sim.frontend.context import KernelContext, enter, leave
from a2a3sim.frontend.handles import CommCtx, DistributedTensor, Tensor, Window
from a2a3sim.models.barrier import BlockBarrier
from a2a3sim.models.machine import Machine
from a2a3sim.models.memory import Memory
from a2a3sim.models.operation import Lane
from a2a3sim.frontend.program import bind_arguments
from a2a3sim.frontend.recording import Dispatch, Recording, WindowView
from a2a3sim.trace import DispatchRecord, Trace, resolve_site

__all__ = ["POISON", "Launch", "skew_offset"]

POISON = np.uint16(0x7FFF)  # NaN as fp32, fp16 and bf16; 2147450879 as int32
_HOME = str(Path(__file__).parent)


def skew_offset(seed: int, rank: int, width: int) -> int:
    """A rank's launch offset in [0, width) ps: Philox keyed by (seed, rank), the same on every machine."""
    if width <= 0:
        return 0
    raw = np.random.Philox(key=np.array([seed, rank], np.uint64)).random_raw()
    return int(raw) * width >> 64


class Launch:
    """One run of one recording.

    Args:
        recording: with inferred domains.
        platform, topology: the machine.
        settings: resolved settings (`a2a3sim.settings.Settings`).
        placement: platform device of each rank.
    """

    def __init__(self, recording: Recording, platform, topology, settings, placement) -> None:
        self.recording = recording
        self.platform = platform
        self.settings = settings
        self.placement = placement
        self.engine = Engine()
        slow = {placement[rank]: factor for rank, factor in settings.slow.items()}
        self.machine = Machine(self.engine, platform, topology, settings.seed, settings.fences, slow)
        self.trace = Trace(
            fences=settings.fences, skew_ps=settings.skew_ps, atomic_ps=platform.signal.atomic
        )
        self.bytes = not settings.timing_only or bool(settings.keep)
        self._tensors: dict[tuple, Memory] = {}
        self._windows: dict[int, Window] = {}
        self._names: dict[int, str] = {}

    # ---- memory -----------------------------------------------------------------------------------

    def _memory(self, name: str, kind: str, rank: int, nbytes: int, data, buffer) -> Memory:
        memory = Memory(len(self.trace.memories), name, kind, self.placement[rank], rank, nbytes, data, buffer)
        self.trace.memories.append(memory)
        return memory

    def _keeps(self, name: str) -> bool:
        return not self.settings.timing_only or name in self.settings.keep

    def _tensor(self, rank: int, buffer: HostBuffer) -> Memory:
        key = (rank, id(buffer))
        memory = self._tensors.get(key)
        if memory is None:
            data = buffer.bytes() if self._keeps(buffer.name) else None
            kind = "created" if buffer.created else "tensor"
            memory = self._tensors[key] = self._memory(buffer.name, kind, rank, buffer.nbytes, data, buffer.name)
        return memory

    def _window(self, buffer) -> Window:
        window = self._windows.get(buffer.index)
        if window is None:
            memories = []
            for rank in buffer.devices:
                data = None
                if self._keeps(buffer.name):
                    data = np.zeros(buffer.nbytes, np.uint8)
                    if self.settings.poison and not buffer.signal:
                        data[: buffer.nbytes // 2 * 2].view(np.uint16)[:] = POISON
                memories.append(self._memory(buffer.name, "window", rank, buffer.nbytes, data, buffer.name))
            window = self._windows[buffer.index] = Window(memories, buffer.devices)
            self.trace.domains[buffer.name] = buffer.devices
        return window

    def handle(self, arg, rank: int):
        """A dispatch's argument as the device sees it."""
        if isinstance(arg, HostTensor):
            return Tensor(self._tensor(rank, arg.buffer), arg.layout)
        if isinstance(arg, WindowView):
            window = self._window(arg.buffer)
            domain = CommCtx(window.domain.index(rank), len(window.domain), window.domain)
            return DistributedTensor(window, arg.layout, domain)
        return arg

    # ---- running ----------------------------------------------------------------------------------

    def run(self) -> list:
        """Simulate to the end; returns the kernels that are parked for ever (a deadlock if any).

        Raises:
            A2A3Error: what the program did wrong, with the user's line and rank.
        """
        queues: dict[int, list[Dispatch]] = {}
        for task in self.recording.tasks:
            queues.setdefault(task.device, []).append(task)
        engine = self.engine
        for rank in sorted(queues):
            device = _Device(self, rank, queues[rank])
            engine.spawn(device.main, device)
        try:
            with np.errstate(all="ignore"):
                engine.run()
            return [kernel.context for kernel in engine.parked()]
        except A2A3Error as error:
            self._locate_late(error)
            raise
        finally:
            self.machine.network.close()
            self.trace.capacities = self.machine.fabric.capacities
            engine.close()

    @staticmethod
    def _locate_late(error: A2A3Error) -> None:
        """An error that the machine raised on behalf of an operation: say whose."""
        site = getattr(error, "site", None)
        if site is not None and not getattr(error, "located", False):
            place = resolve_site(site)
            error.args = (f"{place.file}:{place.line}: rank {error.lane.rank}: {error.args[0]}",)
            error.located = True


class _Device:
    """One rank's device: it works off its dispatches, one at a time."""

    def __init__(self, launch: Launch, rank: int, tasks: list[Dispatch]) -> None:
        self.launch = launch
        self.rank = rank
        self.tasks = tasks
        self.core = None  # the core that runs on this thread of control, for the deadlock report
        self.last = None  # the operation that ended last on this device

    def sleep_until(self, time: int) -> None:
        """Let the clock reach a time."""
        engine = self.launch.engine
        if engine.now < time:
            engine.at(time, engine.wake, current_kernel())
            engine.park("launch")

    def main(self) -> None:
        """Work off the queue."""
        launch = self.launch
        costs, settings = launch.platform.launch, launch.settings
        np.seterr(all="ignore")  # this greenlet's own setting: overflow is data, not news
        for position, task in enumerate(self.tasks):
            begin = launch.engine.now + costs.device
            if settings.launch == "dispatch":
                begin = max(begin, task.index * costs.dispatch + costs.device)
            if position == 0:
                begin += skew_offset(settings.seed, self.rank, settings.skew_ps)
            self.sleep_until(begin)
            _Orchestration(self, task).run()


class _Orchestration:
    """A dispatched function on its device: the context in which it calls kernels."""

    level = "orchestration"

    def __init__(self, device: _Device, task: Dispatch) -> None:
        self.device = device
        self.launch = device.launch
        self.task = task
        self.blocks = task.blocks
        self.kernels = 0
        self.record = DispatchRecord(task.index, task.function.name, device.rank, self.launch.placement[device.rank])
        self.launch.trace.dispatches.append(self.record)

    def run(self) -> None:
        """Run the orchestration's body."""
        task = self.task
        args = [self.launch.handle(a, self.device.rank) for a in task.args]
        token = enter(self)
        try:
            task.function.run(task.owner, bind_arguments(task.function, args))
        except A2A3Error as error:
            _locate(error, self.device.rank)
            raise
        except Exception as error:
            raise _foreign(error, self.device.rank) from error
        finally:
            leave(token)

    def run_kernel(self, function, owner, args):
        """A kernel is called: run it on as many cores as `pl.spmd` says and wait for its end."""
        launch, rank = self.launch, self.device.rank
        platform = launch.platform
        blocks = self.blocks
        if platform.core.count is not None and blocks > platform.core.count:
            raise KernelError(
                f"capacity: {function.name} is to run on {blocks} cores, but a device of {platform.name} has "
                f"{platform.core.count}"
            )
        start = launch.engine.now + platform.launch.device_per_core * blocks
        if self.kernels:
            start += platform.launch.task
        self.device.sleep_until(start)
        self.kernels += 1
        group = BlockBarrier(launch.engine, blocks, platform.core.sync if blocks > 1 else 0)
        device = launch.placement[rank]
        record = self.record
        record.cores = max(record.cores, blocks)
        if record.start < 0:
            record.start = start
        runs = []
        for block in range(blocks):
            lane = Lane(
                len(launch.trace.lanes), record.call, self.task.index, self.kernels - 1, device, rank, block,
                function.name, block, blocks,
            )  # fmt: skip
            launch.trace.lanes.append(lane)
            core = launch.machine.core(lane, start)
            if self.device.last is not None:
                core.after = ("dispatch", self.device.last)
            context = KernelContext(launch.machine, core, lane, device, launch.bytes, group)
            runs.append(_Block(function, owner, args, context))
        if blocks == 1:
            self.device.core = runs[0].context.core
            result = runs[0].run()
        else:
            result = self._run_blocks(runs)
        last = max((r.context.lane for r in runs), key=lambda lane: lane.end)
        if last.operations:
            self.device.last = last.last[1] if last.last[1] is not None else last.operations[-1]
        record.end = max(record.end, launch.engine.now)
        self.device.core = None
        return result

    def _run_blocks(self, runs: list[_Block]):
        engine, waiting = self.launch.engine, current_kernel()
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

    def __init__(self, function, owner, args, context: KernelContext) -> None:
        self.function = function
        self.owner = owner
        self.args = args
        self.context = context
        self.result = None
        self.finished = None

    @property
    def core(self):
        """The core on which it runs."""
        return self.context.core

    def run(self):
        """Run the kernel's code on the current thread of control."""
        core = self.context.core
        core.kernel = current_kernel()
        token = enter(self.context)
        try:
            self.result = self.function.run(self.owner, bind_arguments(self.function, self.args))
            core.finish()
            return self.result
        except A2A3Error as error:
            _locate(error, self.context.lane.rank)
            raise
        except Exception as error:
            raise _foreign(error, self.context.lane.rank) from error
        finally:
            leave(token)

    def main(self) -> None:
        """The same on a thread of control of its own."""
        np.seterr(all="ignore")
        self.run()
        self.finished()


def _user_frame(error: BaseException):
    """The innermost frame of the traceback that is not the simulator's own code."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        if not path.startswith(_HOME) and "/models/" not in path:
            found = (path, line, frame.f_code.co_name)
    return found


def _locate(error: A2A3Error, rank: int) -> None:
    """Put file, line and rank in front of an error's message, once."""
    if getattr(error, "located", False):
        return
    if getattr(error, "site", None) is not None:
        return
    found = _user_frame(error)
    if found is not None:
        path, line, _ = found
        error.args = (f"{_shown(path)}:{line}: rank {rank}: {error.args[0] if error.args else ''}", *error.args[1:])
        error.located = True


def _foreign(error: Exception, rank: int) -> KernelError:
    """An exception of the program's own Python code."""
    found = _user_frame(error)
    where = f"{_shown(found[0])}:{found[1]}: " if found else ""
    wrapped = KernelError(f"{where}rank {rank}: the program raised {type(error).__name__}: {error}")
    wrapped.located = True
    return wrapped


def _shown(path: str) -> str:
    base = str(Path.cwd())
    return path[len(base) + 1 :] if path.startswith(base + "/") else path


