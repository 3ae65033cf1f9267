"""Write the language reference, docs/language.md, from the table of operations and their docstrings.

python docs/language_refresh.py
"""

import inspect
import re
from enum import Enum
from pathlib import Path

from a2a3sim.language.operations import OPERATIONS, UNSUPPORTED, Operation

__all__ = ["reference"]

PAGE = Path(__file__).parent / "language.md"
SECTIONS = {
    "programs": "Programs",
    "host": "Host bodies",
    "orchestration": "Orchestrations",
    "control": "Loops and blocks",
    "scalars": "Scalars",
    "moves": "Own global memory and UB",
    "tiles": "Tiles",
    "remote": "Other ranks",
    "signals": "Signals, fences and barriers",
    "collectives": "Collectives",
}
HEAD = """# The language

Every call of `pl` (`import a2a3sim.language as pl`) and `pld` (`import a2a3sim.language.distributed as pld`).
`docs/language_refresh.py` writes this page from the table of operations (`a2a3sim/language/operations.py`).

*Pipe* is what an operation occupies on its core; an operation without one takes no time there. The kernel goes on at
once unless it *waits*. *Writes* names the argument whose bytes in global memory change.
"""


def _default(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return repr(value) if isinstance(value, (int, float, str, bool, type(None))) else "…"


def _signature(name: str, function: object) -> str:
    try:
        parameters = inspect.signature(function).parameters.values()
    except TypeError:  # a value
        return name
    parts, star = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        parts.append(f"{mark}{p.name}" + ("" if p.default is p.empty else f"={_default(p.default)}"))
    return f"{name}({', '.join(parts)})"


def _entry(operation: Operation) -> str:
    function, (name, *others) = operation.resolve(), operation.names.split()
    lines = [f"### `{_signature(name, function)}`", ""]
    text = inspect.getdoc(function) or ""
    lines += [re.split(r"\n\n(?=\w+:\n)", text)[0].replace("``", "`"), ""]
    facts = [f"also `{'`, `'.join(others)}`"] if others else []
    facts += [f"pipe: {operation.pipe}"] if operation.pipe else []
    facts += [f"waits for {operation.waits}"] if operation.waits else []
    facts += [f"writes `{operation.writes[1]}`"] if operation.writes else []
    facts += [f"prices: `{'`, `'.join(operation.instructions)}`"] if operation.instructions else []
    return "\n".join([*lines, f"{' · '.join(facts)}\n"] if facts else lines)


def reference() -> str:
    """The page."""
    parts = [HEAD]
    for kind, title in SECTIONS.items():
        parts += [f"## {title}\n", *(_entry(o) for o in OPERATIONS if o.kind == kind)]
    missing = [f"- `{space}`: {', '.join(f'`{n}`' for n in names)}" for space, names in UNSUPPORTED.items()]
    parts += ["## Not simulated\n", "Names of PyPTO that say so when they are used.\n", *missing]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference())
