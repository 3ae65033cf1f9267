"""Lists and ranges of a sweep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a3sim.errors import ConfigError
from a2a3sim.experiments.sweep_axes import expand, expand_texts
from a2a3sim.units import parse_rate, parse_size


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2,4,8", [2, 4, 8]),
        ("2:17", list(range(2, 18))),
        ("2:64:x2", [2, 4, 8, 16, 32, 64]),
        ("2:63:x2", [2, 4, 8, 16, 32]),
        ("2:10:+4", [2, 6, 10]),
        ("1:8:x2,3", [1, 2, 4, 8, 3]),
        ("7", [7]),
        ("4:10:x1.5", [4, 6, 9]),
    ],
)
def test_counts(text, values):
    assert expand("--ranks", text) == values


def test_sizes_carry_their_units():
    assert expand("--size", "1KiB:1MiB:x32", parse_size) == [1024, 32768, 1048576]
    assert expand("--size", "1KiB:3KiB:+1KiB,5B", parse_size) == [1024, 2048, 3072, 5]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("10GB/s:40GB/s:x2", ["10GB/s", "20GB/s", "40GB/s"]),
        ("10GB/s:30GB/s:+10GB/s", ["10GB/s", "20GB/s", "30GB/s"]),
        ("500MB/s:1GB/s:+250MB/s", ["500MB/s", "750MB/s", "1000MB/s"]),
        ("0:1us:+500ns", ["0us", "0.5us", "1us"]),
        ("0.5us:2us:x2", ["0.5us", "1us", "2us"]),
        ("50%:100%:+25%", ["50%", "75%", "100%"]),
        ("1:4:x2", ["1", "2", "4"]),
        ("24cycles,30cycles", ["24cycles", "30cycles"]),
        ("pair,all", ["pair", "all"]),
        ("unlimited", ["unlimited"]),
    ],
)
def test_parameters_stay_texts_in_the_unit_of_the_start(text, values):
    assert expand_texts("--set k", text) == values


@given(st.integers(1, 500), st.integers(1, 500), st.integers(0, 40))
def test_a_range_of_rates_is_what_arithmetic_says(low, step, count):
    high = low + step * count
    texts = expand_texts("--set k", f"{low}GB/s:{high}GB/s:+{step}GB/s")
    assert [parse_rate(text) for text in texts] == [(low + k * step) * 10**9 for k in range(count + 1)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: expand("--ranks", "2,,4"), "--ranks: an empty value"),
        (lambda: expand("--ranks", "2,4,2"), "--ranks: 2 is named twice"),
        (lambda: expand("--ranks", "8:2"), "must go up"),
        (lambda: expand("--ranks", "2:8:2"), "first:last:xFACTOR or first:last:[+]STEP"),
        (lambda: expand("--ranks", "2:8:x1"), "must be above 1"),
        (lambda: expand("--ranks", "0:8:x2"), "must start above 0"),
        (lambda: expand("--ranks", "two"), "--ranks: a count must be"),
        (lambda: expand("--size", "1KiB:4KiB", parse_size), "1KiB:64MiB:x4"),
        (lambda: expand("--size", "1KiB:4096:x2", parse_size), "a size needs a unit"),
        (lambda: expand("--size", "1B:1GiB:+1B", parse_size), "has 1073741824 values"),
        (lambda: expand("--size", "1KiB:4KiB:x1.0000001", parse_size), "more than 1000 values"),
        (lambda: expand_texts("--set k", "1GB/s:5us:x2"), "must have a unit that goes with 'GB/s'"),
        (lambda: expand_texts("--set k", "fast:slow:x2"), "needs numbers with units"),
    ],
)
def test_bad_axes_say_what_is_wrong(call, said):
    with pytest.raises(ConfigError, match=said):
        call()
