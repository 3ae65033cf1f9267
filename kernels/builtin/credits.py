"""Barriers over credits that clear themselves: any number of calls, of any collectives, may share one signal.

Barrier g of a call adds 1 to cell ``my_rank`` of every peer and waits until each peer's cell of the own
slice is >= g; g starts at 1 in every call. When the call is over it takes its N credits back from each of
its own cells by an atomic add of -N. That commutes with a credit which a faster peer has sent for its next
call already, where clearing to zero would lose it.
"""

from collections.abc import Callable

import a2a3sim.language as pl
import a2a3sim.language.distributed as pld

__all__ = ["Credits"]


class Credits:
    """The barriers of one call on one set of cells, and their settlement.

    Args:
        signal: INT32 window.
        cell: offsets of the cell that belongs to a rank (``lambda rank: [rank, 0]``).
        fenced: fence before the credits leave, for runs in which a notify does not wait for earlier accesses.
    """

    def __init__(
        self, signal: pld.DistributedTensor, cell: Callable[[int], list[int]], fenced: bool = False
    ) -> None:
        ctx = pld.get_comm_ctx(signal)
        self.signal = signal
        self.cell = cell
        self.fenced = fenced
        self.me = pld.rank(ctx)
        self.peers = [peer for peer in pl.range(pld.nranks(ctx)) if peer != self.me]
        self.spent = 0

    def barrier(self) -> None:
        """All ranks have come here, and what they did before is visible."""
        self.spent += 1
        if self.fenced:
            pl.system.fence()
        for peer in self.peers:
            pld.system.notify(self.signal, peer, self.cell(self.me), 1, op=pld.NotifyOp.AtomicAdd)
        for peer in self.peers:
            pld.system.wait(self.signal, self.cell(peer), self.spent, cmp=pld.WaitCmp.Ge)

    def settle(self) -> None:
        """Take the credits of this call back: all cells are as they were before it."""
        for peer in self.peers:
            pld.system.notify(self.signal, self.me, self.cell(peer), -self.spent, op=pld.NotifyOp.AtomicAdd)
