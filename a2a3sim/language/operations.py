"""The table of the language's operations: what each is called, who implements it, what it does to the machine.

Namespaces (``pl.tile``), the directions of blocks, the language reference (docs/language.md) and the tests of the
interface follow from it. A new vector instruction is its function, its line here, and its name among what machines
price (`a2a3sim.models.quantities.INSTRUCTIONS`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

__all__ = ["OPERATIONS", "UNSUPPORTED", "Operation", "arguments", "find", "names_of"]

_STATEMENT = "a window's bytes to be visible, with fences=statement"


class Operation(NamedTuple):
    """One operation.

    Attributes:
        names: what programs call it, the first before all: ``pl.load pl.tile.load``.
        where: ``module:attribute`` that implements it; modules are those of the language unless they say otherwise.
        kind: its section of the reference.
        pipe: which of a core's pipes it occupies; empty if none.
        waits: what the scalar pipe stands still for; empty if the kernel goes on at once.
        writes: the argument whose bytes in global memory it changes, as (position, name).
        signal: the argument that only stands for a signal, which orders ranks and not the tasks of a device.
        instructions: the vector instructions it issues, as machines price them (``adds``: with a scalar).
    """

    names: str
    where: str
    kind: str
    pipe: str = ""
    waits: str = ""
    writes: tuple[int, str] | None = None
    signal: tuple[int, str] | None = None
    instructions: tuple[str, ...] = ()

    def resolve(self) -> Any:
        """What implements it."""
        module, _, attribute = self.where.partition(":")
        if not module.startswith("a2a3sim."):
            module = f"a2a3sim.language.{module}"
        return getattr(import_module(module), attribute)


_O = Operation
OPERATIONS: tuple[Operation, ...] = (
    _O("pl.program", "host.program:program", "programs"),
    _O("pl.function", "host.program:function", "programs"),
    _O("pl.jit", "a2a3sim.jit:jit", "programs"),
    _O("pl.RUNTIME", "a2a3sim.jit:RUNTIME", "programs"),
    _O("pl.dynamic", "dynamic:dynamic", "programs"),
    # host bodies
    _O("pld.world_size pld.system.world_size", "host.ops:world_size", "host"),
    _O("pld.alloc_window_buffer pld.tensor.alloc_window_buffer", "host.ops:alloc_window_buffer", "host"),
    _O("pld.window pld.tensor.window", "host.ops:window", "host"),
    _O("pl.create_tensor pl.tensor.create", "kernel.tensors:create_tensor", "host"),
    # orchestrations
    _O("pl.at", "host.blocks:at", "orchestration"),
    _O("pl.manual_scope", "host.blocks:manual_scope", "orchestration"),
    _O("pl.spmd", "kernel.control:spmd", "orchestration"),
    # loops and scalars
    _O("pl.range", "kernel.loops:pl_range", "control"),
    _O("pl.parallel", "kernel.loops:parallel", "control"),
    _O("pl.unroll", "kernel.loops:unroll", "control"),
    _O("pl.yield_", "kernel.loops:yield_", "control"),
    _O("pl.get_block_idx", "kernel.control:get_block_idx", "control"),
    _O("pl.get_block_num", "kernel.control:get_block_num", "control"),
    _O("pl.phase", "kernel.control:phase", "control"),
    _O("pl.const", "kernel.scalars:const", "scalars"),
    _O("pl.min", "kernel.scalars:minimum", "scalars"),
    _O("pl.max", "kernel.scalars:maximum", "scalars"),
    _O("pl.array.create", "kernel.arrays:create", "scalars"),
    _O("pl.read pl.tile.read pl.tensor.read", "kernel.scalars:read", "scalars", "S", "the number"),
    _O("pl.write pl.tensor.write", "kernel.scalars:write", "scalars", "S", "it to be visible", writes=(0, "dst")),
    # own global memory and UB
    _O("pl.load pl.tile.load", "kernel.local:load", "moves", "MTE2"),
    _O("pl.store pl.tile.store", "kernel.local:store", "moves", "MTE3", _STATEMENT, writes=(2, "output_tensor")),
    _O("pl.slice pl.tile.slice pl.tensor.slice", "kernel.tensors:slice_of", "moves", "MTE2 of a tensor in a kernel"),
    _O("pl.assemble pl.tile.assemble pl.tensor.assemble", "kernel.tensors:assemble", "moves", "MTE3, V between tiles",
       _STATEMENT, writes=(0, "target"), instructions=("copy",)),
    # tiles
    _O("pl.tile.create", "kernel.tiles:create", "tiles"),
    _O("pl.tile.reshape", "kernel.tiles:reshape", "tiles"),
    _O("pl.full pl.tile.full", "kernel.local:full", "tiles", "V", instructions=("fill",)),
    _O("pl.move pl.tile.move", "kernel.tiles:move", "tiles", "V", instructions=("copy",)),
    _O("pl.cast pl.tile.cast pl.tensor.cast", "kernel.casting:cast", "tiles", "V", instructions=("cast",)),
    _O("pl.add pl.tile.add pl.tensor.add", "kernel.arithmetic:add", "tiles", "V", instructions=("add", "adds")),
    _O("pl.sub pl.tile.sub pl.tensor.sub", "kernel.arithmetic:sub", "tiles", "V", instructions=("sub", "subs")),
    _O("pl.mul pl.tile.mul pl.tensor.mul", "kernel.arithmetic:mul", "tiles", "V", instructions=("mul", "muls")),
    _O("pl.maximum pl.tile.maximum", "kernel.arithmetic:maximum", "tiles", "V", instructions=("max", "maxs")),
    _O("pl.minimum pl.tile.minimum", "kernel.arithmetic:minimum", "tiles", "V", instructions=("min", "mins")),
    _O("pl.tile.row_sum", "kernel.tiles:row_sum", "tiles", "V", instructions=("row_sum",)),
    _O("pl.matmul pl.tile.matmul", "kernel.tiles:matmul", "tiles", "V", instructions=("matmul",)),
    # other ranks
    _O("pld.get_comm_ctx pld.system.get_comm_ctx", "kernel.remote:get_comm_ctx", "remote"),
    _O("pld.rank pld.system.rank", "kernel.remote:rank", "remote"),
    _O("pld.nranks pld.system.nranks", "kernel.remote:nranks", "remote"),
    _O("pld.remote_load pld.tile.remote_load", "kernel.remote:remote_load", "remote", "MTE2"),
    _O("pld.tile.remote_store", "kernel.remote:remote_store", "remote", "MTE3", _STATEMENT, writes=(1, "target")),
    _O("pld.tensor.remote_store", "kernel.remote:remote_store_tensor", "remote", "MTE2, then MTE3", _STATEMENT,
       writes=(1, "target")),
    _O("pld.remote_store", "kernel.remote:remote_store_any", "remote", "MTE3, of a tensor MTE2 before", _STATEMENT,
       writes=(1, "target")),
    _O("pld.tensor.put", "kernel.copies:put", "remote", "MTE2 and MTE3, chunk by chunk",
       "its bytes to be visible, with fences=statement", writes=(0, "dst")),
    _O("pld.tensor.get", "kernel.copies:get", "remote", "MTE2 and MTE3, chunk by chunk",
       "its bytes to be visible, with fences=statement", writes=(0, "dst")),
    # signals, fences, barriers
    _O("pld.system.notify", "kernel.signals:notify", "signals", "S", signal=(0, "target")),
    _O("pld.system.wait", "kernel.signals:wait", "signals", "S", "the comparison to hold", signal=(0, "signal")),
    _O("pld.system.defer_wait", "kernel.signals:defer_wait", "signals", signal=(0, "signal")),
    _O("pl.system.fence", "kernel.control:fence", "signals", "S", "earlier writes to be visible everywhere"),
    _O("pl.system.drain", "kernel.control:drain", "signals", "S", "its core's pipes to be empty"),
    _O("pl.system.sync_all", "kernel.control:sync_all", "signals", "S", "all blocks of the kernel on its device"),
    # collectives
    *(
        _O(f"pld.tensor.{name}", f"host.collectives:{name}", "collectives", writes=writes)
        for name, writes in (
            ("allreduce", (0, "target")), ("reduce_scatter", (0, "target")), ("broadcast", (0, "target")),
            ("allgather", (1, "target")), ("all_to_all", (1, "target")), ("all_to_all_v", (1, "target")),
            ("barrier", None),
        )
    ),
)  # fmt: skip

#: PyPTO's names that no distributed program uses and that are not simulated.
UNSUPPORTED = {
    "pl": (
        "cluster", "cond", "func_attr", "incore", "mgather", "mscatter", "pipeline", "scope", "split_aic", "split_aiv",
        "static_assert", "static_print", "submit", "while_",
    ),
    "pl.jit": ("extern",),
    "pld.system": ("test", "wait_until"),
}  # fmt: skip


def find(name: str) -> Operation | None:
    """The operation that programs call by a full name such as ``pl.tile.add``."""
    return next((operation for operation in OPERATIONS if name in operation.names.split()), None)


def names_of(space: str) -> list[str]:
    """The names of operations in a namespace such as ``pl.tile``, sorted."""
    full = [name.rpartition(".") for operation in OPERATIONS for name in operation.names.split()]
    return sorted(name for group, _, name in full if group == space)


def arguments(role: str) -> dict[str, tuple[int, str]]:
    """The argument with a role, ``writes`` or ``signal``, by the operation's last name; of collectives none."""
    return {
        name.rpartition(".")[2]: getattr(operation, role)
        for operation in OPERATIONS
        if operation.kind != "collectives" and getattr(operation, role) is not None
        for name in operation.names.split()
    }
