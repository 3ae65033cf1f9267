"""The language that kernels are written in: ``import a2a3sim.language as pl``.

Programs may use everything here as PyPTO's ``pypto.language``; ``a2a3sim.language.distributed`` is its
``pld``.
"""

from typing import Any

from a2a3sim.language.dynamic import dynamic
from a2a3sim.language.handles import InOut, Out, Scalar, Subscripts, Tensor, Tile
from a2a3sim.language.host.blocks import at, manual_scope
from a2a3sim.language.host.program import Program, function, program
from a2a3sim.language.kernel.arithmetic import add, maximum, minimum, mul, sub
from a2a3sim.language.kernel.casting import cast
from a2a3sim.language.kernel.control import get_block_idx, get_block_num, phase, spmd
from a2a3sim.language.kernel.local import full, load, store
from a2a3sim.language.kernel.loops import parallel, unroll, yield_
from a2a3sim.language.kernel.loops import pl_range as range
from a2a3sim.language.kernel.scalars import const, read, read_at, write, write_at
from a2a3sim.language.kernel.scalars import maximum as max
from a2a3sim.language.kernel.scalars import minimum as min
from a2a3sim.language.kernel.tensors import assemble, assign, create_tensor
from a2a3sim.language.kernel.tensors import slice_of as slice
from a2a3sim.language.kernel.tiles import matmul, move
from a2a3sim.language.names import Namespace, look_up
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

# Handles are data; what their subscripts do belongs to the operations.
Tensor.subscripts = Subscripts(read_at, write_at, assign)

tile = Namespace("pl.tile")
tensor = Namespace("pl.tensor")
system = Namespace("pl.system")
array = Namespace("pl.array")

__all__ = [
    "BF16", "BOOL", "FP16", "FP32", "INDEX", "INT8", "INT16", "INT32", "INT64", "RUNTIME", "TASK_ID",
    "UINT8", "UINT32", "DataType", "FunctionType", "InOut", "Level", "MemorySpace", "Out", "Program",
    "Role", "Scalar", "Tensor", "Tile", "add", "array", "assemble", "at", "cast", "const", "create_tensor",
    "dynamic", "full", "function", "get_block_idx", "get_block_num", "jit", "load", "manual_scope",
    "matmul", "max", "maximum", "min", "minimum", "move", "mul", "parallel", "phase", "program", "range", "read",
    "slice", "spmd", "store", "sub", "system", "tensor", "tile", "unroll", "write", "yield_",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Further operations: ``jit`` stands above the run of a program, so it is looked up when it is first used."""
    value = globals()[name] = look_up("pl", name, __all__)
    return value
