"""Which part of the simulator answers to which name of the interface.

One table, so that a name that programs use cannot be forgotten: a test resolves every entry and compares the
names with PyPTO's list.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["SURFACE", "resolve"]

_F = "a2a3sim.frontend"

#: Name as programs write it -> ``module:attribute`` that implements it.
SURFACE: dict[str, str] = {
    # programs and the host
    "pl.program": f"{_F}.program:program",
    "pl.function": f"{_F}.program:function",
    "pl.jit": "a2a3sim.jit:jit",
    "pl.jit.host": "a2a3sim.jit:jit.host",
    "pl.jit.incore": "a2a3sim.jit:jit.incore",
    "pl.jit.inline": "a2a3sim.jit:jit.inline",
    "pl.jit.opaque": "a2a3sim.jit:jit.opaque",
    "pl.RUNTIME": "a2a3sim.jit:RUNTIME",
    "pl.FunctionType": f"{_F}.types:FunctionType",
    "pl.Level": f"{_F}.types:Level",
    "pl.Role": f"{_F}.types:Role",
    "ir.compile": "a2a3sim.compiled:compile_program",
    "DistributedConfig": "a2a3sim.config:DistributedConfig",
    "RunConfig": "a2a3sim.config:RunConfig",
    "CompiledProgram": "a2a3sim.compiled:CompiledProgram",
    "DistributedCompiledProgram": "a2a3sim.compiled:DistributedCompiledProgram",
    "DistributedCompiledProgram.prepare": "a2a3sim.compiled:DistributedCompiledProgram.prepare",
    "DistributedWorker": "a2a3sim.worker:DistributedWorker",
    "StackedDeviceTensor": f"{_F}.device_tensors:StackedDeviceTensor",
    "JITFunction.compile": "a2a3sim.jit:JITFunction.compile",
    "JITFunction.lower": "a2a3sim.jit:JITFunction.lower",
    # types and annotations
    "pl.Tensor": f"{_F}.handles:Tensor",
    "pl.Tile": f"{_F}.handles:Tile",
    "pl.Out": f"{_F}.handles:Out",
    "pl.InOut": f"{_F}.handles:InOut",
    "pl.Scalar": f"{_F}.handles:Scalar",
    "pl.dynamic": f"{_F}.dynamic:dynamic",
    "pl.MemorySpace": f"{_F}.types:MemorySpace",
    "pl.FP32": f"{_F}.types:FP32",
    "pl.INT32": f"{_F}.types:INT32",
    "pl.FP16": f"{_F}.types:FP16",
    "pl.BF16": f"{_F}.types:BF16",
    "pl.INDEX": f"{_F}.types:INDEX",
    "pl.INT8": f"{_F}.types:INT8",
    "pl.INT16": f"{_F}.types:INT16",
    "pl.INT64": f"{_F}.types:INT64",
    "pl.UINT8": f"{_F}.types:UINT8",
    "pl.UINT32": f"{_F}.types:UINT32",
    "pl.BOOL": f"{_F}.types:BOOL",
    "pl.DataType.get_byte": f"{_F}.types:DataType.get_byte",
    # local operations
    "pl.load": f"{_F}.local_ops:load",
    "pl.store": f"{_F}.local_ops:store",
    "pl.add": f"{_F}.arithmetic:add",
    "pl.sub": f"{_F}.arithmetic:sub",
    "pl.mul": f"{_F}.arithmetic:mul",
    "pl.cast": f"{_F}.casting:cast",
    "pl.min": f"{_F}.scalars:minimum",
    "pl.max": f"{_F}.scalars:maximum",
    "pl.read": f"{_F}.scalars:read",
    "pl.write": f"{_F}.scalars:write",
    "pl.const": f"{_F}.scalars:const",
    "pl.slice": f"{_F}.tensors:slice_of",
    "pl.assemble": f"{_F}.tensors:assemble",
    "pl.create_tensor": f"{_F}.tensors:create_tensor",
    "pl.move": f"{_F}.tiles:move",
    "pl.matmul": f"{_F}.tiles:matmul",
    "pl.tile.create": f"{_F}.tiles:create",
    "pl.tile.full": f"{_F}.local_ops:full",
    "pl.tile.reshape": f"{_F}.tiles:reshape",
    "pl.tile.row_sum": f"{_F}.tiles:row_sum",
    "pl.tensor.add": f"{_F}.arithmetic:add",
    "pl.tensor.slice": f"{_F}.tensors:slice_of",
    "pl.array.create": f"{_F}.arrays:create",
    # control
    "pl.range": f"{_F}.loops:pl_range",
    "pl.parallel": f"{_F}.loops:parallel",
    "pl.unroll": f"{_F}.loops:unroll",
    "pl.yield_": f"{_F}.loops:yield_",
    "pl.at": f"{_F}.blocks:at",
    "pl.manual_scope": f"{_F}.blocks:manual_scope",
    "pl.spmd": f"{_F}.control:spmd",
    "pl.get_block_idx": f"{_F}.control:get_block_idx",
    "pl.get_block_num": f"{_F}.control:get_block_num",
    "pl.phase": f"{_F}.control:phase",
    "pl.system.sync_all": f"{_F}.control:sync_all",
    "pl.system.fence": f"{_F}.control:fence",
    "pl.system.drain": f"{_F}.control:drain",
    # windows, one-sided access and signals
    "pld.DistributedTensor": f"{_F}.handles:DistributedTensor",
    "pld.world_size": f"{_F}.host_ops:world_size",
    "pld.alloc_window_buffer": f"{_F}.host_ops:alloc_window_buffer",
    "pld.window": f"{_F}.host_ops:window",
    "pld.get_comm_ctx": f"{_F}.remote_ops:get_comm_ctx",
    "pld.rank": f"{_F}.remote_ops:rank",
    "pld.nranks": f"{_F}.remote_ops:nranks",
    "pld.remote_load": f"{_F}.remote_ops:remote_load",
    "pld.remote_store": f"{_F}.remote_ops:remote_store_any",
    "pld.system.notify": f"{_F}.signal_ops:notify",
    "pld.system.wait": f"{_F}.signal_ops:wait",
    "pld.system.defer_wait": f"{_F}.signal_ops:defer_wait",
    "pld.tile.remote_load": f"{_F}.remote_ops:remote_load",
    "pld.tile.remote_store": f"{_F}.remote_ops:remote_store",
    "pld.tensor.remote_store": f"{_F}.remote_ops:remote_store_tensor",
    "pld.tensor.put": f"{_F}.remote_ops:put",
    "pld.tensor.get": f"{_F}.remote_ops:get",
    "pld.tensor.allreduce": f"{_F}.collectives:allreduce",
    "pld.tensor.barrier": f"{_F}.collectives:barrier",
    "pld.tensor.broadcast": f"{_F}.collectives:broadcast",
    "pld.tensor.allgather": f"{_F}.collectives:allgather",
    "pld.tensor.reduce_scatter": f"{_F}.collectives:reduce_scatter",
    "pld.tensor.all_to_all": f"{_F}.collectives:all_to_all",
    "pld.tensor.all_to_all_v": f"{_F}.collectives:all_to_all_v",
    "pld.NotifyOp": f"{_F}.types:NotifyOp",
    "pld.WaitCmp": f"{_F}.types:WaitCmp",
    "pld.AtomicType": f"{_F}.types:AtomicType",
    "pld.ReduceOp": f"{_F}.types:ReduceOp",
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
