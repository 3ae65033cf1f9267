"""Data types and enumerations of the language, with the integer values of PyPTO's ABI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import Any, SupportsIndex, TypeAlias

import ml_dtypes
import numpy as np

from a2a3sim.errors import InvalidOperationError

__all__ = [
    "BF16", "BOOL", "DTYPES", "FP16", "FP32", "INDEX", "INT8", "INT16", "INT32", "INT64", "TASK_ID",
    "UINT8", "UINT32", "Array", "AtomicType", "DataType", "FunctionType", "Indices", "Level", "MemorySpace",
    "NotifyOp", "Number", "ReduceOp", "Role", "WaitCmp", "as_dtype",
]  # fmt: skip

#: One number for each axis: ints, dynamic dimensions, device integers.
Indices: TypeAlias = Sequence[SupportsIndex]
#: A number that a program calculates with.
Number: TypeAlias = "int | float | np.generic"
Array: TypeAlias = "np.ndarray[Any, Any]"


class DataType:
    """An element type: ``name`` as the platform files spell it, ``bits``, and its numpy dtype."""

    __slots__ = ("bits", "floating", "itemsize", "name", "numpy")

    def __init__(self, name: str, bits: int, numpy_type: Any, floating: bool) -> None:
        self.name = name
        self.bits = bits
        self.numpy: np.dtype[Any] = np.dtype(numpy_type)
        self.itemsize: int = self.numpy.itemsize
        self.floating = floating

    def get_byte(self) -> int:
        """Bytes of one element, ceil(bits / 8)."""
        return -(-self.bits // 8)

    def get_bit(self) -> int:
        """Bits of one element."""
        return self.bits

    def __repr__(self) -> str:
        return self.name.upper()

    def __reduce__(self) -> tuple[Callable[[Any], DataType], tuple[str]]:
        return (as_dtype, (self.name,))


FP32 = DataType("fp32", 32, np.float32, True)
FP16 = DataType("fp16", 16, np.float16, True)
BF16 = DataType("bf16", 16, ml_dtypes.bfloat16, True)
INT32 = DataType("int32", 32, np.int32, False)
INT16 = DataType("int16", 16, np.int16, False)
INT8 = DataType("int8", 8, np.int8, False)
INT64 = DataType("int64", 64, np.int64, False)
UINT8 = DataType("uint8", 8, np.uint8, False)
UINT32 = DataType("uint32", 32, np.uint32, False)
BOOL = DataType("bool", 1, np.bool_, False)
INDEX = DataType("index", 64, np.int64, False)

TASK_ID = DataType("task_id", 64, np.int64, False)  # of pl.array only

DTYPES = {d.name: d for d in (FP32, FP16, BF16, INT32, INT16, INT8, INT64, UINT8, UINT32, BOOL, INDEX)}
_BY_NUMPY = {d.numpy: d for d in (FP32, FP16, BF16, INT32, INT16, INT8, INT64, UINT8, UINT32, BOOL)}


def as_dtype(value: Any) -> DataType:
    """A DataType from itself, its name, or a numpy or torch dtype.

    Raises:
        InvalidOperationError: if it is none of these.
    """
    if isinstance(value, DataType):
        return value
    if isinstance(value, str) and value in DTYPES:
        return DTYPES[value]
    text = str(value)
    if text == "torch.bfloat16":
        return BF16
    try:
        return _BY_NUMPY[np.dtype(text[6:] if text.startswith("torch.") else value)]
    except (TypeError, KeyError):
        known = ", ".join(DTYPES)
        raise InvalidOperationError(f"dtype must be one of {known}, got {text!r}") from None


class NotifyOp(IntEnum):
    """How a notify changes its cell."""

    AtomicAdd = 0
    Set = 1


class WaitCmp(IntEnum):
    """How a wait compares its cell with the expected value (signed)."""

    Eq = 0
    Ge = 1


class AtomicType(IntEnum):
    """Whether a write replaces or adds."""

    None_ = 0
    Add = 1


class ReduceOp(IntEnum):
    """The reduction of a collective."""

    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


class FunctionType(Enum):
    """What a function of a program is."""

    Opaque = "Opaque"
    Orchestration = "Orchestration"
    InCore = "InCore"
    Group = "Group"
    Spmd = "Spmd"


class Level(Enum):
    """Where a function runs."""

    AIV = "AIV"
    AIC = "AIC"
    CORE_GROUP = "CORE_GROUP"
    CHIP_DIE = "CHIP_DIE"
    CHIP = "CHIP"
    HOST = "HOST"
    CLUSTER_0 = "CLUSTER_0"
    CLUSTER_1 = "CLUSTER_1"
    CLUSTER_2 = "CLUSTER_2"
    GLOBAL = "GLOBAL"


class Role(Enum):
    """What a function does at its level."""

    Orchestrator = "Orchestrator"
    SubWorker = "SubWorker"


class MemorySpace(Enum):
    """Memories of a core; tiles of communication kernels live in Vec (UB)."""

    DDR = "DDR"
    Vec = "Vec"
    Mat = "Mat"
    Left = "Left"
    Right = "Right"
    Acc = "Acc"
    Bias = "Bias"
