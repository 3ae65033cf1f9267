"""The one place that translates operations of the language into demands on the hardware.

Each function builds the record of an operation, says which bytes it touches, which path its bytes take and
what becomes of them, and hands it to the core. Public functions of the language check their arguments and
come here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from a2a3sim.errors import KernelError
from a2a3sim.language.context import KernelContext
from a2a3sim.language.handles import Holes, Tensor, Tile
from a2a3sim.language.kernel import undefined
from a2a3sim.language.layout import Region
from a2a3sim.language.types import INT32, DataType
from a2a3sim.models.memory import Access, Memory
from a2a3sim.models.operation import Move, Operation, Signal, Site, Vector
from a2a3sim.models.ub import TileLife, TileSpace

__all__ = [
    "copy", "empty", "fill", "load", "notify", "read_scalar", "store", "vector", "wait", "write_scalar",
]  # fmt: skip


_new = tuple.__new__  # a NamedTuple's own constructor costs more than the operation's arithmetic


def _accesses(memory: Memory, region: Region) -> tuple[Access, ...]:
    spans = region.spans
    if len(spans) == 1:
        return (_new(Access, (memory, *spans[0])),)
    return tuple([_new(Access, (memory, *span)) for span in spans])


def _take_space(ub: TileSpace, op: Operation, tile: Tile, operands: tuple[TileLife, ...] = ()) -> None:
    """A new tile's place in UB.

    Raises:
        KernelError: the tile alone exceeds UB.
    """
    limit = ub.limit
    if op.makes > limit:
        raise KernelError(
            f"capacity: {op.kind} makes a tile {list(tile.shape)} {tile.dtype!r} of {op.makes} B, but UB holds "
            f"{limit} B for tiles: move it in chunks of at most {limit // tile.dtype.itemsize} elements"
        )
    tile.life = ub.take(op, op.makes, operands)


def _check_row(align: int, kind: str, shape: tuple[int, ...], dtype: DataType) -> None:
    """KernelError if the machine has no tiles with such rows; columns, ``[k, 1]``, and copies it stages otherwise."""
    columns = shape[-1]
    row = columns * dtype.itemsize
    if row % align and columns != 1 and kind not in ("put", "get"):
        fits = -(-row // align) * align // dtype.itemsize
        raise KernelError(
            f"alignment: {kind} makes a tile {list(shape)} of {dtype!r}, whose row of {row} B is no multiple of {align} B: "
            f"let its last extent be {fits} (with valid_shape= for what is used of it)"
        )


def _nbytes(shape: tuple[int, ...], dtype: DataType) -> int:
    nbytes: int = dtype.itemsize
    for size in shape:
        nbytes *= size
    return nbytes


def load(
    ctx: KernelContext,
    site: Site,
    kind: str,
    tensor: Tensor,
    region: Region,
    shape: tuple[int, ...],
    peer: int | None,
    staged: tuple[Tile, Operation] | None = None,
) -> Tile:
    """MTE2: a rectangle of global memory, local or (``peer`` given) remote, becomes a tile.

    Args:
        region: what is read.
        shape: the tile's allocated extents; larger than the region where only part of it is valid.
        staged: of a later chunk of a copy, the tile whose place it takes and the store that empties that.
    """
    op = Move(ctx.lane, kind, "MTE2", ctx.site or site)
    memory = tensor.memory
    spans = region.spans
    op.reads = (_new(Access, (memory, *spans[0])),) if len(spans) == 1 else _accesses(memory, region)
    op.nbytes = region.nbytes
    op.peer = peer
    op.path = ctx.loads[memory.device]
    dtype = tensor.layout.dtype
    valid = region.shape[-len(shape) :]
    tile = Tile(shape, dtype, op, valid)
    array = tensor.array
    if array is not None:
        index = region.index
        filled = None if valid == shape else tuple(slice(0, v) for v in valid)

        def take() -> None:
            if filled is None:
                tile.data = array[index].reshape(shape).copy()
            else:
                tile.data = np.zeros(shape, dtype.numpy)
                tile.data[filled] = array[index].reshape(valid)
            if memory.written is not None:
                tile.holes = undefined.taken(tensor, region, shape, valid)

        op.work = take
    if ctx.row is not None:
        _check_row(ctx.row, kind, shape, dtype)
    ub = ctx.ub
    if staged is None:
        op.makes = region.nbytes if valid == shape else _nbytes(shape, dtype)
        if ub is not None:
            _take_space(ub, op, tile)
    else:
        before, op.staged = staged
        tile.life = before.life
    if ub is not None:
        ub.use(op, (tile.life,))
    ctx.core.issue(op)
    return tile


def store(
    ctx: KernelContext,
    site: Site,
    kind: str,
    tile: Tile,
    tensor: Tensor,
    region: Region,
    peer: int | None,
    add: bool,
    holds: bool = True,
) -> Operation:
    """MTE3: a tile's valid part goes to a rectangle of global memory, replacing or adding.

    Args:
        holds: the next statement waits until a window's bytes are visible, where the run's fences say so.
    """
    op = Move(ctx.lane, kind, "MTE3", ctx.site or site)
    memory = tensor.memory
    op.writes = _accesses(memory, region)
    op.nbytes = region.nbytes
    op.peer = peer
    op.atomic = add
    op.path = ctx.machine.fabric.store(ctx.device, memory.device)
    op.deps = op.operands = (tile.op,)
    op.work = _deposit(ctx, op, tile, tensor, region, add)
    core, ub = ctx.core, ctx.ub
    if ub is not None:
        ub.use(op, (tile.life,))
    core.issue(op)
    if holds and ctx.strict and memory.kind == "window":
        core.hold(op)
    return op


def _deposit(
    ctx: KernelContext, op: Move, tile: Tile, tensor: Tensor, region: Region, add: bool
) -> Callable[[], None] | None:
    """What a store does to memory at its visibility instant; None where no bytes are kept."""
    array, memory = tensor.array, tensor.memory
    if array is None:
        if memory.kind == "window" and tensor.layout.dtype is INT32 and memory.lose(region.spans):
            raise _unkept(tensor, "a tile is stored to its signal cells")
        return None
    valid = None if tile.valid == tile.shape else tuple(slice(0, v) for v in tile.valid)
    index, shape = region.index, tuple(s.stop - s.start for s in region.index)
    signals = ctx.machine.signals

    def put_down() -> None:
        data = tile.data
        if data is None:
            error = KernelError(
                f"{memory.name} keeps its bytes in this timing-only run, but a tile without bytes is stored to it"
            )
            error.site, error.lane = op.site, op.lane  # raised by the machine, not under the user's frame
            raise error
        if valid is not None:
            data = data[valid]
        if add:
            array[index] += data.reshape(shape)
        else:
            array[index] = data.reshape(shape)
        if memory.written is not None or tile.holes is not None:
            undefined.deposited(ctx, op, tile, tensor, region, valid, add)
        if memory.signal:
            signals.stored(memory)

    return put_down


def vector(
    ctx: KernelContext, site: Site, instr: str, dtype: DataType, shape: tuple[int, ...], operands: tuple[Tile, ...],
    compute: Callable[[], Any], valid: tuple[int, ...] | None = None, extent: tuple[int, ...] | None = None,
    holes: Callable[[Vector], Holes | None] | None = None,
) -> Tile:  # fmt: skip
    """V: ``compute()`` gives the result's array from the operands' data; in timing-only runs it is not called.

    Args:
        extent: what the instruction works on, where that is not the result's ``shape``.
        holes: what is undefined of the result where an instruction merely copies; others use all their operands.
    """
    op = Vector(ctx.lane, instr, "V", ctx.site or site)
    tile = Tile(shape, dtype, op, valid)
    widest = dtype
    for operand in operands:
        if operand.dtype.itemsize > widest.itemsize:
            widest = operand.dtype
    cost = ctx.vector.get((instr, widest, extent or shape))
    op.value = ctx.machine.vector_ps(ctx.device, instr, widest, extent or shape) if cost is None else cost
    op.deps = op.operands = tuple([t.op for t in operands])
    if ctx.bytes:

        def work() -> None:
            whole = True
            for operand in operands:
                if operand.data is None:
                    return
                if operand.holes is not None:
                    whole = False
            tile.data = compute()
            if not whole:
                if holes is None:
                    undefined.used(ctx, op, operands)
                else:
                    tile.holes = holes(op)

        op.work = work
    if ctx.row is not None:
        _check_row(ctx.row, instr, shape, dtype)
    op.makes = _nbytes(shape, dtype)
    ub = ctx.ub
    if ub is not None:
        lives = tuple([t.life for t in operands])
        _take_space(ub, op, tile, lives)
        ub.use(op, (*lives, tile.life))
    ctx.core.issue(op)
    return tile


def fill(ctx: KernelContext, site: Site, shape: tuple[int, ...], dtype: DataType, value: Any) -> Tile:
    """V: a tile of one value."""
    return vector(ctx, site, "fill", dtype, shape, (), lambda: np.full(shape, value, dtype.numpy))


def empty(ctx: KernelContext, site: Site, shape: tuple[int, ...], dtype: DataType) -> Tile:
    """A tile that nothing has been put into; making it takes no time."""
    op = Vector(ctx.lane, "create", "S", ctx.site or site)
    tile = Tile(shape, dtype, op)
    if ctx.bytes:
        tile.data = ctx.task.launch.fresh(shape, dtype)
        tile.holes = Holes(np.ones(shape, np.bool_), "a tile")
    if ctx.row is not None:
        _check_row(ctx.row, "pl.tile.create", shape, dtype)
    op.makes = _nbytes(shape, dtype)
    if ctx.ub is not None:
        _take_space(ctx.ub, op, tile)
    ctx.core.mark(op)
    return tile


def copy(
    ctx: KernelContext,
    site: Site,
    kind: str,
    source: Tensor,
    source_peer: int | None,
    target: Tensor,
    target_peer: int | None,
    chunks: list[tuple[Region, Region, tuple[int, ...]]],
    pipelined: bool,
    add: bool,
) -> None:
    """``put`` and ``get``: chunk by chunk through a staging tile in UB, a load and a store each.

    Without ``pipelined`` there is one staging tile, so a chunk's load waits until the previous chunk's bytes
    have left it; with it there are two. Only the last chunk's acknowledgement is waited for.

    Args:
        chunks: list of (source region, target region, staging shape).
    """
    staging: list[tuple[Tile, Operation]] = []
    tiles = 2 if pipelined else 1
    for k, (from_, to, shape) in enumerate(chunks):
        staged = staging[k - tiles] if k >= tiles else None
        tile = load(ctx, site, kind, source, from_, shape, source_peer, staged)
        staging.append((tile, store(ctx, site, kind, tile, target, to, target_peer, add, holds=False)))
    if ctx.strict:
        # With several moves in flight a small last chunk may be there before the one ahead of it.
        for _, give in reversed(staging):
            ctx.core.hold(give)


def read_scalar(ctx: KernelContext, site: Site, tensor: Tensor, region: Region) -> int | float:
    """S: a blocking load of one element of the device's own memory."""
    memory, array, layout = tensor.memory, tensor.array, tensor.layout
    if array is None and memory.data is not None:
        # Signal cells of a timing-only run appeared after this view was made.
        array = memory.typed(layout.dtype.numpy, layout.base, layout.shape, layout.strides)
    if array is None or (tensor.array is None and memory.lost(region.spans[0][0])):
        raise _unkept(tensor, "the program reads a scalar from it")
    op = Move(ctx.lane, "read", "S", ctx.site or site)
    op.reads = _accesses(memory, region)
    op.nbytes = region.nbytes
    op.path = ctx.machine.fabric.load(ctx.device, memory.device)
    index = tuple(s.start for s in region.index)
    found = []
    op.work = lambda: found.append(array[index])
    core = ctx.core
    core.read(op)
    if core.polling.long and ctx.machine.only_polls():
        raise KernelError(
            f"livelock: the program reads {tensor.name} over and over, but nothing is on its way that could change "
            "what it reads: wait for a notify, or let somebody write it"
        )
    if memory.written is not None:
        undefined.read(ctx, site, tensor, index)
    number: int | float = found[0].item()
    return number


