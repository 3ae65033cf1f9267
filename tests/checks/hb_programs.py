"""Collectives, barriers and pipelines as abstract scripts, sound ones and their broken twins."""

from hb_machine import Script


def peers(ranks, rank):
    return [p for p in range(ranks) if p != rank]


def barrier(core, ranks, row, value=1, use=None, way="notify"):
    """Every peer's cell (row, my rank), then all of my own row."""
    rank = core.spec.rank
    for p in peers(ranks, rank):
        if way == "set":
            core.set(p, (row, rank), use, at="notify")
        else:
            core.notify(p, (row, rank), at="notify")
    for p in peers(ranks, rank):
        core.wait((row, p), value, at="wait")


def mesh(ranks=4, rows=("a", "b"), values=(1, 1), second=True, private=False):
    """Stage, barrier, read all peers, barrier, store the sum in place (or in a private tensor)."""
    s = Script()
    for rank in range(ranks):
        c = s.core(rank)
        c.write("D", rank, at="stage")
        barrier(c, ranks, rows[0], values[0])
        for p in peers(ranks, rank):
            c.read("D", p, at="read")
        if second:
            barrier(c, ranks, rows[1], values[1])
        c.write("Y" if private else "D", rank, at="result")
    return s


def two_phase(ranks=4, rows=("a", "b"), values=(1, 1)):
    """Stage, barrier, reduce the own chunk over all peers in place, barrier, gather the others' chunks."""
    s = Script()
    for rank in range(ranks):
        c = s.core(rank)
        c.write("D", rank, 0, 64 * ranks, at="stage")
        barrier(c, ranks, rows[0], values[0])
        mine = (64 * rank, 64 * rank + 64)
        for p in peers(ranks, rank):
            c.read("D", p, *mine, at="reduce")
        c.write("D", rank, *mine, at="reduced")
        barrier(c, ranks, rows[1], values[1])
        for p in peers(ranks, rank):
            c.read("D", p, 64 * p, 64 * p + 64, at="gather")
    return s


def ring_pull(ranks=4, row=lambda k: k, value=lambda k: 1):
    """All-reduce on a ring by reading the left neighbour's chunk, 2(P-1) rounds."""
    s = Script()
    for rank in range(ranks):
        c = s.core(rank)
        left, right = (rank - 1) % ranks, (rank + 1) % ranks
        c.write("D", rank, 0, 64 * ranks, at="stage")
        for k in range(2 * (ranks - 1)):
            c.notify(right, row(k), at="notify")
            c.wait(row(k), value(k), at="wait")
            chunk = (rank - 1 - k) % ranks if k < ranks - 1 else (rank - (k - ranks + 1)) % ranks
            c.read("D", left, 64 * chunk, 64 * chunk + 64, at="read")
            c.write("D", rank, 64 * chunk, 64 * chunk + 64, at="write")
    return s


def ring_push(ranks=4, row=lambda k: k, value=lambda k: 1):
    """The same by putting into a slot of the right neighbour, one slot a round."""
    s = Script()
    for rank in range(ranks):
        c = s.core(rank)
        right = (rank + 1) % ranks
        for k in range(2 * (ranks - 1)):
            c.write("slot", right, 64 * k, 64 * k + 64, at="put")
            c.notify(right, row(k), at="notify")
            c.wait(row(k), value(k), at="wait")
            c.read("slot", rank, 64 * k, 64 * k + 64, at="take")
    return s


def credit_barrier(ranks=4, calls=3, clear="add", launches=1):
    """A collective with two barriers on one row, `calls` times, that takes its credits off at the end.

    ``clear``: ``add`` (the negative number), ``set`` (zero) or None.
    """
    s = Script(
        edges=[(k * ranks + r, (k + 1) * ranks + r) for k in range(launches - 1) for r in range(ranks)]
    )
    for launch in range(launches):
        for rank in range(ranks):
            c = s.core(rank, group=launch * ranks + rank, launch=launch)
            for _ in range(calls):
                credit_call(c, ranks, clear)
    return s


