"""The rules of the trace-event format that viewers rely on, checked on a whole file."""

import gzip
import itertools
import json
from decimal import Decimal
from pathlib import Path

KNOWN = {"M", "X", "b", "e", "s", "f", "C"}


def load(path):
    """The document, with times as exact decimals."""
    data = Path(path).read_bytes()
    text = gzip.decompress(data) if str(path).endswith(".gz") else data
    return json.loads(text, parse_float=Decimal)


def check(document):
    """Assert every rule; returns the events by phase."""
    events = document["traceEvents"]
    by = {phase: [e for e in events if e["ph"] == phase] for phase in KNOWN}
    assert {e["ph"] for e in events} <= KNOWN
    timed = [e for e in events if e["ph"] != "M"]
    assert all(a["ts"] <= b["ts"] for a, b in itertools.pairwise(timed)), "in order of time"
    assert all(e["ts"] >= 0 for e in timed)
    named = {e["pid"] for e in by["M"] if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]) for e in by["M"] if e["name"] == "thread_name"}
    assert {e["pid"] for e in timed} <= named, "every process has a name"
    assert {(e["pid"], e["tid"]) for e in timed if "tid" in e} <= threads, "every thread has a name"
    _slices_nest_or_follow(by["X"])
    _asyncs_pair(events)
    _arrows_bind(by)
    return by


def _slices_nest_or_follow(slices):
    open_until: dict[tuple, list] = {}
    for e in slices:
        assert e["dur"] >= 0
        stack = open_until.setdefault((e["pid"], e["tid"]), [])
        while stack and stack[-1] <= e["ts"]:
            stack.pop()
        end = e["ts"] + e["dur"]
        assert not stack or end <= stack[-1], f"{e} sticks out of the slice around it"
        stack.append(end)


def _asyncs_pair(events):
    active = set()
    for e in events:
        if e["ph"] in "be":
            key = (e["pid"], e["cat"], e["id"])
            if e["ph"] == "b":
                assert key not in active, f"{e} begins before the one before has ended"
                active.add(key)
            else:
                assert key in active, f"{e} ends without a begin"
                active.remove(key)
    assert not active


def _arrows_bind(by):
    spans: dict[tuple, list] = {}
    for e in by["X"]:
        spans.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    starts = {e["id"]: e for e in by["s"]}
    ends = {e["id"]: e for e in by["f"]}
    assert len(starts) == len(by["s"]) and len(ends) == len(by["f"]), "one of each per arrow"
    assert starts.keys() == ends.keys(), "arrows come in pairs"
    for number, start in starts.items():
        end = ends[number]
        assert start["ts"] <= end["ts"] and start["name"] == end["name"] and start["cat"] == end["cat"]
        assert end["bp"] == "e"
        for e in (start, end):
            around = spans[e["pid"], e["tid"]]
            assert any(low <= e["ts"] <= high for low, high in around), f"{e} lies in no slice"
