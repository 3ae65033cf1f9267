"""Abstract programs for the checks: what each core does, and a random scheduler with asynchronous delivery.

A `Script` lists operations per thread. `Script.run` executes them in one random schedule in which notifies
travel for any time (those of one thread to one rank arrive in order); `Script.check` hands the sequence and
the observed order to the checks.
"""

import random
from types import SimpleNamespace

from a2a3sim.checks.happens_before.checker import Options, check_execution
from a2a3sim.checks.happens_before.events import ThreadSpec
from a2a3sim.checks.happens_before.execution import Execution


class Core:
    """One thread of a script; every method appends one operation and takes the label of its line."""

    def __init__(self, spec):
        self.spec = spec
        self.ops = []

    def _do(self, kind, at, **fields):
        op = SimpleNamespace(kind=kind, at=at or kind, when=-1, **fields)
        self.ops.append(op)
        return self

    def write(self, memory, owner, low=0, high=32, at=None, pipe="MTE3", stride=0, rows=1, value=None):
        """``value``: what a plain write to the signal cell at ``low`` gives it."""
        place = (memory, owner, low, high - low, rows, stride)
        return self._do("write", at, place=place, pipe=pipe, value=value)

    def read(self, memory, owner, low=0, high=32, at=None, pipe="MTE2", stride=0, rows=1):
        place = (memory, owner, low, high - low, rows, stride)
        return self._do("read", at, place=place, pipe=pipe)

    def add(self, memory, owner, low=0, high=32, at=None):
        return self._do("add", at, place=(memory, owner, low, high - low, 1, 0), pipe="MTE3")

    def notify(self, rank, cell, value=1, at=None):
        return self._do("notify", at, cell=(rank, cell), value=value, replaces=False)

    def set(self, rank, cell, value, at=None):
        return self._do("notify", at or "set", cell=(rank, cell), value=value, replaces=True)

    def wait(self, cell, value=1, at=None, equal=False):
        return self._do("wait", at, cell=(self.spec.rank, cell), value=value, equal=equal)

    def sync(self):
        return self._do("sync", None)

    def fence(self):
        return self._do("fence", None)

    def drain(self):
        return self._do("drain", None)


class Source:
    """Labels stand for lines, observed steps for times."""

    site = staticmethod(lambda op: (op.at, 0))
    kind = staticmethod(lambda op: op.kind)
    when = staticmethod(lambda op, write: op.when)
    written = staticmethod(lambda op, cell: op.value)
    found = staticmethod(lambda cell: None)


