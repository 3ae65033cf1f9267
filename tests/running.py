"""The one way in which the tests compile and run programs, scripts and commands."""

import sys


def calls_of(work) -> int:
    """Function calls, of Python and of C, that ``work()`` makes: a cost that no busy machine changes."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
