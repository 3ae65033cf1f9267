"""Nothing of the interface is forgotten: PyPTO's list beside what a program gets for each name."""

import inspect
from importlib import import_module

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import errors, ir
from a2a3sim.errors import InvalidOperationError
from a2a3sim.language.operations import UNSUPPORTED, find

# The names that the tutorial programs and system tests use, by section of the interface.
STRUCTURE = """
pl.program pl.function pl.jit pl.jit.host pl.jit.incore pl.FunctionType pl.Level pl.Role pl.Tensor pl.Out
pl.InOut pl.Scalar pl.Tile pl.dynamic ir.compile DistributedConfig RunConfig CompiledProgram
DistributedCompiledProgram DistributedCompiledProgram.prepare DistributedWorker StackedDeviceTensor
JITFunction.compile
"""
OPERATIONS = """
pl.load pl.store pl.read pl.write pl.add pl.sub pl.mul pl.cast pl.assemble pl.slice pl.min pl.range
pl.parallel pl.unroll pl.yield_ pl.at pl.manual_scope pl.array.create pl.create_tensor pl.matmul pl.move
pl.tile.create pl.tile.full pl.tile.reshape pl.tile.row_sum pl.tensor.add pl.tensor.slice pl.const pl.FP32
pl.INT32 pl.FP16 pl.BF16 pl.INDEX pl.DataType.get_byte
"""
DISTRIBUTED = """
pld.world_size pld.alloc_window_buffer pld.window pld.get_comm_ctx pld.rank pld.nranks pld.system.notify
pld.system.wait pld.system.defer_wait pld.tile.remote_load pld.tile.remote_store pld.tensor.remote_store
pld.tensor.put pld.tensor.get pld.tensor.allreduce pld.tensor.barrier pld.tensor.broadcast
pld.tensor.allgather pld.tensor.reduce_scatter pld.tensor.all_to_all pld.tensor.all_to_all_v pld.NotifyOp
pld.WaitCmp pld.AtomicType pld.ReduceOp pld.DistributedTensor pld.remote_load pld.remote_store
"""
OWN = """
pl.jit.inline pl.jit.opaque pl.RUNTIME pl.max pl.spmd pl.get_block_idx pl.get_block_num pl.phase
pl.MemorySpace pl.system.sync_all pl.system.fence pl.system.drain pl.INT8 pl.INT16 pl.INT64 pl.UINT8
pl.UINT32 pl.BOOL JITFunction.lower pypto.InternalError ParserError ParserSyntaxError ParserTypeError
InvalidOperationError
"""
LISTED = (STRUCTURE + OPERATIONS + DISTRIBUTED + OWN).split()
NOWHERE = [
    "cluster",
    "cond",
    "func_attr",
    "mgather",
    "pipeline",
    "split_aiv",
    "static_assert",
    "submit",
    "while_",
]

# Parameters in order, "=" where they have defaults, "*" before keywords.
SIGNATURES = {
    "pl.function": "func= * type= level= role= attrs= auto_scope= strict_ssa= external_source=",
    "pl.program": "cls= * strict_ssa=",
    "pl.load": "tensor offsets shapes valid_shape= target_memory= clamp=",
    "pl.store": "tile offsets output_tensor shapes= * atomic=",
    "pl.cast": "x target_type mode=",
    "pl.read": "src offset",
    "pl.write": "dst offset value",
    "pl.slice": "t shape offset valid_shape= drop_dims= pad_value= clamp=",
    "pl.assemble": "target source offset * atomic=",
    "pld.alloc_window_buffer": "size * dtype= name=",
    "pld.window": "buffer shape * dtype",
    "pld.system.notify": "target peer offsets value * op",
    "pld.system.wait": "signal offsets expected * cmp",
    "pld.system.defer_wait": "signal offsets expected * cmp",
    "pld.tile.remote_load": "target peer offsets shape valid_shape=",
    "pld.tile.remote_store": "src_tile target peer offsets * atomic=",
    "pld.tensor.remote_store": "src target peer offsets * atomic=",
    "pld.tensor.put": "dst peer src dst_offsets= src_offsets= shape= * atomic= chunk_rows= chunk_cols= "
    "pipeline=",
    "pld.tensor.get": "dst peer src dst_offsets= src_offsets= shape= * chunk_rows= chunk_cols= pipeline=",
    "pld.tensor.allreduce": "target signal= * op= mode= core_num=",
    "pld.tensor.broadcast": "target signal * root",
    "DistributedCompiledProgram.prepare": "self config= * extra_compiled= persistent= "
    "reset_persistent_windows= "
    "callbacks= sub_worker_overrides= startup_timeout_s=",
    "DistributedConfig": "device_ids= num_sub_workers= runtime= aicpu_thread_num=",
}


# Names that programs import from elsewhere than the language.
ELSEWHERE = {
    "DistributedConfig": "a2a3sim.config",
    "RunConfig": "a2a3sim.config",
    "CompiledProgram": "a2a3sim.run.compiled",
    "DistributedCompiledProgram": "a2a3sim.run.compile",
    "DistributedWorker": "a2a3sim.run.worker",
    "StackedDeviceTensor": "a2a3sim.run.worker",
    "JITFunction": "a2a3sim.jit",
}


def found(name):
    """What a program gets for a name."""
    space, _, path = name.partition(".")
    value = {"pl": pl, "pld": pld, "ir": ir, "pypto": errors}.get(space)
    if value is None:
        value = getattr(import_module(ELSEWHERE.get(space, "a2a3sim.errors")), space)
    for attribute in filter(None, path.split(".")):
        value = getattr(value, attribute)
    return value


@pytest.mark.parametrize("name", LISTED)
def test_each_name_leads_to_what_implements_it(name):
    operation = find(name)
    assert found(name) is not None
    assert operation is None or found(name) is operation.resolve()


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    parts, star = [], False
    for parameter in inspect.signature(found(name)).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        parts.append(parameter.name + ("" if parameter.default is parameter.empty else "="))
    assert " ".join(parts) == SIGNATURES[name]


@pytest.mark.parametrize("name", NOWHERE)
def test_names_that_no_program_uses_say_that_they_are_not_supported(name):
    assert name in UNSUPPORTED["pl"]
    with pytest.raises(InvalidOperationError, match=f"pl.{name} is not supported by the simulator"):
        getattr(pl, name)(1, 2)


def test_misspelt_names_are_told_the_nearest():
    with pytest.raises(AttributeError, match=r"pl has no 'asemble' .did you mean 'assemble'"):
        pl.asemble  # noqa: B018
    with pytest.raises(AttributeError, match=r"pl.tile has no 'rowsum' .did you mean 'row_sum'"):
        pl.tile.rowsum  # noqa: B018


def test_everything_public_in_the_language_exists():
    for module in (pl, pld):
        for name in module.__all__:
            assert getattr(module, name) is not None
