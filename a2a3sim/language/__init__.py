"""The language that kernels are written in: ``import a2a3sim.language as pl``.

Programs may use everything here as PyPTO's ``pypto.language``; ``a2a3sim.language.distributed`` is its
``pld``.
"""

from importlib import import_module

from a2a3sim.language.dynamic import dynamic
from a2a3sim.language.handles import InOut, Out, Scalar, Tensor, Tile
from a2a3sim.language.host.blocks import at, manual_scope
from a2a3sim.language.host.program import Program, function, program
from a2a3sim.language.kernel import arrays, tiles
from a2a3sim.language.kernel.arithmetic import add, maximum, minimum, mul, sub
from a2a3sim.language.kernel.casting import cast
from a2a3sim.language.kernel.control import drain, fence, get_block_idx, get_block_num, phase, spmd, sync_all
from a2a3sim.language.kernel.local import full, load, store
from a2a3sim.language.kernel.loops import parallel, unroll, yield_
from a2a3sim.language.kernel.loops import pl_range as range
from a2a3sim.language.kernel.scalars import const, read, write
from a2a3sim.language.kernel.scalars import maximum as max
from a2a3sim.language.kernel.scalars import minimum as min
from a2a3sim.language.kernel.subscripts import TensorSubscripts
from a2a3sim.language.kernel.tensors import assemble, create_tensor
from a2a3sim.language.kernel.tensors import slice_of as slice
from a2a3sim.language.kernel.tiles import matmul, move
from a2a3sim.language.names import Namespace, unknown_name
from a2a3sim.language.types import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    TASK_ID,
    UINT8,
    UINT32,
    DataType,
    FunctionType,
    Level,
    MemorySpace,
    Role,
)

Tensor.subscripts = TensorSubscripts  # handles are data; what their subscripts do belongs to the operations

tile = Namespace(
    "pl.tile",
    add=add,
    assemble=assemble,
    cast=cast,
    create=tiles.create,
    full=full,
    load=load,
    matmul=matmul,
    maximum=maximum,
    minimum=minimum,
    move=move,
    mul=mul,
    read=read,
    reshape=tiles.reshape,
    row_sum=tiles.row_sum,
    slice=slice,
    store=store,
    sub=sub,
)
tensor = Namespace(
    "pl.tensor",
    add=add,
    assemble=assemble,
    cast=cast,
    create=create_tensor,
    mul=mul,
    read=read,
    slice=slice,
    sub=sub,
    write=write,
)
system = Namespace("pl.system", drain=drain, fence=fence, sync_all=sync_all)
array = Namespace("pl.array", create=arrays.create)

__all__ = [
    "BF16",
    "BOOL",
    "FP16",
    "FP32",
    "INDEX",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "RUNTIME",
    "TASK_ID",
    "UINT8",
    "UINT32",
    "DataType",
    "FunctionType",
    "InOut",
    "Level",
    "MemorySpace",
    "Out",
    "Program",
    "Role",
    "Scalar",
    "Tensor",
    "Tile",
    "add",
    "array",
    "assemble",
    "at",
    "cast",
    "const",
    "create_tensor",
    "dynamic",
    "full",
    "function",
    "get_block_idx",
    "get_block_num",
    "jit",
    "load",
    "manual_scope",
    "matmul",
    "max",
    "min",
    "move",
    "mul",
    "parallel",
    "phase",
    "program",
    "range",
    "read",
    "slice",
    "spmd",
    "store",
    "sub",
    "system",
    "tensor",
    "tile",
    "unroll",
    "write",
    "yield_",
]


def __getattr__(name: str):
    """``jit``, which stands above the run of a program; what PyPTO has and this front end has not says so when used."""
    if name in ("RUNTIME", "jit"):
        module = import_module("a2a3sim.jit")
        globals().update(RUNTIME=module.RUNTIME, jit=module.jit)
        return globals()[name]
    return unknown_name("pl", name, __all__)
