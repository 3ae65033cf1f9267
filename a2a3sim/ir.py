"""``ir.compile``: from a program to something that can be called."""

from a2a3sim.run.compiled import CompiledProgram, DistributedCompiledProgram
from a2a3sim.run.compiled import compile_program as compile

__all__ = ["CompiledProgram", "DistributedCompiledProgram", "compile"]
