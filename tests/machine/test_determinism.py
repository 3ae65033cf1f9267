"""Equal runs give equal results, to the last bit, in one process and in several, under any hash seed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

from .programs import add, me, run, wait

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.filterwarnings("ignore::a2a3sim.errors.FindingsWarning")  # the program has races

# What could depend on the order of sets or addresses: contention, ties, blocks, findings, failures.
SCRIPT = """
import json, sys
sys.path.insert(0, {tests!r})
import machine.test_determinism as own
print(json.dumps(own.facts_of_all()))
"""


def contended(x, y, data, signal):
    """Incast, shared lines, blocks, puts: everybody meets everybody."""
    rank, ranks = me(data), pld.nranks(pld.get_comm_ctx(data))
    block = pl.get_block_idx()
    with pl.phase("exchange"):
        for peer in range(ranks):
            tile = pld.tile.remote_load(data, peer, [0, 64 * block], [1, 64])
            if peer != rank:
                pld.tile.remote_store(tile, data, peer, [0, 128 + 64 * block], atomic=pld.AtomicType.Add)
                pld.tensor.put(
                    data, peer, x, [0, 0], [0, 0], [1, 64], chunk_rows=1, chunk_cols=16, pipeline=True
                )
            add(signal, peer, 0, block)
    wait(signal, ranks, 0, block)
    pl.system.sync_all()
    pl.store(pl.load(data, [0, 64 * block], [1, 64]), [0, 64 * block], y)


def late(x, y, data, signal):
    contended(x, y, data, signal)
    wait(signal, 99, 1)


def facts(ran) -> dict:
    """All of a result that equal runs share, and the times in the trace."""
    result = ran.result.model_dump(mode="json", exclude={"cost": {"wall_s", "operations_per_s"}})
    trace = [[op.start, op.end, op.applied, op.order] for lane in ran.trace.lanes for op in lane.operations]
    return {"result": result, "trace": trace, "y": ran.y.tolist(), "error": str(ran.error)}


def one(machine, body=contended, seed=0, **config):
    return run(
        body, ranks=4, blocks=2, machine=machine, raises=True, config={"seed": seed, "checks": True, **config}
    )


def facts_of_all() -> list[dict]:
    runs = [one(machine, seed=seed) for machine in ("ideal-switch", "a2", "a3") for seed in (0, 3)]
    return [facts(ran) for ran in [*runs, one("a2", late)]]


@pytest.fixture(scope="module")
def here():
    return json.loads(json.dumps(facts_of_all()))


def test_equal_runs_in_one_process_are_equal(here):
    assert json.loads(json.dumps(facts_of_all())) == here


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_equal_runs_in_other_processes_are_equal(here, hash_seed):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(tests=str(ROOT / "tests"))],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == here


def test_another_run_in_between_changes_nothing():
    before = facts(one("ideal-switch"))
    one("ideal-switch", seed=9, skew="5us")
    one("ideal-switch", late)
    assert facts(one("ideal-switch")) == before


def test_seeds_differ_in_skew_and_ties():
    runs = [one("a2", seed=seed) for seed in range(4)]
    assert len({ran.result.kernel_ps for ran in runs}) > 1
    still = [one("ideal-switch", seed=seed, skew="none") for seed in range(4)]
    # Nothing takes atomic time there, so the order of ties is all that is left, and it changes no time.
    assert len({ran.result.kernel_ps for ran in still}) == 1
    assert len({tuple(op.order for op in ran.ops(0, "notify")) for ran in still}) > 1


def test_every_time_is_a_whole_number():
    ran = one("a3", seed=1)

    def numbers(value, path=""):
        if isinstance(value, dict):
            for key, item in value.items():
                yield from numbers(item, f"{path}.{key}")
        elif isinstance(value, list):
            for item in value:
                yield from numbers(item, path)
        elif path.endswith(("_ps", "bytes")):
            yield value

    found = list(numbers(ran.result.model_dump()))
    assert len(found) > 100
    assert {type(value) for value in found} <= {int, type(None)}
