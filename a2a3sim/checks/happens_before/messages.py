"""The wording of the findings: what can go wrong on another schedule, and the cheapest repair.

Each function takes the `a2a3sim.checks.happens_before.summary.Summary` of a folded finding and gives message and fix.
``(1)`` and ``(2)`` are the finding's sites, which reports print with their source lines.
"""

from __future__ import annotations

from a2a3sim.checks.happens_before.summary import Summary
from a2a3sim.checks.wording import ranks_text, short_place

__all__ = [
    "cell_read",
    "cell_written",
    "credit_delayed",
    "credit_missed",
    "credit_wiped",
    "early_release",
    "line_shared",
    "line_shared_by_builtin",
    "overflow",
    "overshoot",
    "race",
    "residue",
    "unaligned",
    "unawaited",
    "unfenced",
    "zero_read",
]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def race(summary: Summary) -> tuple[str, str]:
    """Two accesses to the same bytes."""
    one, other = summary.refs
    if one.rank == other.rank:
        return _race_on_one_rank(summary)
    first, second = summary.by(0), summary.by(1)
    if summary.subtypes == {"WAW"}:
        message = f"{first} and {second} write the same bytes and nothing orders them: the one that comes last stays."
        fix = (
            "let one of them wait for a notify that the other rank sends after its write, or give each writer "
            f"bytes of its own in {summary.name}"
        )
        return _sentence(message) + summary.more + summary.explained, _repair(summary, fix)
    late_write = f"if rank {one.rank} is late, rank {other.rank} gets the old bytes"
    late_read = f"if rank {other.rank} is late, it gets bytes that rank {one.rank} has already overwritten"
    before = (
        "after (1) notify the reader, and wait before (2) for a value that only this notify can bring about"
    )
    after = "after (2) notify the writer, who waits for all readers before (1) (a closing barrier, or credits); or alternate two buffers"
    if summary.subtypes == {"RAW"}:
        message = f"{second} reads what {first} writes, and no wait guarantees that the write is over: {late_write}."
        fix = before
    elif summary.subtypes == {"WAR"}:
        message = (
            f"{first} writes what {second} reads, and no wait guarantees that the read is over: {late_read}."
        )
        fix = after
    else:
        message = (
            f"{first} and {second} touch the same bytes, and no wait orders them: {late_write}; {late_read}."
        )
        fix = f"{before}. And {after}"
    if summary.calls:
        message += (
            " Here they belong to two calls of a worker that keeps its windows: a device may be a call ahead."
        )
    elif summary.launches:
        message += " Here they belong to two dispatches, which nothing orders between devices."
    loose = summary.loose
    if loose is not None:
        earlier, later, rank = loose
        message += f" On rank {rank} no declared direction orders the kernels {earlier} and {later}."
        fix = f"{_declared(summary, earlier, later)}; otherwise {fix}"
    return _sentence(message) + summary.more + summary.explained, _repair(summary, fix)


def _declared(summary: Summary, earlier: str, later: str) -> str:
    return f"declare {summary.name} as pl.Out or pl.InOut in {earlier}, which writes it, so that {later} starts after it has ended"


def _repair(summary: Summary, fix: str) -> str:
    wait = summary.wholly_explained
    return (
        fix
        if wait is None
        else f"repair the wait at {short_place(*wait)} (early-release); it then orders them"
    )


def _race_on_one_rank(summary: Summary) -> tuple[str, str]:
    one, other = summary.refs
    mine, other_thread = summary.threads[one.thread], summary.threads[other.thread]
    if mine.group == other_thread.group:
        between = "two cores of one kernel"
        fix = "put pl.system.sync_all() between the two, or give each core bytes of its own"
    else:
        between = "two kernels that no declared tensor direction orders"
        earlier, later = sorted((mine, other_thread), key=lambda t: t.index)
        fix = _declared(summary, earlier.kernel or "the kernel", later.kernel or "the other")
    message = f"{summary.by(0)} and its {summary.op(1)} touch the same bytes from {between}: either may come first, or both at once."
    return _sentence(message) + summary.more + summary.explained, fix


def unfenced(summary: Summary) -> tuple[str, str]:
    """A notify, the access it should have waited for, and who relies on it."""
    if "not visible" in summary.subtypes:
        state = "has left the core but need not be visible to other devices"
    else:
        state = "may still be under way in its pipe"
    message = (
        f"{summary.by(0)} leaves while its {summary.op(1)} {state}; {summary.by(2)} relies on the notify and may come before "
        "the bytes."
    )
    fix = (
        "put pl.system.fence() between (2) and (1); a barrier after the notify does not add the missing order"
    )
    return _sentence(message) + summary.more, fix


def early_release(summary: Summary, condition: str, origin: str, raced: list[str] | None) -> tuple[str, str]:
    """A wait and an update it should have waited for.

    Args:
        condition: of the representative wait, in words.
        raced: the two accesses that race because of it, in words, or None.
    """
    if origin == "plain data":
        why = "by plain data that was written over the cell, which is no credit"
    else:
        why = f"by credits that {origin} on the cell has used already"
    message = (
        f"{summary.by(0)}, {condition}, is met {why}, so it does not wait for {summary.by(1)}.{summary.more}"
    )
    if raced is not None:
        message += f" That is why {raced[0]} and {raced[1]} race."
    fix = (
        "give each use its own count (Add 1, and wait for Ge k in the k-th use) or its own cell, or take the used "
        "credits off after the wait (notify the own cell with Add of their negative number)"
    )
    if origin == "an earlier launch" or summary.calls or summary.launches:
        fix += "; over launches pass the count on as an argument instead of restarting it"
    return _sentence(message), fix


