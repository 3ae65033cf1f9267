"""Which part of the simulator answers to which name of the interface.

One table, so that a name that programs use cannot be forgotten: a test resolves every entry and compares the
names with PyPTO's list.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["SURFACE", "resolve"]

_L = "a2a3sim.language"

#: Name as programs write it -> ``module:attribute`` that implements it.
SURFACE: dict[str, str] = {
    # programs and the host
    "pl.program": f"{_L}.host.program:program",
    "pl.function": f"{_L}.host.program:function",
    "pl.jit": "a2a3sim.jit:jit",
    "pl.jit.host": "a2a3sim.jit:jit.host",
    "pl.jit.incore": "a2a3sim.jit:jit.incore",
    "pl.jit.inline": "a2a3sim.jit:jit.inline",
    "pl.jit.opaque": "a2a3sim.jit:jit.opaque",
    "pl.RUNTIME": "a2a3sim.jit:RUNTIME",
    "pl.FunctionType": f"{_L}.types:FunctionType",
    "pl.Level": f"{_L}.types:Level",
    "pl.Role": f"{_L}.types:Role",
    "ir.compile": "a2a3sim.run.compile:compile_program",
    "DistributedConfig": "a2a3sim.config:DistributedConfig",
    "RunConfig": "a2a3sim.config:RunConfig",
    "CompiledProgram": "a2a3sim.run.compiled:CompiledProgram",
    "DistributedCompiledProgram": "a2a3sim.run.compile:DistributedCompiledProgram",
    "DistributedCompiledProgram.prepare": "a2a3sim.run.compile:DistributedCompiledProgram.prepare",
    "DistributedWorker": "a2a3sim.run.worker:DistributedWorker",
    "StackedDeviceTensor": f"{_L}.host.device_tensors:StackedDeviceTensor",
    "JITFunction.compile": "a2a3sim.jit:JITFunction.compile",
    "JITFunction.lower": "a2a3sim.jit:JITFunction.lower",
    # types and annotations
    "pl.Tensor": f"{_L}.handles:Tensor",
    "pl.Tile": f"{_L}.handles:Tile",
    "pl.Out": f"{_L}.handles:Out",
    "pl.InOut": f"{_L}.handles:InOut",
    "pl.Scalar": f"{_L}.handles:Scalar",
    "pl.dynamic": f"{_L}.dynamic:dynamic",
    "pl.MemorySpace": f"{_L}.types:MemorySpace",
    "pl.FP32": f"{_L}.types:FP32",
    "pl.INT32": f"{_L}.types:INT32",
    "pl.FP16": f"{_L}.types:FP16",
    "pl.BF16": f"{_L}.types:BF16",
    "pl.INDEX": f"{_L}.types:INDEX",
    "pl.INT8": f"{_L}.types:INT8",
    "pl.INT16": f"{_L}.types:INT16",
    "pl.INT64": f"{_L}.types:INT64",
    "pl.UINT8": f"{_L}.types:UINT8",
    "pl.UINT32": f"{_L}.types:UINT32",
    "pl.BOOL": f"{_L}.types:BOOL",
    "pl.DataType.get_byte": f"{_L}.types:DataType.get_byte",
    # local operations
    "pl.load": f"{_L}.kernel.local:load",
    "pl.store": f"{_L}.kernel.local:store",
    "pl.add": f"{_L}.kernel.arithmetic:add",
    "pl.sub": f"{_L}.kernel.arithmetic:sub",
    "pl.mul": f"{_L}.kernel.arithmetic:mul",
    "pl.cast": f"{_L}.kernel.casting:cast",
    "pl.min": f"{_L}.kernel.scalars:minimum",
    "pl.max": f"{_L}.kernel.scalars:maximum",
    "pl.read": f"{_L}.kernel.scalars:read",
    "pl.write": f"{_L}.kernel.scalars:write",
    "pl.const": f"{_L}.kernel.scalars:const",
    "pl.slice": f"{_L}.kernel.tensors:slice_of",
    "pl.assemble": f"{_L}.kernel.tensors:assemble",
    "pl.create_tensor": f"{_L}.kernel.tensors:create_tensor",
    "pl.move": f"{_L}.kernel.tiles:move",
    "pl.matmul": f"{_L}.kernel.tiles:matmul",
    "pl.tile.create": f"{_L}.kernel.tiles:create",
    "pl.tile.full": f"{_L}.kernel.local:full",
    "pl.tile.reshape": f"{_L}.kernel.tiles:reshape",
    "pl.tile.row_sum": f"{_L}.kernel.tiles:row_sum",
    "pl.tensor.add": f"{_L}.kernel.arithmetic:add",
    "pl.tensor.slice": f"{_L}.kernel.tensors:slice_of",
    "pl.array.create": f"{_L}.kernel.arrays:create",
    # control
    "pl.range": f"{_L}.kernel.loops:pl_range",
    "pl.parallel": f"{_L}.kernel.loops:parallel",
    "pl.unroll": f"{_L}.kernel.loops:unroll",
    "pl.yield_": f"{_L}.kernel.loops:yield_",
    "pl.at": f"{_L}.host.blocks:at",
    "pl.manual_scope": f"{_L}.host.blocks:manual_scope",
    "pl.spmd": f"{_L}.kernel.control:spmd",
    "pl.get_block_idx": f"{_L}.kernel.control:get_block_idx",
    "pl.get_block_num": f"{_L}.kernel.control:get_block_num",
    "pl.phase": f"{_L}.kernel.control:phase",
    "pl.system.sync_all": f"{_L}.kernel.control:sync_all",
    "pl.system.fence": f"{_L}.kernel.control:fence",
    "pl.system.drain": f"{_L}.kernel.control:drain",
    # windows, one-sided access and signals
    "pld.DistributedTensor": f"{_L}.handles:DistributedTensor",
    "pld.world_size": f"{_L}.host.ops:world_size",
    "pld.alloc_window_buffer": f"{_L}.host.ops:alloc_window_buffer",
    "pld.window": f"{_L}.host.ops:window",
    "pld.get_comm_ctx": f"{_L}.kernel.remote:get_comm_ctx",
    "pld.rank": f"{_L}.kernel.remote:rank",
    "pld.nranks": f"{_L}.kernel.remote:nranks",
    "pld.remote_load": f"{_L}.kernel.remote:remote_load",
    "pld.remote_store": f"{_L}.kernel.remote:remote_store_any",
    "pld.system.notify": f"{_L}.kernel.signals:notify",
    "pld.system.wait": f"{_L}.kernel.signals:wait",
    "pld.system.defer_wait": f"{_L}.kernel.signals:defer_wait",
    "pld.tile.remote_load": f"{_L}.kernel.remote:remote_load",
    "pld.tile.remote_store": f"{_L}.kernel.remote:remote_store",
    "pld.tensor.remote_store": f"{_L}.kernel.remote:remote_store_tensor",
    "pld.tensor.put": f"{_L}.kernel.remote:put",
    "pld.tensor.get": f"{_L}.kernel.remote:get",
    "pld.tensor.allreduce": f"{_L}.host.collectives:allreduce",
    "pld.tensor.barrier": f"{_L}.host.collectives:barrier",
    "pld.tensor.broadcast": f"{_L}.host.collectives:broadcast",
    "pld.tensor.allgather": f"{_L}.host.collectives:allgather",
    "pld.tensor.reduce_scatter": f"{_L}.host.collectives:reduce_scatter",
    "pld.tensor.all_to_all": f"{_L}.host.collectives:all_to_all",
    "pld.tensor.all_to_all_v": f"{_L}.host.collectives:all_to_all_v",
    "pld.NotifyOp": f"{_L}.types:NotifyOp",
    "pld.WaitCmp": f"{_L}.types:WaitCmp",
    "pld.AtomicType": f"{_L}.types:AtomicType",
    "pld.ReduceOp": f"{_L}.types:ReduceOp",
    # errors
    "pypto.InternalError": "a2a3sim.errors:InternalError",
    "ParserError": "a2a3sim.errors:ParserError",
    "ParserSyntaxError": "a2a3sim.errors:ParserSyntaxError",
    "ParserTypeError": "a2a3sim.errors:ParserTypeError",
    "InvalidOperationError": "a2a3sim.errors:InvalidOperationError",
}


def resolve(name: str) -> object:
    """What implements a name; KeyError if it is not in `SURFACE`."""
    module, _, path = SURFACE[name].partition(":")
    found = import_module(module)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    return found
