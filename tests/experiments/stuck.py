"""Rank 0 waits for a notify that nobody sends."""

import numpy as np

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import DistributedConfig, ir

X = pl.Tensor[[1, 64], pl.FP32]


@pl.program
class Stuck:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: X, signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]):
        pl.load(x, [0, 0], [1, 64])
        if pld.rank(pld.get_comm_ctx(signal)) == 0:
            pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)

    @pl.function(type=pl.FunctionType.Orchestration)
    def per_rank(self, x: X, signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]):
        self.kernel(x, signal)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[2, 1, 64], pl.FP32]):
        buffer = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            self.per_rank(x[r], pld.window(buffer, [1, 1], dtype=pl.INT32), device=r)


if __name__ == "__main__":
    compiled = ir.compile(Stuck, distributed_config=DistributedConfig(device_ids=[0, 1]))
    compiled(np.ones((2, 1, 64), np.float32))