def overshoot(summary: Summary, asked: int, final: int) -> tuple[str, str]:
    """An Eq wait and an update that can carry the cell past its value."""
    message = (
        f"{summary.by(0)} looks for exactly {asked}, but {summary.by(1)} does not wait until it has looked, and the cell "
        f"ends at {final}: if rank {summary.refs[0].rank} is slow, the value passes by and it waits for ever."
    )
    fix = (
        "wait with Ge on a counter that only grows, or let the notifier wait for an acknowledgement before it "
        "changes the cell again"
    )
    return _sentence(message) + summary.more, fix


def credit_wiped(summary: Summary) -> tuple[str, str]:
    """A Set or plain write and another update of its cell."""
    message = (
        f"{summary.by(0)} replaces the value of {summary.place} and is not ordered with {summary.by(1)}: the one that is "
        "applied last wins, so a credit can be lost or come back."
    )
    fix = (
        "use AtomicAdd for all updates of the cell (clear it by adding the negative number of used credits), or give "
        "each writer a cell of its own"
    )
    return _sentence(message) + summary.more, fix


_TAKE_OFF = "let the core that waits take the credits off itself, after the wait (notify to the own rank)"


def credit_missed(summary: Summary) -> tuple[str, str]:
    """An update that lowers a cell for good before a wait has looked."""
    message = (
        f"{summary.by(0)} can lower {summary.place} before {summary.by(1)} has seen it: the credit is lost and the wait never "
        "ends."
    )
    return _sentence(message) + summary.more, _TAKE_OFF


def credit_delayed(summary: Summary) -> tuple[str, str]:
    """An update that lowers a cell for a while before a wait has looked."""
    message = (
        f"{summary.by(0)} can lower {summary.place} between two looks of {summary.by(1)}, which then takes a later credit for "
        "the one it missed."
    )
    return _sentence(message) + summary.more, _TAKE_OFF


def cell_written(summary: Summary) -> tuple[str, str]:
    """A notify and a plain write to the cell's bytes."""
    message = (
        f"{summary.by(1)} writes bytes that are signal cells ({summary.place}), and nothing orders it with {summary.by(0)}: the "
        "notify may be wiped out, or counted on top of the written value."
    )
    fix = (
        "clear cells before any peer can notify them (a barrier in between), or clear them with a notify to the own "
        f"rank; keep data and cells of {summary.name} apart"
    )
    return _sentence(message) + summary.more, fix


def cell_read(summary: Summary) -> tuple[str, str]:
    """A notify and a plain read of the cell."""
    message = (
        f"{summary.by(1)} reads a signal cell ({summary.place}) that {summary.by(0)} changes, with no order between them; a "
        "plain read is no wait."
    )
    fix = "use a wait where the value orders anything, or read after a wait that needs all the updates"
    return _sentence(message) + summary.more, fix


def overflow(summary: Summary) -> tuple[str, str]:
    """An Add that wraps its cell."""
    message = (
        f"{summary.by(0)} takes {summary.place} past the end of int32: the cell wraps, and a wait for a larger value never "
        "ends or one for a smaller value passes at once."
    )
    return _sentence(message) + summary.more, "take used credits off again, so that the counter stays small"


def residue(summary: Summary) -> tuple[str, str]:
    """The last update of a cell that stays raised."""
    message = (
        f"when a launch ends, {summary.place} is not back at its start value (last changed by {summary.by(0)}), and the "
        "window lives on: the next launch finds it so."
    )
    return _sentence(
        message
    ), "take the used credits off at the end, or let the next launch count on from there"


def line_shared(summary: Summary) -> tuple[str, str]:
    """Two writers of one line."""
    message = (
        f"{summary.by(0)} and {summary.by(1)} write different bytes of one line ({summary.place}), and nothing orders them: one "
        "of them writes the whole line back and can restore what stood there before the other."
    )
    fix = "put what different cores write 64 bytes (16 int32) apart, or use AtomicAdd, which touches one word"
    return _sentence(message) + summary.more, fix


def line_shared_by_builtin(summary: Summary) -> tuple[str, str]:
    """The same within a built-in collective, which lays its cells out itself."""
    message, _ = line_shared(summary)
    return message, "nothing that the caller could do: the built-in keeps its counts in neighbouring words"


def unaligned(summary: Summary) -> tuple[str, str]:
    """A transfer over the fabric that is not made of whole 32-byte blocks."""
    what = (
        "begins in the middle of a 32-byte block"
        if "address" in summary.subtypes
        else "ends in the middle of a 32-byte block"
    )
    share = "" if "address" in summary.subtypes else ", the rest of which is used for something else"
    message = (
        f"{summary.by(0)} {what}{share} ({summary.place}): slow at best, and what is written back or flushed in whole blocks "
        "can take the neighbours' bytes along."
    )
    fix = "cut the data at multiples of 32 bytes (8 elements of 4 bytes, 16 of 2), the last piece taking the rest"
    return _sentence(message) + summary.more, fix


def zero_read(summary: Summary) -> tuple[str, str]:
    """A read of window bytes that nobody has written."""
    message = (
        f"{summary.by(0)} reads bytes that nobody has written before ({summary.place}): it relies on fresh windows being filled "
        "with zeros."
    )
    return _sentence(message), "write the values that are meant, if zeros are not"


def unawaited(summary: Summary) -> tuple[str, str]:
    """A notify that no wait looks at."""
    notify = summary.refs[0]
    message = (
        f"nobody waits for {summary.by(0)}: {ranks_text(summary.owners)} can have ended, and its windows can be gone, before it and "
        f"what rank {notify.rank} wrote ahead of it have come."
    )
    return _sentence(
        message
    ) + summary.more, "let the rank that is notified wait for it before it ends, or leave the notify away"
