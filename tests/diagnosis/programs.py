"""Programs to diagnose: scripts of the ladder with a passage changed, and small kernels of one line each."""

from typing import NamedTuple

import numpy as np
from running import compiled, one_kernel

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld
from a2a3sim import RunConfig
from a2a3sim.run.settings import Session, session

TWO_PHASE = "09_allreduce_two_phase"

_LOOP = """            for peer in pl.range(nranks):
                if peer != my_rank:
                    recv"""
LEFT_OUT = (_LOOP, _LOOP.replace("nranks", "nranks - 1"))  # the last rank's contribution to the sums
ONE_ROW = (("offsets=[1, my_rank]", "offsets=[0, my_rank]"), ("offsets=[1, src]", "offsets=[0, src]"))


class Made(NamedTuple):
    """A finished call of a small program."""

    result: object
    trace: object
    call: object
    output: np.ndarray


def exchange(
    kernel, ranks=4, size=16, out_size=None, dtype=pl.FP32, golden=None, x=None, config=None, look=None
) -> Made:
    """Stage every rank's slice in a window, meet, then do what ``kernel`` does.

    Args:
        kernel: called as ``kernel(data, y, me, n)``; loads what it likes from ``data`` and stores to ``y``.
    """
    out_size = out_size or size

    def body(x, y, data, signal, e):
        ctx = pld.get_comm_ctx(data)
        me, n = pld.rank(ctx), pld.nranks(ctx)
        data = pl.store(pl.load(x, [0, 0], [1, size]), [0, 0], data)
        for peer in pl.range(n):
            if peer != me:
                pld.system.notify(signal, peer=peer, offsets=[0, me], value=1, op=pld.NotifyOp.AtomicAdd)
        for src in pl.range(n):
            if src != me:
                pld.system.wait(signal, offsets=[0, src], expected=1, cmp=pld.WaitCmp.Ge)
        kernel(data, y, me, n)

    program = one_kernel(body, ranks, [1, size], [1, out_size], [1, size], [1, ranks], dtype)
    if x is None:
        x = np.random.default_rng(3).integers(-5, 6, (ranks, 1, size)).astype(dtype.numpy)
    y = np.zeros((ranks, 1, out_size), dtype.numpy)
    wanted = golden(x) if callable(golden) else golden

    def observe(program, result, trace) -> None:
        made.append(Made(result, trace, program.last_call, y))
        if look is not None:
            look(program, result, trace)

    made: list[Made] = []
    with session(Session({}, [observe], keep_calls=True)):
        compiled(program, ranks)(x, y, config=config or RunConfig(machine="ideal"), golden=wanted)
    return made[0]


def summed(peers=range, first=0, width=None):
    """A kernel that adds the slices of some ranks, on elements ``first`` to ``first + width``."""

    def kernel(data, y, me, n):
        shape = [1, width or data.shape[1] - first]
        total = None
        for peer in peers(n):
            got = pld.tile.remote_load(data, peer=peer, offsets=[0, first], shape=shape)
            total = got if total is None else pl.add(total, got)
        pl.store(total, [0, first], y)

    return kernel
