"""Run a recorded program on a modelled machine: all devices, each with its dispatches in order."""

from __future__ import annotations

from itertools import count

import numpy as np

from a2a3sim.engine import Engine
from a2a3sim.errors import A2A3Error
from a2a3sim.language.context import Note
from a2a3sim.language.handles import CommCtx, DistributedTensor, Tensor, Window
from a2a3sim.language.host.recording import Dispatch, Recording
from a2a3sim.language.host.tasks import HostTask
from a2a3sim.language.host_handles import HostBuffer, HostTensor, WindowView
from a2a3sim.models.machine import Machine
from a2a3sim.models.memory import Memory
from a2a3sim.models.operation import Operation
from a2a3sim.run.delays import Holds
from a2a3sim.run.dispatch import Device
from a2a3sim.run.residency import Residency
from a2a3sim.run.task_board import HostThread, TaskBoard
from a2a3sim.trace.record import Trace, resolve_site

__all__ = ["POISON", "Launch", "Residence", "skew_offset"]

POISON = np.uint16(0x7FFF)  # NaN as fp32, fp16 and bf16; 2147450879 as int32


def skew_offset(seed: int, rank: int, width: int) -> int:
    """A rank's launch offset in [0, width) ps: Philox keyed by (seed, rank), the same on every machine."""
    if width <= 0:
        return 0
    raw = np.random.Philox(key=np.array([seed, rank], np.uint64)).random_raw()
    return int(raw) * width >> 64


class Residence:
    """What a worker keeps on its devices from call to call.

    Attributes:
        clock: when the last call ended, ps.
        calls: how many there were.
        windows: by (program, index of the buffer); empty where windows do not live on.
        persistent: windows live on; ``reset``: zeroed before each call.
        history: of the checks, which see the calls of a worker as one program.
        joined: the host had waited for the call before when it submitted the next one.
    """

    def __init__(self, persistent: bool = False, reset: bool = True) -> None:
        self.clock = 0
        self.calls = 0
        self.ids = count()
        self.windows: dict[tuple, Window] = {}
        self.persistent = persistent
        self.reset = reset
        self.history = None
        self.joined = True


