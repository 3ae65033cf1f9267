"""The language that kernels are written in: ``import a2a3sim.language as pl``.

Programs may use everything here as PyPTO's ``pypto.language``; ``a2a3sim.language.distributed`` is its
``pld``.
"""

from types import SimpleNamespace

from a2a3sim.jit import jit
from a2a3sim.frontend.control import (
    const,
    drain,
    fence,
    get_block_idx,
    get_block_num,
    phase,
    spmd,
    sync_all,
)
from a2a3sim.frontend.control import pl_range as range  # noqa: A004 - PyPTO's name
from a2a3sim.frontend.dynamic import dynamic
from a2a3sim.frontend.handles import InOut, Out, Scalar, Tensor, Tile
from a2a3sim.frontend.local_ops import add, cast, full, load, maximum, minimum, mul, read, store, sub, write
from a2a3sim.frontend.types import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT32,
    DataType,
    FunctionType,
    Level,
    MemorySpace,
    Role,
)
from a2a3sim.frontend.program import Program, function, program

tile = SimpleNamespace(
    load=load, store=store, add=add, sub=sub, mul=mul, maximum=maximum, minimum=minimum, cast=cast, full=full
)
system = SimpleNamespace(sync_all=sync_all, fence=fence, drain=drain)

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
    "cast",
    "const",
    "dynamic",
    "full",
    "function",
    "get_block_idx",
    "get_block_num",
    "jit",
    "load",
    "mul",
    "phase",
    "program",
    "range",
    "read",
    "spmd",
    "store",
    "sub",
    "system",
    "tile",
    "write",
]
