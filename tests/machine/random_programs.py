"""What the plans of `random_plans` do: on the machine, and on numpy arrays one core after the other."""

from __future__ import annotations

import numpy as np
from running import Ran, run

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .random_plans import COLUMNS, ROWS, TILES, Plan

__all__ = ["Reference", "inputs", "run_plan"]


def interpret(actions, core, tiles: list, side) -> None:
    """Do a core's actions of one phase with the operations of ``side``."""
    _, block = core
    for kind, *a in actions:
        if kind in ("load", "remote_load"):
            tiles.append(side.load(kind, a[0], a[1]))
        elif kind == "add" and tiles:
            tile = tiles[int(a[0] * len(tiles))]
            same = [t for t in tiles if tuple(t.shape) == tuple(tile.shape)]
            tiles.append(side.add(tile, same[int(a[1] * len(same))]))
        elif kind == "scale" and tiles:
            tiles.append(side.scale(tiles[int(a[0] * len(tiles))]))
        elif kind in ("store", "remote_store"):
            peer, region, _, _, add, pick = a
            fitting = [t for t in tiles if tuple(t.shape) == (region[1], region[3])]
            tile = (
                fitting[int(pick * len(fitting))]
                if fitting
                else side.fill((region[1], region[3]), int(pick * 5))
            )
            side.store(kind, tile, peer, region, add)
        elif kind == "put":
            side.put(*a[:5])
        elif kind == "get":
            side.get(*a, block * ROWS)
        elif kind == "save" and tiles:
            tile = tiles[int(a[0] * len(tiles))]
            rows, columns = tile.shape
            side.save(tile, block * ROWS + int(a[1] * (ROWS - rows + 1)), int(a[2] * (COLUMNS - columns + 1)))
        elif kind == "back":
            side_rows = 1 + int(a[0] * (ROWS - 1))
            tiles.append(
                side.back(block * ROWS, side_rows, int(a[1] * COLUMNS / 2), 1 + int(a[2] * COLUMNS / 2))
            )
        elif kind == "write":
            side.write(a[1], int(a[5] * 9))
        elif kind == "read":
            tiles.append(side.fill((1, 8), int(side.read(a[1])) % 5))
        else:
            side.other(kind, a)
        del tiles[:-TILES]


class Reference:
    """The meaning of the operations, on numpy arrays, for one core at a time."""

    def __init__(self, plan: Plan, x: np.ndarray) -> None:
        self.x = x
        self.y = np.zeros((plan.ranks, ROWS * plan.blocks, COLUMNS), np.int32)
        self.data = np.zeros((plan.ranks, ROWS, COLUMNS), np.int32)
        tiles = {core: [] for core in plan.cores}
        for acts in plan.phases:
            for core in plan.cores:
                self.rank = core[0]
                interpret(acts[core], core, tiles[core], self)

    def load(self, _kind, peer, region):
        return self.data[peer][_index(region)].copy()

    def add(self, a, b):
        return a + b

    def scale(self, a):
        return a * np.int32(3)

    def fill(self, shape, value):
        return np.full(shape, value, np.int32)

    def store(self, _kind, tile, peer, region, add):
        if add:
            self.data[peer][_index(region)] += tile
        else:
            self.data[peer][_index(region)] = tile

    def put(self, peer, region, _chunk, _pipelined, add):
        self.store("put", self.x[self.rank][_index(region)], peer, region, add)

    def get(self, peer, region, _chunk, _pipelined, base):
        self.y[self.rank, base : base + ROWS][_index(region)] = self.data[peer][_index(region)]

    def save(self, tile, row, column):
        self.y[self.rank][_index((row, tile.shape[0], column, tile.shape[1]))] = tile

    def back(self, *region):
        row, rows, column, columns = region
        return self.y[self.rank][_index((row, rows, column, columns))].copy()

    def write(self, region, value):
        self.data[self.rank, region[0], region[2]] = value

    def read(self, region):
        return self.data[self.rank, region[0], region[2]]

    def other(self, kind, a):
        pass


def _index(region):
    row, rows, column, columns = region
    return slice(row, row + rows), slice(column, column + columns)


