"""Schedules reached on purpose: cores held, bytes under way longer, links stretched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import altered
from running import script as run

from a2a3sim import ConfigError, RunConfig
from a2a3sim.models.fabric import Fabric
from a2a3sim.models.jitter import Jitter
from a2a3sim.models.platform import load_platform
from a2a3sim.models.topology import build_topology
from a2a3sim.run.delays import Delay, parse_delays, same_file

from .programs import exchange, summed

US = 1_000_000


def on_ideal(**changes):
    return RunConfig(machine="ideal", skew="none", **changes)


def lines(trace, kind, rank):
    """File and line of a rank's operations of a kind."""
    return [
        trace.site(op)
        for lane in trace.lanes
        if lane.rank == rank
        for op in lane.operations
        if op.kind == kind
    ]


def test_a_held_core_begins_its_operation_so_much_later():
    # On `ideal` with 4 ranks: a barrier of 1 us, then 3 remote reads of 2 us + 64 B at 25 GB/s (2560 ps); the
    # own one is local and takes no time.
    plain = exchange(summed(), config=on_ideal())
    assert plain.result.kernel_ps == US + 3 * (2 * US + 2560)
    site = lines(plain.trace, "remote_load", 2)[0]
    place = f"{site.file}:{site.line}"
    # The second of rank 2's reads from this line waits 5 us; nobody waits for rank 2.
    held = exchange(summed(), config=on_ideal(delay={(2, place, 1): "5us"}))
    # It is issued at 6 us, when the first has long been over; two remote reads are left.
    last = 6 * US + 2 * (2 * US + 2560)
    assert [use.end_ps for use in held.result.per_rank] == [7_007_680, 7_007_680, last, 7_007_680]


def test_a_held_store_holds_everybody_who_waits_for_it():
    plain = exchange(summed(), config=on_ideal())
    site = lines(plain.trace, "store", 1)[0]
    held = exchange(summed(), config=on_ideal(delay={(1, f"{site.file}:{site.line}", 0): "5us"}))
    # The others hear of rank 1 at 6 us; it has heard of them before and goes on at 5 us.
    assert [use.end_ps for use in held.result.per_rank] == [12_007_680, 11_007_680, 12_007_680, 12_007_680]
    assert held.result.overrides == {"delay.0": f"1@{site.file}:{site.line}#0=5us"}


def test_a_delay_may_name_a_dispatch():
    plain = exchange(summed(), config=on_ideal())
    held = exchange(summed(), config=on_ideal(delay={(3, 3, 0): "5us"}))
    assert held.result.kernel_ps == plain.result.kernel_ps + 5 * US


def test_bytes_under_way_longer_do_not_hold_the_core():
    plain = exchange(summed(), config=on_ideal())
    site = lines(plain.trace, "remote_load", 0)[0]
    # The last read of rank 0: its bytes come 3 us later, and nothing after it but the sum and the store.
    late = exchange(summed(), config=on_ideal(delay={f"0@{site.file}:{site.line}#3": "3us:flight"}))
    issued = [
        [
            op.issued
            for lane in m.trace.lanes
            if lane.rank == 0
            for op in lane.operations
            if op.kind == "remote_load"
        ]
        for m in (plain, late)
    ]
    assert issued[0] == issued[1]
    assert late.result.per_rank[0].end_ps == plain.result.per_rank[0].end_ps + 3 * US


def test_without_delays_nothing_is_asked():
    plain = exchange(summed(), config=on_ideal())
    assert {type(lane).__name__ for lane in plain.trace.lanes} == {"Lane"}
    assert plain.result.overrides == {}


@pytest.mark.parametrize(
    ("delay", "says"),
    [
        ({(9, "a.py:1", 0): "1us"}, "rank 9 does not exist"),
        ({(0, "a.py", 0): "1us"}, "must look like"),
        ({(0, "a.py:1"): "1us"}, "must look like"),
        ({"0@a.py:1#x": "1us"}, "must look like"),
        ({(0, "a.py:1", 0): "1"}, "unit"),
    ],
)
def test_a_delay_that_says_nothing_is_an_error(delay, says):
    with pytest.raises(ConfigError, match=says):
        parse_delays(delay, 4)


@given(
    st.integers(0, 3),
    st.none() | st.integers(0, 7),
    st.integers(1, 99),
    st.integers(0, 9),
    st.integers(1, 10**12),
    st.booleans(),
)
def test_a_delay_is_read_back_from_its_own_text(rank, core, line, number, time, flight):
    delay = Delay(rank, core, "kernels/a.py", line, None, number, time, flight)
    where, _, text = str(delay).rpartition("=")
    assert parse_delays({where: text}, 4) == (delay,)


def test_files_are_the_same_by_their_last_parts():
    assert same_file("/tmp/x/prog.py", "prog.py")
    assert same_file("prog.py", "./prog.py")
    assert not same_file("/tmp/x/prog.py", "og.py")


# ---- jitter


def fabric(jitter):
    platform = load_platform("a2", {})
    return Fabric(build_topology(platform, 8), platform, jitter)


def test_jitter_stretches_every_link_by_its_own_factor():
    plain, stretched = fabric(None), fabric(Jitter(3, 4))
    pairs = [(a, b) for a in range(8) for b in range(8) if a != b]
    factors = [stretched.latency(*p) / plain.latency(*p) for p in pairs]
    assert all(1 <= f < 4 for f in factors)
    assert len(set(factors)) == len(pairs)
    assert all(stretched.latency(d, d) == 0 for d in range(8))


def test_the_seed_fixes_the_factors():
    assert fabric(Jitter(3, 4)).latency(0, 1) == fabric(Jitter(3, 4)).latency(0, 1)
    assert fabric(Jitter(3, 4)).latency(0, 1) != fabric(Jitter(4, 4)).latency(0, 1)


def test_a_stretched_run_is_no_other_runs_business():
    config = on_ideal()
    before = exchange(summed(), config=config).result.kernel_ps
    stretched = exchange(summed(), config=on_ideal(jitter="4x", seed=1)).result
    assert stretched.kernel_ps > before
    assert stretched.overrides == {"jitter": "4x"}
    assert exchange(summed(), config=config).result.kernel_ps == before


@pytest.mark.parametrize("jitter", ["0.5x", "fast", 0, "x"])
def test_a_factor_below_one_is_an_error(jitter):
    with pytest.raises(ConfigError, match="jitter"):
        exchange(summed(), config=on_ideal(jitter=jitter))


def test_flags_reach_the_runs_of_a_script(tmp_path):
    path = altered(tmp_path, "04_barrier")
    (result,) = run(path, forced={"jitter": "2x", "slow": {1: "2x"}}).runs
    assert result.overrides == {"slow.1": "2x", "jitter": "2x"}
