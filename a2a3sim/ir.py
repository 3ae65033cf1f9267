"""``ir.compile``: from a program to something that can be called."""

from a2a3sim.run.compile import DistributedCompiledProgram
from a2a3sim.run.compile import compile_program as compile
from a2a3sim.run.compiled import CompiledProgram

__all__ = ["CompiledProgram", "DistributedCompiledProgram", "compile"]
