"""The values of one axis of a sweep as people write them: ``2,4,8``, ``2:64:x2``, ``10GB/s:100GB/s:+10GB/s``.

A range counts up from the first value to the last one, both included if the step meets it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import log
from typing import Any, NamedTuple

from a2a3sim import ConfigError, RunConfig
from a2a3sim.setting import Setting, parse_list
from a2a3sim.units import (
    parse_count,
    parse_cycles,
    parse_fraction,
    parse_frequency,
    parse_rate,
    parse_size,
    parse_time,
)

__all__ = ["MOST_POINTS", "WORKLOAD", "Axis", "expand", "expand_texts", "setting_axes"]

MOST_POINTS = 1_000_000  # of a sweep, and so of an axis

_MOST_FACTORS = 1000  # values of a range with a factor; they are exact fractions, so their digits add up

_STEP = re.compile(r"([x+])(.+)")
_QUANTITY = re.compile(r"([0-9][0-9_]*(?:\.[0-9_]+)?)(.*)", re.ASCII)
_PARSERS = (parse_rate, parse_size, parse_time, parse_frequency, parse_fraction, parse_cycles)


def expand(flag: str, text: str, parse: Callable[[str], int] = parse_count) -> list[int]:
    """Whole numbers in the base unit of ``parse``.

    Raises:
        ConfigError: a value or range that cannot be understood, goes down or names too many values.
    """
    example = "2:64:x2" if parse is parse_count else "1KiB:64MiB:x4"
    values: list[int] = []
    for part in _parts(flag, text):
        pieces = part.split(":")
        try:
            if len(pieces) == 1:
                values.append(parse(part))
                continue
            low, high = parse(pieces[0]), parse(pieces[1])
            if len(pieces) == 2 and parse is parse_count:
                sign, step = "+", Fraction(1)
            else:
                sign, amount = _step(flag, part, pieces, example)
                step = _factor(flag, part, amount) if sign == "x" else Fraction(parse(amount))
        except ConfigError as error:
            raise error if str(error).startswith(flag) else ConfigError(f"{flag}: {error}") from None
        values += [int(value) for value in _series(flag, part, Fraction(low), Fraction(high), sign, step)]
    return _different(flag, values)


def expand_texts(flag: str, text: str) -> list[str]:
    """Values of a platform parameter, each a text with its unit; those of a range keep the unit of its start.

    Raises:
        ConfigError: as `expand`.
    """
    values: list[str] = []
    for part in _parts(flag, text):
        pieces = part.split(":")
        if len(pieces) == 1:
            values.append(part)
            continue
        sign, amount = _step(flag, part, pieces, "10GB/s:100GB/s:x2")
        number, unit = _quantity(flag, part, pieces[0])
        if number == 0 and not unit:
            unit = _quantity(flag, part, pieces[1])[1]
        high = _in_unit(flag, part, pieces[1], unit)
        step = _factor(flag, part, amount) if sign == "x" else _in_unit(flag, part, amount, unit)
        values += [_decimal(value) + unit for value in _series(flag, part, number, high, sign, step)]
    return _different(flag, values)


def _parts(flag: str, text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise ConfigError(f"{flag}: an empty value in {text!r}")
    return parts


def _step(flag: str, part: str, pieces: Sequence[str], example: str) -> tuple[str, str]:
    match = _STEP.fullmatch(pieces[2].strip()) if len(pieces) == 3 else None
    if match is None:
        raise ConfigError(
            f"{flag}: a range must be first:last:xFACTOR or first:last:+STEP ({example}), got {part!r}"
        )
    return match[1], match[2]


def _factor(flag: str, part: str, text: str) -> Fraction:
    try:
        factor = Fraction(text)
    except (ValueError, ZeroDivisionError):
        factor = Fraction(0)
    if factor <= 1:
        raise ConfigError(f"{flag}: the factor of a range must be above 1, got {part!r}")
    return factor


def _series(
    flag: str, part: str, low: Fraction, high: Fraction, sign: str, step: Fraction
) -> Iterator[Fraction]:
    if high < low:
        raise ConfigError(f"{flag}: a range must go up, got {part!r}")
    if sign == "+":
        if step <= 0:
            raise ConfigError(f"{flag}: the step of a range must be above 0, got {part!r}")
        count = (high - low) // step + 1
        if count > MOST_POINTS:
            raise ConfigError(
                f"{flag}: {part!r} has {count} values, more than the {MOST_POINTS} points of a sweep"
            )
    elif low <= 0:
        raise ConfigError(f"{flag}: a range with a factor must start above 0, got {part!r}")
    elif log(high / low) / log(step) > _MOST_FACTORS:
        raise ConfigError(f"{flag}: {part!r} has more than {_MOST_FACTORS} values: take a larger factor")
    value = low
    while value <= high:
        yield value
        value = value * step if sign == "x" else value + step


def _different(flag: str, values: list) -> list:
    seen = set()
    for value in values:
        if value in seen:
            raise ConfigError(f"{flag}: {value} is named twice")
        seen.add(value)
    return values


def _quantity(flag: str, part: str, text: str) -> tuple[Fraction, str]:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{flag}: a range needs numbers with units, got {text!r} in {part!r}")
    return Fraction(match[1].replace("_", "")), match[2].strip()


def _in_unit(flag: str, part: str, text: str, unit: str) -> Fraction:
    """A quantity's number in another unit of its kind."""
    number, own = _quantity(flag, part, text)
    if own == unit or number == 0:
        return number
    for parse in _PARSERS:
        try:
            return number * Fraction(parse(f"1{own}")) / Fraction(parse(f"1{unit}"))
        except ConfigError:
            continue
    raise ConfigError(
        f"{flag}: {text!r} must have a unit that goes with {unit or 'a plain number'!r} in {part!r}"
    )


def _decimal(value: Fraction) -> str:
    """Exact where a decimal of 15 places can be."""
    whole, rest = divmod(round(value * 10**15), 10**15)
    decimals = f"{rest:015d}".rstrip("0")
    return f"{whole}.{decimals}" if decimals else str(whole)


class Axis(NamedTuple):
    """What a sweep varies beside the settings: its key, which is the flag's name, and its field of `Sweep`."""

    key: str
    field: str
    help: str
    read: Callable[[str, str], list[Any]]
    flags: tuple[str, ...] = ()


WORKLOAD = (
    Axis("collective", "collectives", "Default allreduce.", parse_list),
    Axis("algorithms", "algorithms", "Names, or all. Default mesh,two_phase.", parse_list, ("--algorithm",)),
    Axis("ranks", "ranks", "Numbers of ranks. Default 8.", expand),
    Axis("size", "sizes", "Payloads per rank, N. Default 1MiB.", partial(expand, parse=parse_size)),
    Axis("dtype", "dtypes", "Element types. Default fp32.", parse_list),
    Axis("cores", "cores", "Cores per device. Default: the platform's kernel.cores.", expand),
)


def setting_axes() -> list[Setting]:
    """The settings that a sweep can vary, in the order of the rows; the machine's stand before them."""
    return [s for s in RunConfig.settings() if s.axis and s.name not in ("machine", "platform_overrides")]
