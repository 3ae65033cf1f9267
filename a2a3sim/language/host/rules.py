"""What the language demands of a host body's text: where windows are allocated, what device= may be."""

from __future__ import annotations

import ast
from types import FunctionType

from a2a3sim.errors import ParserError, ParserSyntaxError, ParserTypeError
from a2a3sim.language.source import syntax_tree
from a2a3sim.locate import shown

__all__ = ["check_host_body"]

_LOOPS = ("range", "parallel", "unroll")


def check_host_body(fn: FunctionType) -> None:
    """The rules of a host body; nothing is checked where the source is not at hand.

    Raises:
        ParserSyntaxError: a window that is not allocated by a plain assignment to a name of its own.
        ParserTypeError: a ``device=`` that is neither a constant nor the variable of a unit-step loop.
    """
    node = syntax_tree(fn)
    if node is not None:
        _check_allocations(fn, node)
        _check_devices(fn, node)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _error(kind: type[ParserError], fn: FunctionType, node: ast.expr, message: str) -> ParserError:
    error = kind(f"{shown(fn.__code__.co_filename)}:{node.lineno}: {message}")
    error.located = True
    return error


def _check_allocations(fn: FunctionType, body: ast.FunctionDef) -> None:
    what = "pld.alloc_window_buffer"
    assigned: dict[int, str] = {}
    for node in ast.walk(body):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) == 1 and isinstance(targets[0], ast.Name) and isinstance(node.value, ast.Call):
            assigned[id(node.value)] = targets[0].id
    seen: set[str] = set()
    for node in ast.walk(body):
        if not isinstance(node, ast.Call) or _called(node) != "alloc_window_buffer":
            continue
        name = assigned.get(id(node))
        if name is None:
            raise _error(
                ParserSyntaxError,
                fn,
                node,
                f"{what} must be the right side of a plain assignment, as in buf = {what}(…)",
            )
        if name in seen:
            raise _error(
                ParserSyntaxError,
                fn,
                node,
                f"{what}: {name} is allocated twice; each window needs its own name",
            )
        seen.add(name)


def _check_devices(fn: FunctionType, body: ast.FunctionDef) -> None:
    loops: dict[str, ast.For] = {}
    assigned = {a.arg for a in body.args.args}
    for node in ast.walk(body):
        if isinstance(node, ast.For):
            for name in ast.walk(node.target):
                if isinstance(name, ast.Name):
                    loops[name.id] = node
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                assigned.update(
                    n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                )
    for node in ast.walk(body):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg == "device":
                problem = _bad_device(keyword.value, loops, assigned)
                if problem:
                    raise _error(
                        ParserTypeError,
                        fn,
                        keyword.value,
                        f"device= of {_called(node)} must be a constant or the variable of a pl.range "
                        "loop with step 1, "
                        f"got {ast.unparse(keyword.value)}{problem}",
                    )


def _bad_device(value: ast.expr, loops: dict[str, ast.For], assigned: set[str]) -> str:
    """Why an expression is no device, or an empty string."""
    if isinstance(value, ast.Constant):
        return (
            "" if isinstance(value.value, int) and not isinstance(value.value, bool) else ", which is no rank"
        )
    if not isinstance(value, ast.Name):
        return ", an expression"
    loop = loops.get(value.id)
    if loop is None:
        return ", which the body computes" if value.id in assigned else ""
    call = loop.iter
    if isinstance(call, ast.Call) and _called(call) in _LOOPS and len(call.args) == 3:
        step = call.args[2]
        if not (isinstance(step, ast.Constant) and step.value == 1):
            return f", whose loop has the step {ast.unparse(step)}"
    return ""
