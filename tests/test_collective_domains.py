"""Which ranks a built-in collective runs on, and what it refuses about them."""

import numpy as np
import pytest
from collective_programs import compiled_run

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim.errors import InternalError, InvalidOperationError

T = pld.tensor
P = 3


def _windows(body, ranks=(0, 1, 2)):
    """A host body whose dispatches take ``data`` alone, and then ``body(self, data, other, signal)``."""
    data_t = pld.DistributedTensor[[P, 8], pl.FP32]

    @pl.program
    class Windows:
        @pl.function(type=pl.FunctionType.Orchestration)
        def touch(self, data: pl.InOut[data_t]):
            pass

        @pl.function(type=pl.FunctionType.Orchestration)
        def touch_signal(self, signal: pl.InOut[pld.DistributedTensor[[P], pl.INT32]]):
            pass

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor):
            data_buf = pld.alloc_window_buffer([P, 8], dtype=pl.FP32)
            other_buf = pld.alloc_window_buffer([P, 8], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([P], dtype=pl.INT32)
            data = pld.window(data_buf, [P, 8], dtype=pl.FP32)
            other = pld.window(other_buf, [P, 8], dtype=pl.FP32)
            signal = pld.window(signal_buf, [P], dtype=pl.INT32)
            for r in ranks:
                self.touch(data, device=r)
            body(self, data, other, signal)

    return Windows


DOMAINS = {
    "data that no dispatch takes": (
        lambda self, data, other, signal: T.all_to_all(data, other, signal),
        "window other_buf must itself be passed to a dispatch",
    ),
    "a barrier's signal that no dispatch takes": (
        lambda self, data, other, signal: (T.barrier(signal), self.touch(other, device=0)),
        "pld.tensor.barrier: window signal_buf must itself be passed to a dispatch",
    ),
    "operands on different ranks": (
        lambda self, data, other, signal: (self.touch(other, device=1), T.all_to_all(data, other, signal)),
        r"all operands must live on the same ranks, but data_buf .* ranks \[0, 1, 2\] and other_buf to \[1\]",
    ),
    "one signal for two domains": (
        lambda self, data, other, signal: (
            self.touch(other, device=0),
            T.reduce_scatter(other, signal),
            T.reduce_scatter(data, signal),
        ),
        r"signal signal_buf must live on the ranks of the data, \[0\], but .* run on ranks \[0, 1, 2\]",
    ),
}


@pytest.mark.parametrize("case", DOMAINS)
def test_domains_that_do_not_fit_are_internal_errors(case, tmp_path):
    body, message = DOMAINS[case]
    with pytest.raises(InternalError, match=message) as caught:
        compiled_run(_windows(body), P, tmp_path, np.zeros(4, np.float32))
    assert "test_collective_domains.py:" in str(caught.value)


def test_a_signal_inherits_the_domain_of_the_data(tmp_path):
    def body(self, data, other, signal):
        self.touch(other, device=0)
        T.reduce_scatter(data, signal)

    compiled = compiled_run(_windows(body), P, tmp_path, np.zeros(4, np.float32))
    assert compiled.last_trace.domains["signal_buf"] == (0, 1, 2)


def test_windows_of_two_domains_do_not_meet_in_a_kernel(tmp_path):
    data_t = pld.DistributedTensor[[1, 8], pl.FP32]
    signal_t = pld.DistributedTensor[[2, 1], pl.INT32]

    @pl.program
    class TwoDomains:
        @pl.function(type=pl.FunctionType.InCore)
        def step(self, data: pl.InOut[data_t], signal: pl.InOut[signal_t]):
            pld.tensor.allreduce(data, signal)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, data: pl.InOut[data_t], signal: pl.InOut[signal_t]):
            self.step(data, signal)

        @pl.function(type=pl.FunctionType.Orchestration)
        def touch(self, data: pl.InOut[data_t]):
            pass

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor):
            data_buf = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
            data = pld.window(data_buf, [1, 8], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            for r in pl.range(2):
                self.per_rank(data, signal, device=r)
            self.touch(data, device=2)

    message = r"target must belong to the signal's communication domain \(ranks \[0, 1\]\), got data_buf on"
    with pytest.raises(InvalidOperationError, match=message):
        compiled_run(TwoDomains, 3, tmp_path, np.zeros(4, np.float32))