def credit_call(c, ranks, clear):
    rank = c.spec.rank
    c.write("D", rank, at="stage")
    barrier(c, ranks, "g", 1)
    for p in peers(ranks, rank):
        c.read("D", p, at="read")
    barrier(c, ranks, "g", 2)
    for p in peers(ranks, rank):
        if clear == "add":
            c.notify(rank, ("g", p), -2, at="clear")
        elif clear == "set":
            c.set(rank, ("g", p), 0, at="clear")


def central_counter(ranks=4, epochs=6, shared=1):
    """All report to rank 0, which lets them go on: Ge k(P-1) on one counter."""
    s = Script()
    n = 0
    for rank in range(ranks):
        c = s.core(rank)
        n = 0
        for _ in range(epochs):
            for half in range(2):
                if half == 0:
                    c.write("D", rank, at="stage")
                n += 1
                if rank:
                    c.notify(0, "count", at="arrive")
                    c.wait("go", n, at="go")
                else:
                    c.wait("count", n * (ranks - 1), at="all here")
                    for p in range(1, ranks):
                        c.notify(p, "go", at="release")
                if half == 0:
                    for p in peers(ranks, rank):
                        c.read("D", p, at="read")
    return s


def dissemination(ranks, epochs=3):
    """Barrier in log2 P rounds, counters that grow with the epochs."""
    s = Script()
    for rank in range(ranks):
        c = s.core(rank)
        n = 0
        for _ in range(epochs):
            for half in range(2):
                if half == 0:
                    c.write("D", rank, at="stage")
                n += 1
                step = 1
                while step < ranks:
                    c.notify((rank + step) % ranks, ("r", step))
                    c.wait(("r", step), n)
                    step *= 2
                if half == 0:
                    for p in peers(ranks, rank):
                        c.read("D", p, at="read")
    return s


def double_buffer(steps=6, credits=True, launches=1, count="argument", clear=None):
    """Rank 0 puts into two slots of rank 1 in turn.

    ``count``: how the counters start in a launch: ``argument`` (they go on), ``restart`` (at 1 again) or
    ``subtract`` (at 1, and used credits are taken off at the end); ``clear`` sets them to zero instead.
    """
    s = Script(edges=[(10 * k + r, 10 * (k + 1) + r) for k in range(launches - 1) for r in range(2)])
    for launch in range(launches):
        first = launch * steps if count == "argument" else 0
        p = s.core(0, group=10 * launch, launch=launch)
        q = s.core(1, group=10 * launch + 1, launch=launch)
        for k in range(steps):
            e = first + k + 1
            if credits:
                p.wait("free", e - 2, at="wait free")
            slot = 64 * (k % 2)
            p.write("slot", 1, slot, slot + 64, at="put")
            p.notify(1, "full", at="full")
            q.wait("full", e, at="wait full")
            q.read("slot", 1, slot, slot + 64, at="take")
            if credits:
                q.notify(0, "free", at="free")
        if credits and count == "subtract":
            p.wait("free", steps, at="drain")
            p.notify(0, "free", -steps, at="clear")
        if count == "subtract":
            q.notify(1, "full", -steps, at="clear")
        if clear:
            p.set(0, "free", 0, at="clear")
            q.set(1, "full", 0, at="clear")
    return s


def lock_step(equal, free_running=False, workers=3, rounds=4):
    """A coordinator publishes round numbers with Set; workers acknowledge (or nobody does)."""
    s = Script()
    c = s.core(0)
    others = [s.core(r) for r in range(1, workers + 1)]
    for k in range(1, rounds + 1):
        c.write("job", 0, at="publish")
        for w in others:
            c.set(w.spec.rank, "round", k, at="set")
        if not free_running:
            c.wait("done", k * workers, at="acknowledged")
        for w in others:
            w.wait("round", k, at="wait", equal=equal)
            w.read("job", 0, at="work")
            if not free_running:
                w.notify(0, "done", at="acknowledge")
    return s
