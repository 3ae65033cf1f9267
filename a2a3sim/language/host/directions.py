"""Which tensors a block of statements reads and which it writes, by name: what its task depends on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from a2a3sim.language.operations import arguments

__all__ = ["directions"]

_WRITES = arguments("writes")
_SIGNALS = arguments("signal")


def _operand(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    return call.args[position] if position < len(call.args) else None


def _root(node: ast.expr | None) -> str | None:
    """The name at the bottom of ``name``, ``name[...]`` or ``name[...][...]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def directions(
    body: Iterable[ast.stmt], callee: Callable[[ast.expr], Any] | None = None
) -> tuple[set[str], set[str]]:
    """The names that a block reads and writes as tensors.

    Args:
        callee: from a call's function expression to the `Function` of the program that it names, or None.

    Returns:
        (reads, writes); a name that only stands for a signal is in neither.
    """
    reads: set[str] = set()
    writes: set[str] = set()
    seen: set[int] = set()  # name nodes that a call has accounted for

    def account(node: ast.expr | None, read: bool, write: bool) -> None:
        name = _root(node)
        if node is None or name is None:
            return
        if read:
            reads.add(name)
        if write:
            writes.add(name)
        seen.update(id(n) for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name)

    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                function = callee(node.func) if callee is not None else None
                if function is not None:
                    for position, parameter in enumerate(function.parameters):
                        direction = parameter.direction
                        account(
                            _operand(node, position, parameter.name), direction != "out", direction != "in"
                        )
                elif name in _WRITES:
                    account(_operand(node, *_WRITES[name]), False, True)
                elif name in _SIGNALS:
                    account(_operand(node, *_SIGNALS[name]), False, False)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                account(node, False, True)
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in seen:
                reads.add(node.id)
    return reads, writes
