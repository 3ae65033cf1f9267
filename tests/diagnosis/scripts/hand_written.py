"""Hand-written code: a remote store and a notify; nothing, a drain or a fence (the argument) between them."""

import sys

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import DistributedConfig, RunConfig, ir

SIZE = 4096
BETWEEN = {"none": lambda: None, "drain": pl.system.drain, "fence": pl.system.fence}[sys.argv[1]]


@pl.program
class HandWritten:
    @pl.function(type=pl.FunctionType.InCore)
    def step(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        inbox: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
    ):
        ctx = pld.get_comm_ctx(inbox)
        right = (pld.rank(ctx) + 1) % pld.nranks(ctx)
        pld.tile.remote_store(pl.load(x, [0, 0], [1, SIZE]), inbox, peer=right, offsets=[0, 0])
        BETWEEN()
        pld.system.notify(signal, peer=right, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        y = pl.store(pl.load(inbox, [0, 0], [1, SIZE]), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def device(
        self,
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        inbox: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
    ):
        return self.step(x, y, inbox, signal)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[2, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, SIZE], pl.FP32]]):
        inbox_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            inbox = pld.window(inbox_buf, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [1, 1], dtype=pl.INT32)
            self.device(x[r], y[r], inbox, signal, device=r)
        return y


compiled = ir.compile(HandWritten, distributed_config=DistributedConfig(device_ids=[0, 1]))
x = np.random.default_rng(1).standard_normal((2, 1, SIZE), dtype=np.float32)
y = np.zeros_like(x)
compiled(x, y, config=RunConfig(fences="explicit"), golden=x[::-1].copy())
print("OK" if (y == x[::-1]).all() else "MISMATCH")
