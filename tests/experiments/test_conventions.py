"""Sizes and bandwidths of nccl-tests: one worked example per collective."""

from types import SimpleNamespace

import pytest

from a2a3sim.errors import ConfigError
from a2a3sim.experiments.conventions import (
    algbw,
    busbw,
    convention,
    element,
    payload,
    size_of,
    title_of,
    type_name,
)
from a2a3sim.kernels import CATALOGUE, find
from a2a3sim.kernels.collective import Job

FP32 = element("fp32")
US = 1_000_000


@pytest.mark.parametrize(
    ("collective", "size", "count", "bus"),
    [
        # All take 4 ranks and 10 us. All-reduce of 1,000,000 B: 100 GB/s, times 2·3/4.
        ("allreduce", 1_000_000, 250_000, 150e9),
        # Every rank puts in 250,000 B and gets 1,000,000 B out: that is the size; count is one rank's part.
        ("allgather", 1_000_000, 62_500, 75e9),
        # Every rank puts in 1,000,000 B and keeps 250,000 B of the sum.
        ("reduce_scatter", 1_000_000, 62_500, 75e9),
        # Every rank has 250,000 B for each of four ranks, itself included.
        ("all_to_all", 1_000_000, 62_500, 75e9),
        # The root's 1,000,000 B pass every rank's port once.
        ("broadcast", 1_000_000, 250_000, 100e9),
    ],
)
def test_size_count_and_bandwidths(collective, size, count, bus):
    assert convention(collective).count(size, 4, 4) == count
    assert algbw(size, 10 * US) == 100e9
    assert busbw(collective, 4, size, 10 * US) == bus


def test_redop_and_root_are_shown_where_the_collective_has_them():
    shown = {name: (convention(name).redop, convention(name).root) for name in CATALOGUE}
    assert shown == {
        "allreduce": ("sum", -1),
        "reduce_scatter": ("sum", -1),
        "allgather": ("none", -1),
        "all_to_all": ("none", -1),
        "broadcast": ("none", 0),
    }


@pytest.mark.parametrize("collective", CATALOGUE)
@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_a_size_leads_to_the_payload_whose_size_it_is(collective, ranks):
    form = find(collective, next(iter(CATALOGUE[collective])))
    nbytes = payload(form, 4096 * ranks, ranks, FP32)
    job = Job(ranks, nbytes // 4, FP32)
    assert size_of(form, job) == 4096 * ranks
    larger_side = max(form.shapes(job), key=lambda shape: len(shape) and shape[-1] * shape[0])
    assert size_of(form, job) >= nbytes and larger_side


def test_sizes_are_rounded_down_to_whole_blocks():
    form = find("allgather", "mesh")
    # 1,000 B on 3 ranks: blocks of 83 whole floats, so 996 B.
    nbytes = payload(form, 1000, 3, FP32)
    assert size_of(form, Job(3, nbytes // 4, FP32)) == 996
    assert payload(form, 11, 3, FP32) == 0


def test_a_payload_of_an_unknown_ratio_is_refused():
    form = SimpleNamespace(collective="allreduce", name="odd", shapes=lambda job: ((3 * job.count,), (1,)))
    with pytest.raises(ConfigError, match="no whole payload of allreduce odd"):
        payload(form, 4, 2, FP32)


def test_names_are_those_that_people_know():
    assert [type_name(name) for name in ("fp32", "fp16", "bf16", "int8")] == [
        "float",
        "half",
        "bfloat16",
        "int8",
    ]
    assert [title_of(name) for name in ("allreduce", "all_to_all")] == ["all-reduce", "all-to-all"]


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'reduce_scatter'"):
        convention("reducescatter")
    with pytest.raises(ConfigError, match=r"dtype must be one of .*, got 'fp23'"):
        element("fp23")
