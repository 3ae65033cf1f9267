"""One word, one thing: what the glossary names exists, and no new class takes the name of another."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = re.findall(
    r"^\| ([^|]+) \| [^|]+ \| `(\S+): (\w+)` \|$", (ROOT / "docs" / "glossary.md").read_text(), re.M
)

#: Words of two rooms, of which one still needs another name. The list only shrinks.
TWICE = {"Call", "Collective", "Dispatch", "Operation", "Piece"}


def defined(path: Path) -> set[str]:
    """Classes and functions of a module."""
    tree = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in tree if isinstance(node, ast.ClassDef | ast.FunctionDef)}


@pytest.mark.parametrize(("word", "file", "name"), ROWS, ids=[row[0] for row in ROWS])
def test_what_owns_a_word_exists(word, file, name):
    assert name in defined(ROOT / file)


def test_every_row_names_its_owner_and_every_word_stands_once():
    rows = [
        line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")
    ]
    assert len(rows) - 1 == len(ROWS) == len({word for word, _, _ in ROWS})


def test_no_two_public_classes_have_one_name():
    files = [
        p for room in ("a2a3sim", "models", "kernels", "experiments") for p in (ROOT / room).rglob("*.py")
    ]
    names = Counter(
        node.name
        for path in files
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in names.items() if times > 1} <= TWICE
