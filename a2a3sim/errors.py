"""Errors a user may meet. Each message says what was wrong, where, what was found and what would be right."""

from types import CodeType
from typing import Any

__all__ = [
    "A2A3Error",
    "ConfigError",
    "DeadlockError",
    "FindingsWarning",
    "InternalError",
    "InvalidOperationError",
    "KernelError",
    "NumericsError",
    "ParserError",
    "ParserSyntaxError",
    "ParserTypeError",
    "SelectionError",
    "WorkerError",
]


class A2A3Error(Exception):
    """Base of every error that a2a3sim raises on purpose.

    Attributes:
        located: its message begins with the place in the user's program.
        place, who: that place, ``file:line: ``, and whose it was, ``rank 3``; empty where nobody knows.
        site, lane: what the machine keeps of the user's call, in an error that the machine itself raises.
    """

    located = False
    place = who = ""
    site: tuple[CodeType, int] | None = None
    lane: Any = None  # a Lane of the models, which build on this module


class ConfigError(A2A3Error, ValueError):
    """A platform file, an override, a flag or a configuration object is wrong (exit code 2)."""


class KernelError(A2A3Error):
    """The simulated program did something the machine cannot do: bounds, capacity, type, alignment."""


class DeadlockError(KernelError):
    """Nothing can run any more and at least one core waits.

    Attributes:
        report: the full text, one paragraph per parked core.
    """

    def __init__(self, message: str, report: str = "") -> None:
        super().__init__(message)
        self.report = report or message


class FindingsWarning(UserWarning):
    """A run under plain Python has findings of severity error, or wrong numerics."""


class NumericsError(A2A3Error):
    """A result differs from its reference beyond the tolerance that was asked for."""


class ParserError(A2A3Error):
    """PyPTO's base class for errors in a program body (upstream raises them at decoration time)."""


class InvalidOperationError(ParserError, ValueError, TypeError):
    """An operation of the language was called with a wrong kind of operand or a bad value."""


class ParserSyntaxError(ParserError, ValueError):
    """A construct stands where the language does not allow it."""


class ParserTypeError(ParserError, TypeError):
    """A callee or keyword is of the wrong kind, such as ``device=`` on a kernel."""


class InternalError(A2A3Error, RuntimeError):
    """PyPTO's InternalError: a program breaks an invariant between its parts."""


class SelectionError(A2A3Error, TypeError):
    """A call does not say which of several programs it means."""


class WorkerError(A2A3Error, RuntimeError):
    """A worker is used in a state that does not allow it, for example after it was closed."""
