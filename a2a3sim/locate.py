"""Where in the user's program something happened: frames, errors with file and line, foreign exceptions."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import FrameType

import a2a3sim.models
from a2a3sim.errors import A2A3Error, KernelError

__all__ = ["foreign", "internal", "located", "shown", "user_frame"]

_PACKAGE = Path(__file__).parent
_OWN = (f"{_PACKAGE}/", f"{Path(a2a3sim.models.__file__).parent}/")
# Shipped kernels and experiments are programs like the user's.
_PROGRAMS = (f"{_PACKAGE / 'kernels'}/", f"{_PACKAGE / 'experiments'}/")


def internal(path: str) -> bool:
    """Whether a source file is the simulator's own, not a program's."""
    return path.startswith(_OWN) and not path.startswith(_PROGRAMS)


def user_frame() -> FrameType:
    """The innermost running frame that is not the simulator's own code."""
    frame = sys._getframe(1)
    while frame.f_back is not None and internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _place(error: BaseException) -> str:
    """``file:line: `` of the innermost frame of a traceback that is not the simulator's own."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        if not internal(path):
            found = f"{shown(path)}:{line}: "
    return found


def shown(path: str) -> str:
    """A path as reports print it: relative below the working directory."""
    base = str(Path.cwd()) + "/"
    return path[len(base) :] if path.startswith(base) else path


def located(error: A2A3Error, who: str = "") -> A2A3Error:
    """Put file, line and rank in front of an error's message, once.

    Args:
        who: for example ``rank 3``.
    """
    if error.located or error.site is not None:
        return error
    place = _place(error)
    if place:
        error.place, error.who = place, who
        text = error.args[0] if error.args else ""
        error.args = (f"{place}{who}{': ' if who else ''}{text}", *error.args[1:])
        error.located = True
    return error


def foreign(error: Exception, who: str) -> KernelError:
    """The error for an exception of the program's own Python code."""
    wrapped = KernelError(f"{_place(error)}{who}: the program raised {type(error).__name__}: {error}")
    wrapped.located = True
    return wrapped
