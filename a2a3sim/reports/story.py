"""The story of a run in words: what each phase did, who waited for whom, what took time, what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from a2a3sim.checks import Explanation, plural, ranks_text
from a2a3sim.models.operation import UNKNOWN
from a2a3sim.reports.findings import finding_lines, verdict_lines
from a2a3sim.reports.heading import header
from a2a3sim.result import RunResult
from a2a3sim.trace.acts import Act, acts
from a2a3sim.trace.barriers import Barrier, barriers_of
from a2a3sim.trace.critical_path import summary
from a2a3sim.trace.path_parts import PathPart, path_parts
from a2a3sim.trace.publications import publications
from a2a3sim.trace.record import Site, Trace, resolve_site
from a2a3sim.units import format_size, format_time

__all__ = ["Story", "story_lines"]

_SCENES = 14  # phases and barriers told; of more, the first and the last
_PARTS = 8  # stretches of the critical path
_LONG_PATH = 40  # stretches; a longer path is told by line
_PUBLICATIONS = 6
_SOURCE = 60  # characters of a quoted line


class Story:
    """One run, ready to be told.

    Args:
        reasons: what the results are made of; None where nobody asked.

    Attributes:
        doubted: the script itself says that something is wrong.
    """

    def __init__(self, result: RunResult, trace: Trace, reasons: Sequence[Explanation] | None = None) -> None:
        self.doubted = False
        self.result = result
        self.trace = trace
        self.reasons = list(reasons or ())
        self.first = min((lane.start for lane in trace.lanes if lane.start != UNKNOWN), default=0)

    def at(self, time: int) -> str:
        """A time from the first start."""
        return format_time(max(time - self.first, 0))

    # ---- chapters ---------------------------------------------------------------------------------

    def opening(self) -> Iterator[str]:
        """Which run this is."""
        result = self.result
        yield f"{result.program}: {format_time(result.kernel_ps)} from the first start to the last end"
        yield f"  {header(result)}"
        late = [(use.start_ps, use.rank) for use in result.per_rank if use.start_ps is not None]
        if len(late) > 1 and max(late)[0] > min(late)[0]:
            spread = max(late)[0] - min(late)[0]
            yield f"  rank {min(late)[1]} starts first, rank {max(late)[1]} last, {format_time(spread)} later"

    def scenes(self) -> list[tuple[int, list[str]]]:
        """Phases and barriers in order of time, each with its lines."""
        found = [
            (min(a.start for a in by_rank.values()), self._phase(name, by_rank))
            for name, by_rank in acts(self.trace).items()
        ]
        found += [(b.start, self._barrier(b)) for b in barriers_of(self.trace)]
        return sorted(found, key=lambda scene: scene[0])

    def _phase(self, name: str, by_rank: dict[int, Act]) -> list[str]:
        start, end = min(a.start for a in by_rank.values()), max(a.end for a in by_rank.values())
        slowest = max(by_rank, key=lambda r: (by_rank[r].end - by_rank[r].start, -r))
        took = by_rank[slowest].end - by_rank[slowest].start
        lines = [
            f"{name}, {self.at(start)} to {self.at(end)}: rank {slowest} takes longest, {format_time(took)}"
        ]
        if len(by_rank) == 1:
            lines = [f"{name}, {self.at(start)} to {self.at(end)}, rank {slowest} only"]
        groups: dict[tuple, list[int]] = {}
        for rank in sorted(by_rank):
            groups.setdefault(by_rank[rank].deeds, []).append(rank)
        everybody = len(groups) == 1 and len(by_rank) > 1
        for deeds, ranks in list(groups.items())[:4]:
            who = "each rank" if everybody else ranks_text(ranks)
            lines.append(f"  {who}: {_deeds(*deeds)}")
        if len(groups) > 4:
            lines.append(f"  and {len(groups) - 4} more kinds of ranks")
        return lines

    def _barrier(self, barrier: Barrier) -> list[str]:
        place = barrier.place
        line = f"barrier {barrier.number}, {self.at(barrier.start)} to {self.at(barrier.end)}, {_at(place)}"
        stuck = barrier.unfinished
        if stuck:
            return [f"{line}: {ranks_text(stuck)} wait{'s' if len(stuck) == 1 else ''} for ever"]
        longest = max(barrier.waited, key=lambda r: (barrier.waited[r], -r))
        if not barrier.waited[longest]:
            return [f"{line}: nobody has to wait"]
        op = barrier.longest[longest]
        whom = ""
        if op.by is not None:
            whom = (
                f", most of it for rank {op.by.lane.rank}'s notify ({_at(resolve_site(op.by.site), False)})"
            )
        lines = [line, f"  rank {longest} waits longest, {format_time(barrier.waited[longest])}{whom}"]
        if barrier.last is not None and len(barrier.waited) > 1:
            least = min(barrier.waited, key=lambda r: (barrier.waited[r], r))
            last = barrier.last
            lines.append(
                f"  the last notify that somebody needed is rank {last.lane.rank}'s, at "
                f"{self.at(last.start)}; rank {least} waits least, {format_time(barrier.waited[least])}"
            )
        return lines

    def path(self) -> Iterator[str]:
        """The critical path in percent, and its longest stretches with their lines."""
        shares = [f"{name} {share:.0f} %" for name, share in summary(self.result).items() if share >= 0.5]
        if not shares:
            return
        yield f"critical path: {', '.join(shares)}"
        parts = path_parts(self.trace)
        total = max(sum(p.end - p.start for p in parts), 1)
        if len(parts) > _LONG_PATH:
            yield from self._path_by_line(parts, total)
            return
        main = sorted(parts, key=lambda p: (p.start - p.end, p.start))[:_PARTS]
        for p in sorted(main, key=lambda p: p.start):
            share = 100 * (p.end - p.start) / total
            told = f"rank {p.rank}: {_what(p)} ({_spent(p.spent)}){_on(p.site)}"
            yield f"  {self.at(p.start):>9}  {share:3.0f} %  {told}"
        left = len(parts) - len(main)
        if left > 0:
            rest = 100 * (total - sum(p.end - p.start for p in main)) / total
            yield f"  and {left} shorter stretch{'es' if left > 1 else ''}, together {rest:.0f} %"

    @staticmethod
    def _path_by_line(parts: Sequence[PathPart], total: int) -> Iterator[str]:
        """A long path: the same line comes again and again."""
        lines: dict[tuple, list[PathPart]] = {}
        for p in parts:
            lines.setdefault((p.kind, p.site), []).append(p)
        spans = {key: sum(p.end - p.start for p in found) for key, found in lines.items()}
        main = sorted(spans, key=lambda key: -spans[key])[:_PARTS]
        for key in main:
            found = lines[key]
            spent = sum((p.spent for p in found), Counter())
            ranks = ranks_text(sorted({p.rank for p in found}))
            yield (
                f"  {format_time(spans[key]):>9}  {100 * spans[key] / total:3.0f} %  {key[0]} on {ranks} in "
                f"{len(found)} stretch{'es' if len(found) > 1 else ''} ({_spent(spent)}){_on(key[1])}"
            )
        if len(spans) > len(main):
            rest = 100 * (total - sum(spans[key] for key in main)) / total
            yield f"  and {len(spans) - len(main)} more lines, together {rest:.0f} %"

    def writes(self) -> Iterator[str]:
        """With explicit fences: which notifies left before what they publish could be seen."""
        if self.trace.fences != "explicit":
            return
        groups: dict[tuple, list] = {}
        for p in publications(self.trace):
            key = (resolve_site(p.write.site), p.write.kind, resolve_site(p.notify.site), p.drained)
            groups.setdefault(key, []).append(p)
        yield "writes and their notifies (explicit fences: issued, then drained, then visible)"
        if not groups:
            yield "  every write was visible when the notify after it left"
        for (write, kind, notify, drained), found in list(groups.items())[:_PUBLICATIONS]:
            worst = max(found, key=lambda p: p.late_ps)
            w, n = worst.write, worst.notify
            state = "drained but not visible" if drained else "issued but not drained"
            ranks = sorted({p.rank for p in found})
            yield (
                f"  {ranks_text(ranks)}: the {kind} at {_at(write, False)} was {state} when the notify at "
                f"{_at(notify, False)} left ({plural(len(found), 'time')})"
            )
            luck = f"{format_time(-worst.missed_ps)} before the notify was applied, by luck"
            if worst.missed_ps > 0:
                late = format_time(worst.missed_ps)
                luck = f"{late} after the notify was applied: a reader may see what stood there before"
            yield (
                f"    rank {worst.rank}: issued {self.at(w.issued)}, drained {self.at(w.drained)}, visible "
                f"{self.at(w.visible)}; the notify left at {self.at(n.start)}; visible {luck}"
            )
        if len(groups) > _PUBLICATIONS:
            yield f"  and {len(groups) - _PUBLICATIONS} more pairs of lines"

    def ending(self) -> Iterator[str]:
        """Whether the result is right, and if not, why."""
        numerics = self.result.numerics
        if numerics is not None:
            kinds = (("absolute", numerics.max_abs_error), ("relative", numerics.max_rel_error))
            errors = [f"{value:.2g} {name}" for name, value in kinds if value]
            largest = f" (largest error {', '.join(errors)})" if errors else ""
            if numerics.ok:
                yield f"result: right{largest}"
            else:
                yield f"result: wrong, {plural(numerics.wrong, 'element')} beyond the tolerance{largest}"
                if any(f.kind == "race" for f in self.result.findings):
                    yield "  a race explains it; on this schedule:"
        for reason in self.reasons:
            yield from self._reason(reason)

    def _reason(self, reason: Explanation) -> Iterator[str]:
        judged = self.result.numerics is not None
        if reason.law is not None and (reason.rounding or not reason.lines):
            yield "; ".join([f"  {reason.name}: each rank holds {reason.meant}", *reason.lines])
        elif reason.law is not None and reason.wrong:
            if judged or self.doubted:  # else nobody has said that anything is wrong
                meant = "should be" if reason.certain else "would be, if that is what is meant,"
                yield f"  {reason.name} {meant} {reason.meant}, but"
                yield from (f"    {line}" for line in (*reason.lines, *reason.dealt))
        elif reason.law is not None or judged or self.doubted:
            yield from (f"  {reason.name}: {line}" for line in reason.lines)

    def findings(self) -> Iterator[str]:
        """The findings, the gravest first."""
        if not self.result.findings:
            yield "findings: none"
        else:
            yield "findings:"
            yield from (f"  {line}" for line in finding_lines(self.result.findings))
        yield from (f"  {line}" for line in verdict_lines(self.result.verdict))

    def as_dict(self) -> dict[str, Any]:
        """The facts for JSON; times in ps from the launch, as in results."""
        return {
            "program": self.result.program,
            "story": list(story_lines(self)),
            "barriers": [
                {
                    "number": b.number,
                    "start_ps": b.start,
                    "end_ps": b.end,
                    "file": b.place.file,
                    "line": b.place.line,
                    "wait_ps": {str(rank): b.waited[rank] for rank in sorted(b.waited)},
                    "last_rank": None if b.last is None else b.last.lane.rank,
                }
                for b in barriers_of(self.trace)
            ],
            "results": [
                {
                    "name": r.name,
                    "law": None if r.law is None else r.law.name,
                    "certain": r.certain,
                    "rounding": r.rounding,
                    "explanation": r.lines,
                    "wrong": [
                        {"rank": d.rank, "elements": [d.first, d.last + 1], "what": d.what} for d in r.wrong
                    ],
                }
                for r in self.reasons
            ],
        }


def story_lines(story: Story) -> Iterator[str]:
    """The whole story, chapter by chapter."""
    yield from story.opening()
    scenes = story.scenes()
    if len(scenes) > _SCENES:
        left = len(scenes) - _SCENES
        shown = [*scenes[: _SCENES - 4], (0, [f"… and {left} more phases and barriers"]), *scenes[-4:]]
    else:
        shown = scenes
    for _, lines in shown:
        yield from (f"  {line}" for line in lines)
    yield from story.path()
    yield from story.writes()
    yield from story.findings()
    yield from story.ending()


def _deeds(kinds: tuple, read: int, written: int) -> str:
    parts = [f"{count} {kind}" for kind, count in kinds]
    if read:
        parts.append(f"reads {format_size(read)} from peers")
    if written:
        parts.append(f"writes {format_size(written)} to peers")
    return ", ".join(parts) or "nothing but signals"


def _what(part: PathPart) -> str:
    """``3 remote_load from ranks 1..3``."""
    number, peers = len(part.operations), part.peers
    text = f"{number} {part.kind}" if number > 1 else part.kind
    return f"{text} {'from' if part.reads else 'to'} {ranks_text(peers)}" if peers else text


def _spent(spent: Counter) -> str:
    return ", ".join(name for name, _ in spent.most_common(2))


def _on(site: Site | None) -> str:
    return "" if site is None else f"  {_at(site)}"


def _at(site: Site, quoted: bool = True) -> str:
    source = site.source if len(site.source) <= _SOURCE else f"{site.source[: _SOURCE - 1]}…"
    return f"{site.file}:{site.line}" + (f" `{source}`" if quoted and source else "")
