"""Times on `ideal` are the closed forms to the picosecond; bytes, rounds and barriers likewise.

`ideal` has 25 GB/s and L = 1 us: 1 MiB takes 41,943,040 ps, a quarter 10,485,760, an eighth 5,242,880.
"""

import pytest

import a2a3sim.language as pl
from a2a3sim import ConfigError, load_platform
from a2a3sim.kernels import CATALOGUE, DEFAULTS, find
from a2a3sim.kernels.collective import Job
from a2a3sim.models.topology import build_topology
from a2a3sim.run.bound import bound_ps

from .running import KERNELS, LATENCY, RATE, run

MIB = 262144  # fp32 elements

TIMES = {
    # L + (P-1)(2L + N/B)
    ("allreduce", "mesh"): (132_829_120, 308_601_280),
    ("allreduce", "mesh_rotated"): (132_829_120, 308_601_280),
    # 2(L + (P-1)(2L + N/(P·B)))
    ("allreduce", "two_phase"): (76_914_560, 103_400_320),
    ("allreduce", "two_phase_rotated"): (76_914_560, 103_400_320),
    # 2(P-1)(3L + N/(P·B))
    ("allreduce", "ring"): (80_914_560, 115_400_320),
    # one core takes turns: 2(P-1)(5L + N/(P·B))
    ("allreduce", "ring_bidirectional"): (92_914_560, 143_400_320),
    # 2·log2 P·3L + 2(P-1)/P·N/B
    ("allreduce", "halving_doubling"): (74_914_560, 91_400_320),
    # log2 P·(3L + N/B)
    ("allreduce", "recursive_doubling"): (89_886_080, 134_829_120),
    # 2(3L + N/(2B)) + 2(L + (P/2-1)(2L + N/(P·B)))
    ("allreduce", "hierarchical"): (74_914_560, 93_400_320),
    # (P-1)(5L + 2N/(P·B)) + 2L
    ("allreduce", "two_phase_push"): (79_914_560, 110_400_320),
    ("allgather", "mesh"): (132_829_120, 308_601_280),
    ("allgather", "mesh_rotated"): (132_829_120, 308_601_280),
    # (P-1)(3L + N/B)
    ("allgather", "ring"): (134_829_120, 314_601_280),
    ("reduce_scatter", "mesh"): (132_829_120, 308_601_280),
    ("reduce_scatter", "mesh_rotated"): (132_829_120, 308_601_280),
    ("reduce_scatter", "ring"): (134_829_120, 314_601_280),
    # 3L + N/B
    ("broadcast", "flat"): (44_943_040, 44_943_040),
    # log2 P·(3L + N/B)
    ("broadcast", "binomial"): (89_886_080, 134_829_120),
    ("all_to_all", "mesh"): (132_829_120, 308_601_280),
    ("all_to_all", "mesh_rotated"): (132_829_120, 308_601_280),
}


