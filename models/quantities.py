"""The kinds of values a machine's parameters have: how each is read, checked and written.

A value is written as a text with its unit and kept as a plain int, an exact fraction or a tuple of names;
``unlimited`` is kept as None.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, ValidationInfo

from a2a3sim import units
from a2a3sim.errors import ConfigError

__all__ = [
    "DTYPES", "INSTRUCTIONS", "AnyNumber", "Bytes", "Clock", "Count", "Cycles", "Dtypes", "Number", "Rate",
    "Room", "Rule", "Share", "Size", "SomeCycles", "SomeTime", "Time", "Unit", "Word",
]  # fmt: skip

DTYPES = {"fp32": 4, "fp16": 2, "bf16": 2, "int32": 4, "int16": 2, "int8": 1,
          "int64": 8, "uint8": 1, "uint32": 4, "bool": 1}  # fmt: skip
"""Element types and their bytes."""

INSTRUCTIONS = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "max": 2, "min": 2,
    "adds": 1, "subs": 1, "muls": 1, "divs": 1, "maxs": 1, "mins": 1,
    "exp": 1, "ln": 1, "sqrt": 1, "rsqrt": 1, "recip": 1, "abs": 1, "neg": 1, "relu": 1,
    "cast": 1, "copy": 1, "fill": 0, "row_sum": 1, "row_max": 1, "row_min": 1, "matmul": 2,
}  # fmt: skip
"""Instructions a machine may price by name, and their tile operands (``s``: the second one is a scalar)."""


class Unit(NamedTuple):
    """The unit a value is kept in, and how the value is written exactly for people."""

    symbol: str
    write: Callable[[Any], str]


def _compact(write: Callable[..., str]) -> Callable[[Any], str]:
    return lambda value: write(value, exact=True).replace(" ", "") if value else "0"


def _decimal(value: Fraction) -> str:
    """A fraction as a decimal where it has one, else as ``a/b``."""
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    if denominator != 1:
        return str(value)
    places = max(len(str(value.denominator)) * 4, 1)
    whole, rest = divmod(value.numerator * 10**places // value.denominator, 10**places)
    decimals = f"{rest:0{places}d}".rstrip("0")
    return f"{whole}.{decimals}" if decimals else str(whole)


def _percent(value: Fraction) -> str:
    return f"{_decimal(value * 100)}%"


def _gigahertz(value: int) -> str:
    return f"{_decimal(Fraction(value, 10**9))}GHz"


def _cycles(value: Fraction) -> str:
    return f"{_decimal(value)}cycles" if value else "0"


def _read(
    parse: Callable[..., Any], *, zero: bool = True, without: str = "", highest: int | None = None
) -> BeforeValidator:
    """A validator around one of the ``units`` parsers; ``without`` is the word that stands for None."""

    def read(text: Any, info: ValidationInfo) -> Any:
        if without and (text is None or text in (without, "unlimited")):
            return None
        if parse is units.parse_rate:
            value = parse(text, (info.context or {}).get("clock"))
        else:
            value = parse(text)
        if not zero and value == 0:
            other = f" (or {without!r})" if without else ""
            raise ConfigError(f"must be above 0{other}, got {text!r}")
        if highest is not None and value > highest:
            raise ConfigError(f"must be at most {highest}, got {text!r}")
        return value

    return BeforeValidator(read)


def _names(allowed: dict[str, int]) -> BeforeValidator:
    def read(text: Any) -> tuple[str, ...]:
        if isinstance(text, tuple):
            return text
        if not isinstance(text, str):
            raise ConfigError(f"must be names with commas between them, got {text!r}")
        names = tuple(name.strip() for name in text.split(",") if name.strip() and name.strip() != "none")
        for name in names:
            if name not in allowed:
                known = ", ".join(allowed)
                raise ConfigError(f"must be among {known}, got {name!r}{units.nearest(name, allowed)}")
        return tuple(dict.fromkeys(names))

    return BeforeValidator(read)


_time = _compact(units.format_time)
_size = _compact(units.format_size)
_rate = _compact(units.format_rate)

Time = Annotated[int, _read(units.parse_time), Unit("ps", _time)]
SomeTime = Annotated[int | None, _read(units.parse_time), Unit("ps", _time)]
Bytes = Annotated[int, _read(units.parse_size), Unit("B", _size)]
Size = Annotated[int, _read(units.parse_size, zero=False), Unit("B", _size)]
Rule = Annotated[int | None, _read(units.parse_size, zero=False, without="none"), Unit("B", _size)]
Room = Annotated[int | None, _read(units.parse_size, zero=False, without="unlimited"), Unit("B", _size)]
Rate = Annotated[int | None, _read(units.parse_rate, zero=False, without="unlimited"), Unit("B/s", _rate)]
Clock = Annotated[int, _read(units.parse_frequency, zero=False), Unit("Hz", _gigahertz)]
Cycles = Annotated[Fraction, _read(units.parse_cycles), Unit("cycles", _cycles)]
SomeCycles = Annotated[Fraction | None, _read(units.parse_cycles), Unit("cycles", _cycles)]
Count = Annotated[int, _read(units.parse_count, zero=False), Unit("count", str)]
Number = Annotated[int | None, _read(units.parse_count, zero=False, without="unlimited"), Unit("count", str)]
AnyNumber = Annotated[int | None, _read(units.parse_count, zero=False, without="any"), Unit("count", str)]
Share = Annotated[Fraction, _read(units.parse_fraction, zero=False, highest=1), Unit("share", _percent)]
Dtypes = Annotated[tuple[str, ...], _names(DTYPES), Unit("dtypes", lambda names: ", ".join(names) or "none")]
Word = Annotated[str, Unit("name", str)]
