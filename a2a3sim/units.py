"""Sizes, times, rates and frequencies as people write them, and as the simulator keeps them.

Inside, a size is an integer number of bytes, a time of picoseconds, a rate of bytes per second and a
frequency of hertz; shares and cycles are exact fractions. This is the only module that converts. A text
needs its unit (``"64"`` could be bytes or kilobytes), an ``int`` from Python is already in the base unit,
and nothing passes through a float: ``"0.1us"`` is 100000 ps and nothing else.

``kB MB GB`` are powers of 1000, ``KiB MiB GiB`` powers of 1024; ``Gb/s`` counts bits.
"""

import re
from collections.abc import Mapping
from fractions import Fraction

from a2a3sim.errors import ConfigError

__all__ = [
    "PS_PER_S",
    "cycles_ps",
    "format_rate",
    "format_size",
    "format_time",
    "nearest",
    "parse_count",
    "parse_cycles",
    "parse_fraction",
    "parse_frequency",
    "parse_rate",
    "parse_size",
    "parse_time",
    "transfer_ps",
]

PS_PER_S = 10**12

_SIZES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}  # fmt: skip
_TIMES = {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "μs": 10**6, "ms": 10**9, "s": 10**12}
_RATES = {f"{unit}/s": factor for unit, factor in _SIZES.items()} | {
    f"{prefix}{bit}/s": Fraction(factor, 8)
    for prefix, factor in (("k", 10**3), ("M", 10**6), ("G", 10**9), ("T", 10**12))
    for bit in ("b", "bit")
}
_FREQUENCIES = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
_PER_CYCLE = "B/cycle"

_NUMBER = re.compile(
    r"\s*([+-]?)((?:[0-9][0-9_]*)?(?:\.[0-9_]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(\S*)\s*", re.ASCII
)


def parse_size(text: str | int) -> int:
    """Bytes: ``"1MiB"``, ``"1KB"``, ``"0"``; an ``int`` is taken as bytes."""
    return _whole("a size", text, _SIZES, "1024B or 1KiB", "bytes")


def parse_time(text: str | int) -> int:
    """Picoseconds: ``"900ns"``, ``"1.5us"``, ``"0"``; an ``int`` is taken as picoseconds."""
    return _whole("a time", text, _TIMES, "900ns or 1us", "picoseconds")


def parse_rate(text: str | int, clock: int | None = None) -> int:
    """Bytes per second: ``"25GB/s"``, ``"24GiB/s"``, ``"200Gb/s"``; an ``int`` is taken as bytes per second.

    With a ``clock`` in hertz, ``"84B/cycle"`` is understood too.
    """
    units = _RATES if clock is None else _RATES | {_PER_CYCLE: clock}
    return _whole("a rate", text, units, "25GB/s", "bytes per second")


def parse_frequency(text: str | int) -> int:
    """Hertz: ``"1.85GHz"``; an ``int`` is taken as hertz."""
    return _whole("a frequency", text, _FREQUENCIES, "1.85GHz", "hertz")


def parse_count(text: str | int) -> int:
    """A number of things: ``"8"``."""
    return _whole("a count", text, {"": 1}, "8", "")


def parse_fraction(text: str | int | Fraction) -> Fraction:
    """A share as an exact fraction: ``"85%"`` or ``"0.85"``."""
    return _exact("a share", text, {"": 1, "%": Fraction(1, 100)}, "85%")


def parse_cycles(text: str | int | Fraction) -> Fraction:
    """Clock cycles, not necessarily whole: ``"24"``, ``"2.11cycles"``."""
    return _exact("a number of cycles", text, {"": 1, "cycle": 1, "cycles": 1}, "24cycles")


