"""The wording of the findings: what can go wrong on another schedule, and the cheapest repair.

Each function takes what is told of a folded finding (`a2a3sim.checks.findings.Told`) and gives message
and fix.
"""

from __future__ import annotations

__all__ = [
    "cell_read",
    "cell_written",
    "credit_delayed",
    "credit_missed",
    "credit_wiped",
    "early_release",
    "line_shared",
    "overflow",
    "overshoot",
    "race",
    "residue",
    "unfenced",
]


def race(told):
    """Two accesses to the same bytes."""
    if told.refs[0].rank == told.refs[1].rank:
        return _race_on_one_rank(told)
    writer, other = told.refs[0].rank, told.refs[1].rank
    first, second, place = told.by(0), told.by(1), told.place
    if told.subtype == "WAW":
        message = (
            f"{first} and {second} both write {place} and nothing orders them: "
            f"which value stays depends on the schedule."
        )
        fix = (
            f"Let one of them wait for a notify that the other rank sends after its write, or give "
            f"each writer "
            f"bytes of its own in {told.name}."
        )
    elif told.subtype == "RAW":
        message = (
            f"{second} takes bytes that {first} writes ({place}), but no wait guarantees that the "
            f"write is over "
            f"by then: on another schedule the old bytes are read."
        )
        fix = (
            f"Let rank {writer} notify after the write and rank {other} wait, before it reads, for a "
            f"value that "
            f"only this notify can bring about."
        )
    else:
        message = (
            f"{first} may overwrite {place} while {second} has still to read it: "
            f"no wait guarantees that the read is over."
        )
        fix = (
            f"Let rank {writer} wait, before it writes again, for a notify that rank {other} sends "
            f"after its read "
            f"(a closing barrier or a credit), or alternate two buffers."
        )
    return message + told.more, fix


def _race_on_one_rank(told):
    one, other = told.refs
    if told.threads[one.thread].group == told.threads[other.thread].group:
        between = "two cores of one kernel"
        fix = "Put pl.system.sync_all() between the two, or give each core bytes of its own."
    else:
        between = "two kernels that no declared tensor direction orders"
        fix = (
            f"Declare {told.name} as pl.Out or pl.InOut in the kernel that writes it and pass it on "
            f"to the other, "
            f"so that the second starts after the first has ended."
        )
    message = (
        f"{told.by(0)} and its {told.op(1)} touch the same bytes ({told.place}) from {between}: "
        f"on another schedule they happen in the other order, or at once."
    )
    return message + told.more, fix


def unfenced(told):
    """A notify, the access it should have waited for, and who relies on it."""
    if told.subtype == "not visible":
        state = "has left the core but need not be visible to other devices"
    else:
        state = "may still be under way in its pipe"
    message = (
        f"{told.by(0)} leaves while {told.op(1)} before it ({told.place}) {state}: "
        f"{told.by(2)} relies on the notify and is not ordered with it."
    )
    fix = "Put pl.system.fence() between the two; a barrier after the notify does not add the missing order."
    return message + told.more, fix


def early_release(told, cell: int, condition: str, origin: str, raced):
    """A wait and an update it should have waited for.

    Args:
        raced: the two accesses that race because of it, in words, or None.
    """
    if origin == "plain data":
        why = "a plain write to the cell's bytes, which is no credit"
    else:
        why = f"credits that {origin} on the cell had already needed"
    message = (
        f"{told.by(0)} ({condition} on cell {cell} of {told.name}) is met by {why}, "
        f"so it does not wait for {told.by(1)}."
    )
    message += told.more
    if raced is not None:
        message += f" That is why {raced[0]} and {raced[1]} race."
    fix = (
        "Give each use its own count (Add 1 and wait for Ge k in the k-th use), or its own cell, or "
        "take the used "
        "credits off again after the wait (notify the own cell with Add of their negative number)."
    )
    if origin == "an earlier launch":
        fix += " Over launches, pass the count on as an argument instead of restarting it."
    return message, fix


def overshoot(told, asked: int, final: int):
    """An Eq wait and an update that can carry the cell past its value."""
    message = (
        f"{told.by(0)} looks for exactly {asked}, but {told.by(1)} does not wait until it has looked, "
        f"and the cell "
        f"ends at {final}: if rank {told.refs[0].rank} is slow the value passes by and it waits for ever "
        f"(possible deadlock)."
    )
    fix = (
        "Wait with Ge on a counter that only grows, or let the notifier wait for an acknowledgement "
        "before it "
        "changes the cell again."
    )
    return message + told.more, fix


def credit_wiped(told):
    """A Set or plain write and another update of its cell."""
    message = (
        f"{told.by(0)} replaces the value of {told.place} and is not ordered with {told.by(1)}: the "
        f"one that is "
        f"applied last wins, so a credit can be lost or come back."
    )
    fix = (
        "Use AtomicAdd for all updates of the cell (clear it by adding the negative number of "
        "credits used), or "
        "give each writer its own cell."
    )
    return message + told.more, fix


_TAKE_OFF = "Let the core that waits take the credits off itself, after the wait (notify to the own rank)."


def credit_missed(told):
    """An update that lowers a cell for good before a wait has looked."""
    message = (
        f"{told.by(0)} can lower {told.place} before {told.by(1)} has seen it: "
        f"the credit is lost and the wait never ends."
    )
    return message + told.more, _TAKE_OFF


def credit_delayed(told):
    """An update that lowers a cell for a while before a wait has looked."""
    message = (
        f"{told.by(0)} can lower {told.place} between two looks of {told.by(1)}, "
        f"which then takes a later credit for the one it missed."
    )
    return message + told.more, _TAKE_OFF


def cell_written(told):
    """A notify and a plain write to the cell's bytes."""
    message = (
        f"{told.by(1)} writes bytes that are signal cells ({told.place}) and nothing orders it with "
        f"{told.by(0)}: "
        f"the notify may be wiped out, or counted on top of the written value."
    )
    fix = (
        f"Clear cells before any peer can notify them (a barrier in between), or clear them with a "
        f"notify to the "
        f"own rank; keep data and cells of {told.name} apart."
    )
    return message + told.more, fix


def cell_read(told):
    """A notify and a plain read of the cell."""
    message = (
        f"{told.by(1)} reads a signal cell ({told.place}) that {told.by(0)} changes without any order "
        f"between "
        f"them; a plain read is no wait."
    )
    fix = "Use a wait where the value orders anything, or read after a wait that needs all the updates."
    return message + told.more, fix


def overflow(told):
    """An Add that wraps its cell."""
    message = (
        f"{told.by(0)} takes {told.place} past the end of int32; the cell wraps, and a wait for a "
        f"larger value "
        f"never ends or one for a smaller value passes at once."
    )
    return message + told.more, "Take used credits off again, so that the counter stays small."


def residue(told):
    """The last update of a cell that stays raised."""
    message = (
        f"When a launch ends, {told.place} is not back at its start value (last changed by {told.by(0)}); "
        f"the window lives on, so the next launch finds it so."
    )
    return (
        message + told.more,
        "Take the used credits off at the end, or let the next launch count on from there.",
    )


def line_shared(told):
    """Two writers of one line."""
    message = (
        f"{told.by(0)} and {told.by(1)} write different bytes of one line ({told.place}) and nothing "
        f"orders them; "
        f"one of them writes the whole line back and can restore what stood there before the other."
    )
    fix = (
        "Put what different cores write 64 bytes (16 int32) apart, or use AtomicAdd, which touches one word."
    )
    return message + told.more, fix
