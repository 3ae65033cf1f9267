"""``tensor[...]`` in a program: the operations behind the subscripts of `a2a3sim.language.handles.Tensor`."""

from __future__ import annotations

from a2a3sim.language.kernel.scalars import read_at, write_at
from a2a3sim.language.kernel.tensors import assign

__all__ = ["TensorSubscripts"]


class TensorSubscripts:
    """What reading and assigning an element or a part does."""

    read_at = staticmethod(read_at)
    write_at = staticmethod(write_at)
    assign = staticmethod(assign)