def cycles_ps(cycles: int | Fraction, hertz: int) -> int:
    """The time of ``cycles`` at a clock, up to the next picosecond."""
    exact = Fraction(cycles)
    return -(-exact.numerator * PS_PER_S // (exact.denominator * hertz))


def transfer_ps(nbytes: int, rate: int | None) -> int:
    """The time ``nbytes`` take at ``rate`` bytes per second (None: unlimited), up to the next picosecond."""
    return 0 if rate is None else -(-nbytes * PS_PER_S // rate)


def format_time(ps: int, exact: bool = False) -> str:
    """A time for people, ``"1.235 us"``: four digits, or every digit with ``exact``."""
    return _format(ps, (("ps", 1), ("ns", 10**3), ("us", 10**6), ("ms", 10**9), ("s", 10**12)), "ns", exact)


def format_size(nbytes: int, exact: bool = False) -> str:
    """A size for people, ``"1.5 MiB"``: four digits, or every digit with ``exact``."""
    units: tuple[tuple[str, int], ...]
    units = (("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40))
    if exact:  # a remainder of a binary unit has many decimals; step down until there is none
        units = tuple(unit for unit in units if nbytes % unit[1] == 0)
    return _format(nbytes, units, "B", exact)


def format_rate(rate: int, exact: bool = False) -> str:
    """A rate for people, ``"26.2 GB/s"``: four digits, or every digit with ``exact``."""
    units: tuple[tuple[str, int], ...]
    units = (("B/s", 1), ("kB/s", 10**3), ("MB/s", 10**6), ("GB/s", 10**9), ("TB/s", 10**12))
    if exact:
        units = units[:-1]  # machines are compared in GB/s
    return _format(rate, units, "B/s", exact)


def nearest(name: str, valid) -> str:
    """`` (did you mean 'x'?)`` for the closest valid name, or nothing where none is close."""
    from difflib import get_close_matches  # only errors need it

    close = get_close_matches(name, list(valid), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _whole(what: str, text: str | int, units: Mapping[str, int | Fraction], example: str, base: str) -> int:
    if isinstance(text, int) and not isinstance(text, bool):
        if text < 0:
            raise ConfigError(f"{what} must not be negative, got {text!r}")
        return text
    value = _exact(what, text, units, example)
    if value.denominator != 1:
        raise ConfigError(f"{what} must be a whole number{base and ' of ' + base}, got {text!r}")
    return value.numerator


def _exact(
    what: str, text: str | int | Fraction, units: Mapping[str, int | Fraction], example: str
) -> Fraction:
    if isinstance(text, int | Fraction) and not isinstance(text, bool):
        if text < 0:
            raise ConfigError(f"{what} must not be negative, got {text!r}")
        return Fraction(text)
    if not isinstance(text, str):
        raise ConfigError(f"{what} must be a text such as {example}, got {text!r}")
    match = _NUMBER.fullmatch(text)
    sign, digits, unit = match.groups() if match else ("", "", "")
    try:
        number = Fraction(digits)
    except ValueError:  # no match, or nothing before the unit
        raise ConfigError(f"{what} must be a number with a unit such as {example}, got {text!r}") from None
    if unit not in units:
        if not unit and number == 0:
            return number
        if not unit:
            raise ConfigError(f"{what} needs a unit, got {text!r}: say {example}")
        known = [name for name in units if name]
        if not known:
            raise ConfigError(f"{what} must be a plain number such as {example}, got {text!r}")
        folded = [name for name in known if name.lower() == unit.lower()]
        hint = f" (did you mean {folded[0]!r}?)" if folded else nearest(unit, known)
        raise ConfigError(f"{what} must have one of the units {', '.join(known)}, got {text!r}{hint}")
    if sign == "-" and number:
        raise ConfigError(f"{what} must not be negative, got {text!r}")
    return number * units[unit]


def _format(value: int, units, zero: str, exact: bool) -> str:
    if value == 0:
        return f"0 {zero}"
    sign, magnitude = ("-", -value) if value < 0 else ("", value)
    index = max((i for i, (_, factor) in enumerate(units) if magnitude >= factor), default=0)
    while True:
        unit, factor = units[index]
        if exact:
            return f"{sign}{_digits(magnitude, factor, 15)} {unit}"
        whole = len(str(magnitude // factor))
        text = _digits(magnitude, factor, max(0, 4 - whole))
        # 999.96 ns rounds to 1000: that is the next unit
        if index + 1 < len(units) and Fraction(text) * factor >= units[index + 1][1]:
            index += 1
            continue
        return f"{sign}{text} {unit}"


def _digits(magnitude: int, factor: int, places: int) -> str:
    """``magnitude / factor`` with at most ``places`` decimals, half to even, without trailing zeros."""
    scaled = round(Fraction(magnitude * 10**places, factor))
    whole, rest = divmod(scaled, 10**places)
    decimals = f"{rest:0{places}d}".rstrip("0") if places else ""
    return f"{whole}.{decimals}" if decimals else str(whole)