class MachineSide:
    """The operations of the language, on one core of the machine."""

    def __init__(self, x, y, data, credits) -> None:
        self.x, self.y, self.data, self.credits = x, y, data, credits

    def load(self, kind, peer, region):
        row, rows, column, columns = region
        if kind == "load":
            return pl.load(self.data, [row, column], [rows, columns])
        return pld.tile.remote_load(self.data, peer, [row, column], [rows, columns])

    def add(self, a, b):
        return pl.add(a, b)

    def scale(self, a):
        return pl.mul(a, 3)

    def fill(self, shape, value):
        return pl.tile.full(list(shape), pl.INT32, value)

    def store(self, kind, tile, peer, region, add):
        at = [region[0], region[2]]
        if kind == "store":
            pl.store(tile, at, self.data, atomic=_atomic(add))
        else:
            pld.tile.remote_store(tile, self.data, peer, at, atomic=_atomic(add))

    def put(self, peer, region, chunk, pipelined, add):
        row, rows, column, columns = region
        pld.tensor.put(
            self.data, peer, self.x, [row, column], [row, column], [rows, columns], atomic=_atomic(add),
            **_chunks(chunk, pipelined),
        )  # fmt: skip

    def get(self, peer, region, chunk, pipelined, base):
        row, rows, column, columns = region
        pld.tensor.get(
            self.y,
            peer,
            self.data,
            [base + row, column],
            [row, column],
            [rows, columns],
            **_chunks(chunk, pipelined),
        )

    def save(self, tile, row, column):
        pl.store(tile, [row, column], self.y)

    def back(self, row, rows, column, columns):
        return pl.load(self.y, [row, column], [rows, columns])

    def write(self, region, value):
        pl.write(self.data, [region[0], region[2]], value)

    def read(self, region):
        return pl.read(self.data, [region[0], region[2]])

    def other(self, kind, a):
        if kind == "notify":
            peer, cell, value = a
            pld.system.notify(self.credits, peer, [cell // 8, cell % 8], value, op=pld.NotifyOp.AtomicAdd)
        elif kind == "wait":
            cell, value = a
            pld.system.wait(self.credits, [cell // 8, cell % 8], value, cmp=pld.WaitCmp.Ge)
        elif kind == "sync":
            pl.system.sync_all()
        elif kind == "fence":
            pl.system.fence() if a[0] < 0.5 else pl.system.drain()
        elif kind == "phase":
            with pl.phase("named"):
                pl.tile.full([1, 8], pl.INT32, 1)


def _atomic(add: bool):
    return pld.AtomicType.Add if add else pld.AtomicType.None_


def _chunks(chunk: int, pipelined: bool) -> dict:
    return {"chunk_rows": 2 if chunk else 0, "chunk_cols": chunk, "pipeline": bool(pipelined and chunk)}


def program(plan: Plan):
    """The plan as a program: every core interprets its part."""
    count, ranks = len(plan.phases), plan.ranks
    x_t, y_shape = pl.Tensor[[ROWS, COLUMNS], pl.INT32], [ROWS * plan.blocks, COLUMNS]
    y_t = pl.InOut[pl.Tensor[y_shape, pl.INT32]]
    data_t = pl.InOut[pld.DistributedTensor[[ROWS, COLUMNS], pl.INT32]]
    signal_t = pl.InOut[pld.DistributedTensor[[count, 8], pl.INT32]]
    credit_t = pl.InOut[pld.DistributedTensor[[ROWS, 8], pl.INT32]]

    @pl.program
    class Random:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: x_t, y: y_t, data: data_t, signal: signal_t, credits: credit_t):
            core = (int(pld.rank(pld.get_comm_ctx(data))), int(pl.get_block_idx()))
            tiles, side = [], MachineSide(x, y, data, credits)
            for k, acts in enumerate(plan.phases):
                interpret(acts[core], core, tiles, side)
                pl.system.fence()  # needed where only fences order
                for peer in range(ranks):
                    pld.system.notify(signal, peer, [k, 0], 1, op=pld.NotifyOp.AtomicAdd)
                pld.system.wait(signal, [k, 0], len(plan.cores), cmp=pld.WaitCmp.Ge)

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_rank(self, x: x_t, y: y_t, data: data_t, signal: signal_t, credits: credit_t):
            with pl.spmd(plan.blocks):
                self.kernel(x, y, data, signal, credits)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            x: pl.Tensor[[ranks, ROWS, COLUMNS], pl.INT32],
            y: pl.InOut[pl.Tensor[[ranks, *y_shape], pl.INT32]],
        ):
            data_buf = pld.alloc_window_buffer([ROWS, COLUMNS], dtype=pl.INT32)
            signal_buf = pld.alloc_window_buffer([count, 8], dtype=pl.INT32)
            credit_buf = pld.alloc_window_buffer([ROWS, 8], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.per_rank(
                    x[r],
                    y[r],
                    pld.window(data_buf, [ROWS, COLUMNS], dtype=pl.INT32),
                    pld.window(signal_buf, [count, 8], dtype=pl.INT32),
                    pld.window(credit_buf, [ROWS, 8], dtype=pl.INT32),
                    device=r,
                )

    return Random


def inputs(plan: Plan) -> np.ndarray:
    """Every element of every rank is different."""
    return np.arange(plan.ranks * ROWS * COLUMNS, dtype=np.int32).reshape(plan.ranks, ROWS, COLUMNS)


def run_plan(plan: Plan, **config) -> Ran:
    """Run a plan on its machine; ``config`` replaces fields of its RunConfig."""
    x, y = inputs(plan), np.zeros((plan.ranks, ROWS * plan.blocks, COLUMNS), np.int32)
    return run(program(plan), plan.ranks, x, y, **{"checks": False, **plan.config, **config})