def _unkept(tensor: Tensor, what: str) -> KernelError:
    return KernelError(
        f"a timing-only run keeps no bytes of {tensor.name}, but {what}: name it in keep=[{tensor.name!r}] or run "
        "with bytes"
    )


def write_scalar(ctx: KernelContext, site: Site, tensor: Tensor, region: Region, value: Any) -> None:
    """S: a store of one element of the device's own memory; waits until it is visible."""
    memory = tensor.memory
    op = Move(ctx.lane, "write", "S", ctx.site or site)
    op.writes = _accesses(memory, region)
    op.nbytes = region.nbytes
    op.path = ctx.machine.fabric.store(ctx.device, memory.device)
    array = tensor.array
    if array is not None:
        index, signals = tuple(s.start for s in region.index), ctx.machine.signals

        def put_down() -> None:
            array[index] = value
            if memory.written is not None:
                undefined.written(tensor, index)
            if memory.signal:
                signals.stored(memory)

        op.work = put_down
    elif memory.kind == "window" and tensor.layout.dtype is INT32:
        # It may be a signal cell, which has a value also where no bytes are kept.
        def put_down() -> None:
            memory.cells()[region.spans[0][0] >> 2] = int(value)
            if memory.signal:
                ctx.machine.signals.stored(memory)

        op.work = put_down
    core = ctx.core
    core.sync()
    core.issue(op)
    core.hold(op)


def notify(
    ctx: KernelContext, site: Site, target: Tensor, offset: int, peer: int, value: int, add: bool
) -> None:
    """S: a signal to the cell at a byte offset of a rank's slice; it travels one latency and is applied there."""
    op = Signal(ctx.lane, "notify", "S", ctx.site or site)
    memory = target.memory
    if not memory.signal:
        memory.signal, memory.cell_shape = True, target.layout.shape
    op.cell = (memory, offset)
    op.action = "add" if add else "set"
    op.value = value
    op.peer = peer
    ctx.core.notify(op, ctx.latencies[memory.device], memory.device == ctx.device)


def wait(ctx: KernelContext, site: Site, signal: Tensor, offset: int, value: int, at_least: bool) -> None:
    """S: block until the cell at a byte offset of the own slice satisfies the comparison."""
    op = Signal(ctx.lane, "wait", "S", ctx.site or site)
    memory = signal.memory
    if not memory.signal:
        memory.signal, memory.cell_shape = True, signal.layout.shape
    op.cell = (memory, offset)
    if signal.array is None and memory.look(offset):
        raise _unkept(signal, "a tile was stored to the cell for which the program waits")
    op.action = "ge" if at_least else "eq"
    op.value = value
    ctx.core.wait(op)