class Launch:
    """One run of one recording.

    Args:
        recording: with inferred domains.
        platform, topology: the machine.
        settings: resolved settings (`a2a3sim.run.settings.Settings`).
        placement: platform device of each rank.
        residence: of the worker that makes the run, if one does.
        program: whose windows these are, in a worker of several programs.
        watch: told of every operation before it is issued, and of how many its core has issued from its line.

    Attributes:
        joined: the host had waited for the worker's call before when it made this one.
        notes: what the front end noticed, for the checks, by (kind, site, rank).
        errors: (rank, core, error) of kernels that failed.
        start_cells: bytes that windows with signal cells held when the call began, where they outlived one.
    """

    def __init__(
        self,
        recording: Recording,
        platform,
        topology,
        settings,
        placement,
        residence=None,
        program=None,
        watch=None,
    ) -> None:
        self.recording = recording
        #: Their domains are inferred: no collective is left.
        self.asked: list[Dispatch | HostTask] = recording.tasks  # type: ignore[assignment]
        self.platform = platform
        self.settings = settings
        self.placement = placement
        self.residence = residence or Residence()
        self.program = program
        self.call = self.residence.calls
        self.joined = self.residence.joined
        self.origin = self.residence.clock
        self.engine = Engine(self.origin)
        slow = {placement[rank]: factor for rank, factor in settings.slow.items()}
        fabric = settings.fabrics.take(platform, topology, settings.jitter_of_links())
        holds = Holds(settings.delays, watch).of if settings.delays or watch is not None else None
        self.machine = Machine(self.engine, platform, fabric, settings.seed, settings.fences, slow, holds)
        self.trace = Trace(
            fences=settings.fences,
            skew_ps=settings.skew_ps,
            atomic_ps=platform.signal.atomic,
            kept=self.residence.persistent and not self.residence.reset,
            set_writes_line=platform.align.line is not None,
            granule=platform.align.row,
        )
        self.machine.only_polls = self._only_polls
        self.bytes = not settings.timing_only or bool(settings.keep)
        self.tasks = TaskBoard(recording.tasks, self.engine)
        self.notes: dict[tuple, Note] = {}
        self.errors: list[tuple[int, int, A2A3Error]] = []
        self.start_cells: dict[Memory, np.ndarray] = {}
        self.unwritten: dict[int, np.ndarray] = {}  # of outputs and intermediates, by id of the buffer
        self.residency = Residency(recording, platform.hbm.size)
        self._tensors: dict[tuple, Memory] = {}
        self._windows: dict[int, Window] = {}
        if settings.poison:
            self._poison_intermediates()

    # ---- memory -----------------------------------------------------------------------------------

    def _memory(self, name: str, kind: str, rank: int, nbytes: int, data, buffer=None) -> Memory:
        memory = Memory(
            next(self.residence.ids), name, kind, self.placement[rank], rank, nbytes, data, buffer
        )
        self.trace.memories.append(memory)
        return memory

    def _keeps(self, name: str) -> bool:
        return not self.settings.timing_only or name in self.settings.keep

    def fresh(self, shape, dtype) -> np.ndarray:
        """An array of fresh memory: zeros, or what ``poison`` puts there."""
        array = np.zeros(shape, dtype.numpy)
        if self.settings.poison and dtype.itemsize > 1:
            array.reshape(-1).view(np.uint16)[:] = POISON
        return array

    def _poison_intermediates(self) -> None:
        for task in self.asked:
            for arg in task.args:
                if isinstance(arg, HostTensor) and arg.buffer.created and arg.dtype.itemsize > 1:
                    arg.buffer.array.reshape(-1).view(np.uint16)[:] = POISON

    def watch_outputs(self, outputs) -> None:
        """Follow which bytes of these host buffers, and of the intermediates, devices have written.

        Call it before `run`. What functions on the host write is not followed.
        """
        if not self.settings.checks or self.settings.timing_only:
            return
        buffers = {id(b): b for b in outputs if b.resident is None}
        for task in self.asked:
            for arg in task.args:
                if isinstance(arg, HostTensor) and arg.buffer.created:
                    buffers[id(arg.buffer)] = arg.buffer
        for task in self.asked:
            if isinstance(task, HostTask):
                for tensor, _, writes in task.accesses():
                    if writes and isinstance(tensor, HostTensor):
                        buffers.pop(id(tensor.buffer), None)
        self.unwritten = {key: np.zeros(b.nbytes, np.bool_) for key, b in buffers.items()}

    def _tensor(self, rank: int, buffer: HostBuffer) -> Memory:
        key = (rank, id(buffer))
        memory = self._tensors.get(key)
        if memory is None:
            data = buffer.bytes() if self._keeps(buffer.name) else None
            kind = "created" if buffer.created else "tensor"
            memory = self._tensors[key] = self._memory(
                buffer.name, kind, rank, buffer.nbytes, data, buffer.name
            )
            memory.written = self.unwritten.get(id(buffer))
        return memory

    def scratch(self, name: str, rank: int, nbytes: int) -> Memory:
        """Memory that an orchestration or kernel asks for."""
        self.residency.take(rank, name, nbytes)
        data = None
        if self._keeps(name):
            data = np.zeros(nbytes, np.uint8)
            if self.settings.poison:
                data[: nbytes // 2 * 2].view(np.uint16)[:] = POISON
        memory = self._memory(name, "created", rank, nbytes, data)
        if self.settings.checks and not self.settings.timing_only:
            memory.written = np.zeros(nbytes, np.bool_)
        return memory

    def _window(self, buffer) -> Window:
        window = self._windows.get(buffer.index)
        if window is None:
            window = self._windows[buffer.index] = self._kept_window(buffer) or self._new_window(buffer)
            self.trace.domains[buffer.name] = buffer.devices
        return window

    def _new_window(self, buffer) -> Window:
        memories = []
        for rank in buffer.devices:
            data = None
            if self._keeps(buffer.name):
                data = np.zeros(buffer.nbytes, np.uint8)
                if self.settings.poison and not buffer.signal:
                    data[: buffer.nbytes // 2 * 2].view(np.uint16)[:] = POISON
            memories.append(self._memory(buffer.name, "window", rank, buffer.nbytes, data, buffer.name))
        window = Window(memories, buffer.devices)
        if self.residence.persistent:
            self.residence.windows[self._window_key(buffer)] = window
        return window

    def _window_key(self, buffer) -> tuple:
        return (self.program, buffer.index, buffer.nbytes, buffer.devices, self.settings.timing_only)

    def _kept_window(self, buffer) -> Window | None:
        """The window as the worker's earlier call left it, or zeroed."""
        window = self.residence.windows.get(self._window_key(buffer))
        if window is not None:
            for memory in window.memories:
                self.trace.memories.append(memory)
                if self.residence.reset:
                    memory.clear()
                elif memory.signal and memory.data is not None:
                    self.start_cells[memory] = memory.data.copy()
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

    def skew_of(self, rank: int) -> int:
        """How much later than the first a rank starts, ps."""
        return skew_offset(self.settings.seed, rank, self.settings.skew_ps)

    def run(self) -> list:
        """Simulate to the end; returns what is parked for ever (a deadlock if anything), with its ``core``.

        Raises:
            A2A3Error: what the program did wrong, with the user's line and rank.
        """
        queues: dict[int, list[Dispatch]] = {}
        host: list[HostTask] = []
        for task in self.asked:
            if isinstance(task, HostTask):
                host.append(task)
            else:
                queues.setdefault(task.device, []).append(task)
        engine = self.engine
        for rank in sorted(queues):
            device = Device(self, rank, queues[rank])
            engine.spawn(device.main, device)
        for task in host:
            thread = HostThread(self.tasks, task, self.bytes)
            engine.spawn(thread.main, thread)
        try:
            self.residency.check()
            with np.errstate(all="ignore"):
                engine.run()
            if self.errors:
                self.errors.sort(key=lambda entry: entry[:2])
                raise self.errors[0][2]
            return [kernel.context for kernel in engine.parked()]
        except A2A3Error as error:
            self._locate_late(error)
            raise
        finally:
            self.residence.clock = engine.now
            self.residence.calls += 1
            self.machine.network.close()
            self.trace.capacities = [capacity.use() for capacity in self.machine.network.used]
            self.settings.fabrics.give(self.machine.fabric)
            for kernel in engine.parked():
                if kernel.context.core is not None:
                    kernel.context.core.stop()
            engine.close()

    def failed(self, rank: int, core: int, error: A2A3Error) -> None:
        """A kernel has failed. The others go on as far as they can, so that which fail is of no schedule."""
        self.errors.append((rank, core, error))

    def _only_polls(self) -> bool:
        """Whether all that still happens is that cores read scalars over and over."""
        for kernel in self.engine.parked():
            core = kernel.context.core
            if core is None:
                if kernel.waits_for == "launch":
                    return False  # it will go on by itself
            elif core.polling.again:
                if core.running > 1:  # more than its read
                    return False
            elif core.running or not isinstance(core.parked_on, Operation):
                return False
        return not self.machine.signals.due

    @staticmethod
    def _locate_late(error: A2A3Error) -> None:
        """An error that the machine raised on behalf of an operation: say whose."""
        if error.site is not None and not error.located:
            place = resolve_site(error.site)
            error.args = (f"{place.file}:{place.line}: rank {error.lane.rank}: {error.args[0]}",)
            error.located = True