def test_every_kernel_is_timed_here():
    assert list(TIMES) == KERNELS


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@pytest.mark.parametrize("ranks", [4, 8])
def test_one_mebibyte_on_ideal(kernel, ranks):
    form, job = find(*kernel), Job(ranks, MIB, pl.FP32)
    result, _ = run(kernel, job)
    assert result.kernel_ps == TIMES[kernel][ranks // 8] == form.ideal_ps(job, RATE, LATENCY)
    assert [use.remote_bytes for use in result.per_rank] == form.remote_bytes(job)
    assert (result.rounds, result.barriers) == (form.rounds(job), form.barriers(job))
    moved = {}
    for t in form.transfers(job):
        pair = (t.rank, t.peer) if t.write else (t.peer, t.rank)
        moved[pair] = moved.get(pair, 0) + t.nbytes
    assert {(p.src, p.dst): p.bytes for p in result.pairs} == {pair: n for pair, n in moved.items() if n}


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@pytest.mark.parametrize("ranks,cores", [(2, 1), (4, 2), (8, 4), (16, 1)])
def test_closed_forms_hold_on_any_number_of_cores(kernel, ranks, cores):
    form, job = find(*kernel), Job(ranks, 16384, pl.FP32, cores)
    result, _ = run(kernel, job, timing_only=True)
    expected = form.ideal_ps(job, RATE, LATENCY)
    if expected is not None:
        assert result.kernel_ps == expected
    else:  # several cores on different links are faster than one; two directions need two links
        assert cores > 1 or kernel[1] == "ring_bidirectional"
    assert (result.rounds, result.barriers) == (form.rounds(job), form.barriers(job))


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@pytest.mark.parametrize("fences", ["statement", "notify"])
@pytest.mark.parametrize("machine", ["ideal", "ideal-switch", "a2"])
def test_nothing_is_faster_than_its_bound(kernel, machine, fences):
    form, job, platform = find(*kernel), Job(8, 8192, pl.FP32, 2, 16384), load_platform(machine)
    topology = build_topology(platform, 8)
    bound = bound_ps(form.transfers(job), form.latencies(job), platform, topology, range(8))
    assert bound <= run(kernel, job, machine, timing_only=True, fences=fences)[0].kernel_ps


@pytest.mark.parametrize("collective,name", KERNELS)
def test_no_form_where_pieces_differ(collective, name):
    form = find(collective, name)
    assert form.ideal_ps(Job(4, 4096, pl.FP32, tile_bytes=1024), RATE, LATENCY) is None
    if "2(P-1)" in form.formula:
        assert form.ideal_ps(Job(4, 1001, pl.FP32), RATE, LATENCY) is None


def test_the_convoy_on_a_switch_and_its_cure():
    job = Job(16, MIB, pl.FP32)
    # Everybody reads peer 0 first, whose port 15 share, and so on: (P-1)² turns instead of P-1.
    assert run(("allreduce", "mesh"), job, "ideal-switch", timing_only=True)[0].kernel_ps == 5_064_164_800
    rotated, _ = run(("allreduce", "mesh_rotated"), job, "ideal-switch", timing_only=True)
    assert rotated.kernel_ps == 660_145_600 == find("allreduce", "mesh_rotated").ideal_ps(job, RATE, LATENCY)


def test_rotation_over_cores_uses_all_links_of_a_full_mesh():
    job = Job(8, MIB, pl.FP32, 7, 32768)
    ascending, _ = run(("allreduce", "mesh"), job, "a2", timing_only=True)
    rotated, _ = run(("allreduce", "mesh_rotated"), job, "a2", timing_only=True)
    assert rotated.kernel_ps * 2 < ascending.kernel_ps
    assert min(link.utilisation for link in rotated.links) > 0.5


def test_two_cores_drive_the_two_directions_of_a_ring():
    # 2(P-1)(3L + N/(2P·B)) = 6 · (3,000,000 + 5,242,880)
    result, _ = run(("allreduce", "ring_bidirectional"), Job(4, MIB, pl.FP32, 2))
    assert result.kernel_ps == 49_457_280
    assert {p.bytes for p in result.pairs} == {3 << 18}
    assert len(result.pairs) == 8


def test_ring_moves_one_chunk_per_rank_and_step_in_constant_time():
    result, trace = run(("allreduce", "ring"), Job(4, MIB, pl.FP32))
    for lane in trace.lanes:
        moves = [op for op in lane.operations if op.kind == "remote_load"]
        assert [(op.peer, op.nbytes) for op in moves] == [((lane.rank - 1) % 4, MIB)] * 6
        # A signal, a request and its reply, then 256 KiB: 3L + 10,485,760 ps a step; the first signal is L.
        assert [op.start for op in moves] == [1_000_000 + k * 13_485_760 for k in range(6)]
    assert {p.name for p in result.phases} == {"stage", "reduce-scatter", "all-gather"}


def test_hierarchical_keeps_most_bytes_inside_its_groups():
    result, _ = run(("allreduce", "hierarchical"), Job(8, MIB, pl.FP32, group=4))
    leaving = [sum(p.bytes for p in result.pairs if p.src == r and p.dst // 4 != r // 4) for r in range(8)]
    # 2(P-G)/(P·G)·N = 2 · 4/32 · 1 MiB of the 2(P-1)/P·N = 1.75 MiB
    assert leaving == [1 << 18] * 8
    assert result.max_remote_bytes == 7 << 18


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@pytest.mark.parametrize("machine", ["ideal", "a2"])
def test_timing_only_gives_the_same_times(kernel, machine):
    job = Job(4, 5001, pl.FP32, 2, 4096)
    full, _ = run(kernel, job, machine)
    bare, _ = run(kernel, job, machine, timing_only=True)
    fields = {"per_rank", "phases", "links", "pairs", "critical_path", "kernel_ps", "total_ps"}
    assert full.model_dump(include=fields) == bare.model_dump(include=fields)


def test_defaults_restrictions_and_bad_names():
    assert DEFAULTS.keys() == CATALOGUE.keys()
    assert find("allreduce") is find("allreduce", "two_phase")
    for name in ("halving_doubling", "recursive_doubling"):
        assert find("allreduce", name).restriction(Job(6, 8, pl.FP32)) == (
            "the number of ranks must be a power of two, got 6"
        )
    assert "groups of 2" in find("allreduce", "hierarchical").restriction(Job(7, 8, pl.FP32))
    with pytest.raises(ConfigError, match=r"all_to_all.*got 'allreduc'.*allreduce"):
        find("allreduc", "mesh")
    with pytest.raises(ConfigError, match=r"algorithm of broadcast.*got 'binominal'.*binomial"):
        find("broadcast", "binominal")
    for bad in ({"ranks": 1}, {"count": 0}, {"cores": 0}, {"root": 2}):
        with pytest.raises(ConfigError, match=f"^{next(iter(bad))} must be"):
            Job(**{"ranks": 2, "count": 8, "dtype": pl.FP32, **bad})
