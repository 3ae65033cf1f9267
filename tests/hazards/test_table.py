"""The table of the findings page names every case and where its tests are."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "findings.md"
ROWS = re.findall(
    r"^\| (B\d\d) \| .*? \| (.*?) \| (?:`(\w+\.py)`)? ?\|$", PAGE.read_text(encoding="utf-8"), re.M
)


def test_every_case_has_a_row():
    assert [case for case, _, _ in ROWS] == [f"B{k:02}" for k in range(1, 51)]


def test_every_detected_case_has_tests_of_its_name():
    for case, verdict, file in ROWS:
        if file:
            assert f"def test_{case}_" in (HERE / file).read_text(encoding="utf-8"), case
        else:
            assert verdict.startswith("not expressible"), case


KINDS = (
    "race", "early-release", "unfenced", "lost-credit", "overshoot", "overflow", "deadlock", "livelock", "out-of-bounds",
    "capacity", "type", "alignment", "line-share", "uninitialised", "residue", "mismatch", "performance",
)  # fmt: skip


def test_every_kind_is_explained():
    headings = " ".join(re.findall(r"^### (.*)$", PAGE.read_text(encoding="utf-8"), re.M))
    assert [kind for kind in KINDS if kind not in headings] == []
