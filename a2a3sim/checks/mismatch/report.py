"""The finding for a result that differs from its golden where no race explains it."""

from __future__ import annotations

from collections.abc import Sequence

from a2a3sim.checks.mismatch.deviations import Deviation
from a2a3sim.checks.mismatch.reasons import Explanation, explain
from a2a3sim.checks.sites import site_of
from a2a3sim.result import Finding, FindingSite, Numerics
from a2a3sim.run.rerun import Call
from a2a3sim.trace.record import Trace, resolve_site

__all__ = ["explain_mismatch"]


def explain_mismatch(
    numerics: Numerics, call: Call, trace: Trace, findings: Sequence[Finding]
) -> tuple[Numerics, list[Finding]]:
    """Find out why a result is wrong: the comparison with its cause, and a finding unless a race explains it.

    Args:
        findings: those of the run so far.
    """
    reasons = explain(call)
    numerics = _with_cause(numerics, reasons)
    if any(f.kind == "race" and f.severity == "error" for f in findings) and not numerics.ok:
        return numerics, []
    return numerics, [_finding(numerics, reasons, trace, call)]


def _with_cause(numerics: Numerics, reasons: Sequence[Explanation]) -> Numerics:
    """The comparison with its cause; right where only rounding differs."""
    causes = [reason for reason in reasons if reason.lines and not (reason.rounding and len(reasons) > 1)]
    text = "; ".join([part for part in (numerics.explanation, *(r.text() for r in causes)) if part])
    rounding = bool(reasons) and all(r.rounding or (r.law is not None and not r.lines) for r in reasons)
    return numerics.model_copy(update={"explanation": text, "ok": numerics.ok or rounding})


def _finding(numerics: Numerics, reasons: Sequence[Explanation], trace: Trace, call: Call) -> Finding:
    """The finding for a result that differs from its golden and that no race explains."""
    bad = [r for r in reasons if r.wrong or (r.lines and not r.rounding)] or list(reasons)
    first = bad[0] if bad else Explanation("the result")
    ranks = sorted({d.rank for r in bad for d in r.wrong})
    where = {"memory": first.name, "ranks": ranks}
    if first.wrong:
        low, high = min(d.first for d in first.wrong), max(d.last for d in first.wrong)
        where["elements"] = [low, high + 1]
    only_rounding = numerics.ok
    told = "; ".join(r.text() for r in bad if r.lines)
    one = numerics.wrong == 1
    what = "element of the result differs" if one else "elements of the result differ"
    message = f"{numerics.wrong} {what} from the golden"
    if not only_rounding and first.law is not None and first.certain:
        message += f"; {first.name} should be {first.meant}"
    return Finding(
        kind="mismatch",
        subtype="rounding" if only_rounding else None,
        severity="note" if only_rounding else "error",
        ranks=ranks,
        sites=[] if only_rounding else _writers(first, trace, call),
        where=where,
        message=f"{message}: {told}" if told else message,
        fix=_fix(first, only_rounding),
    )


def _fix(said: Explanation, only_rounding: bool) -> str:
    if only_rounding:
        return (
            "compare with a tolerance (RunConfig(rtol=, atol=)): floating-point addition depends on its order"
        )
    text = said.text() if said.wrong else ""
    if "the all-gather is missing" in text:
        return "add the all-gather: one read of every owner's block, to its own place"
    if "are no multiple of" in text:
        return "run on a number of ranks that divides the size, or give the last rank a longer block"
    if "stand where" in text or "stands where" in text:
        return "read block c from its owner c and store it to block c of the result"
    if "nobody had written" in text:
        return "read where the data was stored, on the rank that stored it, and only after it has said so"
    if "never written" in text:
        return "store to these elements on every rank, or leave them out of the comparison"
    if "missing" in text:
        return "let the loop over the peers, and the own slice, cover every rank once"
    if "doubled" in text or "counted" in text:
        return "add each rank's contribution once: start from the own slice or from zero"
    return ""


def _writers(said: Explanation, trace: Trace, call: Call) -> list[FindingSite]:
    """The lines that stored the first wrong stretch of each rank."""
    argument = next((a for a in call.arguments if a.name == said.name), None)
    if argument is None or said.positions is None:
        return []
    itemsize, base = argument.layout.dtype.itemsize, argument.layout.base
    stretches: dict[int, Deviation] = {}
    for d in said.wrong:
        stretches.setdefault(d.rank, d)
    found: dict[tuple[int, str, int], FindingSite] = {}
    for lane in trace.lanes:
        if lane.rank not in stretches:
            continue
        d = stretches[lane.rank]
        row = said.positions[said.ranks.index(lane.rank)]
        low, high = base + int(row[d.first]) * itemsize, base + (int(row[d.last]) + 1) * itemsize
        for op in lane.operations:
            for a in op.writes:
                if (
                    a.memory.buffer != argument.buffer.name
                    or a.offset >= high
                    or a.offset + (a.rows - 1) * a.stride + a.row_bytes <= low
                ):
                    continue
                place = resolve_site(op.site)
                key = (lane.rank, place.file, place.line)
                if key not in found:
                    found[key] = site_of(op, op.visible)
    return list(found.values())
