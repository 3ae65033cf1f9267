"""The unit of the benchmarks: one bare SimPy timeout, measured in the same process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import simpy

__all__ = ["bare_timeout_us", "cpu"]


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of a call, the cycle collector off."""
    gc.collect()
    gc.disable()
    began = time.process_time()
    work()
    spent = time.process_time() - began
    gc.enable()
    return spent


def bare_timeout_us(processes: int, each: int = 400) -> float:
    """CPU microseconds of one timeout among as many processes as there are ranks."""
    env = simpy.Environment()

    def ticking(period: int):
        for _ in range(each):
            yield env.timeout(period)

    for number in range(processes):
        env.process(ticking(1_000 + number))
    return cpu(env.run) / (processes * each) * 1e6