class Script:
    """A program: threads, and which groups end before which start.

    Args:
        stride: bytes from one signal cell to the next.
        start: start values of cells (rank, cell).
    """

    def __init__(self, edges=(), stride=64, explicit=False, start=None):
        self.cores = []
        self.edges = list(edges)
        self.stride = stride
        self.explicit = explicit
        self.start = start or {}

    def core(self, rank, core=0, group=None, launch=0):
        spec = ThreadSpec(rank, core, rank if group is None else group, launch=launch)
        self.cores.append(Core(spec))
        return self.cores[-1]

    # ---- schedules ----------------------------------------------------------------------------------

    def run(self, seed=0, values=None, withheld=None):
        """One schedule. Returns whether all threads came to their end, and how far each came.

        Args:
            values: cell values to begin with; changed in place.
            withheld: (thread, position): this thread stops there, everything else runs as far as it can.
        """
        rng = random.Random(seed)
        values = dict(self.start) if values is None else values
        cores = self.cores
        at = [0] * len(cores)
        flying = {}
        unapplied = [0] * len(cores)
        speed = [rng.choice((0.05, 1, 1, 5)) for _ in cores]
        lag = {}
        before = {}
        for a, b in self.edges:
            before.setdefault(b, []).append(a)
        members = {}
        for k, c in enumerate(cores):
            members.setdefault(c.spec.group, []).append(k)
        synced = [0] * len(cores)
        step = 0

        def over(k):
            return at[k] == len(cores[k].ops) and not unapplied[k]

        def ready(k):
            if at[k] == len(cores[k].ops) or withheld == (k, at[k]):
                return False
            group = cores[k].spec.group
            if at[k] == 0 and not all(over(m) for g in before.get(group, ()) for m in members[g]):
                return False
            op = cores[k].ops[at[k]]
            if op.kind == "wait":
                value = values.get(op.cell, 0)
                return value == op.value if op.equal else value >= op.value
            if op.kind == "sync":
                return all(
                    synced[m] > synced[k]
                    or (
                        synced[m] == synced[k]
                        and at[m] < len(cores[m].ops)
                        and cores[m].ops[at[m]].kind == "sync"
                        and withheld != (m, at[m])
                    )
                    for m in members[group]
                )
            return True

        def apply(op, k):
            values[op.cell] = op.value if op.replaces else values.get(op.cell, 0) + op.value
            op.when = step

        for core in cores:
            for op in core.ops:
                op.when = -1
        while True:
            moves = [(speed[k], ("step", k)) for k in range(len(cores)) if ready(k)]
            moves += [
                (lag.setdefault(key, rng.choice((0.05, 1, 5))), ("land", key))
                for key, q in flying.items()
                if q
            ]
            if not moves:
                break
            weights = [w for w, _ in moves]
            what, key = rng.choices(moves, weights)[0][1]
            step += 1
            if what == "land":
                op, k = flying[key].pop(0)
                apply(op, k)
                unapplied[k] -= 1
                continue
            op = cores[key].ops[at[key]]
            if op.kind == "sync":
                synced[key] += 1
            if op.kind == "notify":
                if op.cell[0] == cores[key].spec.rank:
                    apply(op, key)
                else:
                    flying.setdefault((key, op.cell[0]), []).append((op, key))
                    unapplied[key] += 1
            else:
                op.when = step
                if op.kind == "write" and op.value is not None:
                    values[op.place[1], op.place[2] // self.stride] = op.value
            at[key] += 1
        return all(over(k) for k in range(len(cores))), at

    # ---- what the checks get --------------------------------------------------------------------------

    def program(self):
        """The operation sequence with the order observed by the last `run`."""
        program = Execution([c.spec for c in self.cores], self.edges, self.explicit, Source)
        for thread, core in zip(program.threads, self.cores, strict=True):
            program.begin(thread)
            stuck = False
            for op in core.ops:
                if op.kind == "notify":
                    if op.when < 0 and stuck:
                        break
                    program.notify(thread, self._cell(program, op), op.value, op.replaces, op, op.when)
                elif op.when < 0:
                    if op.kind == "wait":
                        program.wait(
                            thread, self._cell(program, op), op.value, op.equal, op, 1 << 40, done=False
                        )
                    stuck = True
                    break
                elif op.kind == "wait":
                    program.wait(thread, self._cell(program, op), op.value, op.equal, op, op.when)
                elif op.kind == "sync":
                    program.sync_all(thread)
                elif op.kind in ("fence", "drain"):
                    program.fence(thread, op.kind == "fence")
                else:
                    memory, owner, low, nbytes, rows, stride = op.place
                    region = program.region(
                        program.memory((memory, owner), memory, owner), low, nbytes, rows, stride
                    )
                    getattr(program, op.kind)(thread, region, op, op.pipe)
            program.end(thread, not stuck)
        return program

    def _cell(self, program, op):
        rank, cell = op.cell
        name, index = (
            cell if isinstance(cell, tuple) else (cell, 0) if isinstance(cell, str) else ("signal", cell)
        )
        found = program.cell(program.memory((name, rank), name, rank), index * self.stride)
        found.start = found.fresh = self.start.get(op.cell, 0)
        return found

    def check(self, seed=0, values=None, history=None, **options):
        """Findings of the sequence as one schedule showed it; ``values``: of cells that live on."""
        self.run(seed, values)
        return check_execution(self.program(), history, Options(**options))

    def verdicts(self, seeds=8, **options):
        """The set of verdicts, asserted to be the same for all seeds."""
        all_of_them = [{f.verdict for f in self.check(seed, **options)} for seed in range(seeds)]
        for other in all_of_them[1:]:
            assert other == all_of_them[0], other ^ all_of_them[0]
        return all_of_them[0]

    def kinds(self, seeds=8, **options):
        """Kinds of the findings that are errors or warnings, asserted to be the same for all seeds."""
        return {v[0] for v in self.verdicts(seeds, **options) if v[1] != "note"}
