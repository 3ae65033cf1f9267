"""Units: exact in both directions, and strict about what a text means."""

import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a3sim import units
from a2a3sim.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("1B", 1),
        ("1KB", 1000),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("1 MiB", 1_048_576),
        ("1.5KiB", 1536),
        (" 64GiB ", 68_719_476_736),
        ("1_000B", 1000),
        ("2e3MB", 2_000_000_000),
        (64, 64),
    ],
)
def test_sizes(text, nbytes):
    assert units.parse_size(text) == nbytes


@pytest.mark.parametrize(
    ("text", "ps"),
    [
        ("0", 0),
        ("1ps", 1),
        ("900ns", 900_000),
        ("0.1us", 100_000),
        ("232.25ns", 232_250),
        ("8.08us", 8_080_000),
        ("1µs", 1_000_000),  # micro sign
        ("1μs", 1_000_000),  # Greek mu
        ("2ms", 2_000_000_000),
        ("1s", 10**12),
        ("0.000000000001s", 1),
        (17, 17),
    ],
)
def test_times(text, ps):
    assert units.parse_time(text) == ps


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("25GB/s", 25_000_000_000),
        ("26.2GB/s", 26_200_000_000),
        ("24GiB/s", 25_769_803_776),
        ("224Gb/s", 28_000_000_000),  # bits: 224 / 8
        ("1.6TB/s", 1_600_000_000_000),
        ("8bit/s", None),
    ],
)
def test_rates(text, rate):
    if rate is None:
        with pytest.raises(ConfigError, match="units"):
            units.parse_rate(text)
    else:
        assert units.parse_rate(text) == rate


def test_a_rate_per_cycle_needs_a_clock():
    assert units.parse_rate("84B/cycle", 1_850_000_000) == 155_400_000_000
    with pytest.raises(ConfigError, match="B/cycle"):
        units.parse_rate("84B/cycle")


def test_shares_and_cycles_are_exact():
    assert units.parse_fraction("85%") == Fraction(17, 20) == units.parse_fraction("0.85")
    assert units.parse_cycles("2.11cycles") == Fraction(211, 100) == units.parse_cycles("2.11")
    assert units.parse_frequency("1.85GHz") == 1_850_000_000
    assert units.parse_count("48") == 48


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (units.parse_size, "64", "a size needs a unit, got '64': say 1024B or 1KiB"),
        (units.parse_time, "5", "a time needs a unit, got '5': say 900ns or 1us"),
        (units.parse_rate, "10", "a rate needs a unit, got '10': say 25GB/s"),
        (units.parse_frequency, "1850", "needs a unit"),
        (units.parse_size, "1Kib", "did you mean 'KiB'"),
        (units.parse_rate, "1GB", "did you mean 'GB/s'"),
        (units.parse_time, "1msec", "did you mean 'ms'"),
        (units.parse_time, "0.5ps", "must be a whole number of picoseconds, got '0.5ps'"),
        (units.parse_size, "0.3KiB", "must be a whole number of bytes"),
        (units.parse_count, "1.5", "must be a whole number, got '1.5'"),
        (units.parse_size, "-1B", "must not be negative, got '-1B'"),
        (units.parse_size, -1, "must not be negative, got -1"),
        (units.parse_count, "8 cores", "must be a plain number"),
        (units.parse_size, "", "got ''"),
        (units.parse_size, "KiB", "got 'KiB'"),
        (units.parse_size, "1,5KiB", "got '1,5KiB'"),
        (units.parse_size, "nanKiB", "got 'nanKiB'"),
        (units.parse_size, "٣KiB", "got '٣KiB'"),
        (units.parse_rate, 1.5, "must be a text such as 25GB/s, got 1.5"),
        (units.parse_size, True, "got True"),
        (units.parse_size, None, "got None"),
    ],
)
def test_what_is_refused(parse, text, message):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("ps", "shown"),
    [
        (0, "0 ns"),
        (1, "1 ps"),
        (2_500_000, "2.5 us"),
        (1_234_567, "1.235 us"),
        (12_345_678, "12.35 us"),
        (999_960, "1 us"),  # not 1000 ns
        (999_940, "999.9 ns"),
        (10**12, "1 s"),
        (54_321 * 10**12, "54321 s"),
        (-1500, "-1.5 ns"),
    ],
)
def test_times_for_people(ps, shown):
    assert units.format_time(ps) == shown


def test_sizes_and_rates_for_people():
    assert units.format_size(1_048_576) == "1 MiB"
    assert units.format_size(1_572_864) == "1.5 MiB"
    assert units.format_size(1500) == "1.465 KiB"  # 1500 / 1024 = 1.46484
    assert units.format_size(0) == "0 B"
    assert units.format_rate(26_200_000_000) == "26.2 GB/s"
    assert units.format_rate(1_538_000_000_000, exact=True) == "1538 GB/s"


@given(st.integers(0, 10**18))
def test_exact_texts_mean_the_same_number(value):
    assert units.parse_time(units.format_time(value, exact=True)) == value
    assert units.parse_size(units.format_size(value, exact=True)) == value
    assert units.parse_rate(units.format_rate(value, exact=True)) == value


@given(st.integers(1, 10**18))
def test_short_texts_are_within_half_a_unit_of_the_fourth_digit(value):
    for show, read in ((units.format_time, units.parse_time), (units.format_rate, units.parse_rate)):
        text = show(value)
        assert len(text.split()[0].replace(".", "")) <= 4 or value >= 9_999_500_000_000_000
        assert abs(read(text) - value) * 2000 <= value


@given(
    st.integers(0, 10**9), st.integers(0, 999), st.sampled_from([("ns", 10**3), ("us", 10**6), ("ms", 10**9)])
)
def test_decimals_are_exact(whole, thousandths, unit):
    name, factor = unit
    expected = whole * factor + thousandths * factor // 1000
    assert units.parse_time(f"{whole}.{thousandths:03d}{name}") == expected


@given(st.fractions(0, 10**6, max_denominator=1000), st.integers(1, 10**10))
def test_cycles_round_up_to_the_next_picosecond(cycles, hertz):
    ps = units.cycles_ps(cycles, hertz)
    assert (ps - 1) * hertz < cycles * 10**12 <= ps * hertz


def test_cycles_and_transfers_by_hand():
    assert units.cycles_ps(20, 1_850_000_000) == 10_811  # 20 / 1.85 GHz = 10810.81 ps
    assert units.cycles_ps(Fraction(211, 100), 10**9) == 2110
    assert units.transfer_ps(1_048_576, 25_000_000_000) == 41_943_040
    assert units.transfer_ps(1, 26_200_000_000) == 39  # 38.17
    assert units.transfer_ps(1_048_576, None) == 0


def test_units_need_no_heavy_module():
    code = "import sys, a2a3sim.units; print([m for m in ('pydantic', 'numpy', 'simpy') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
