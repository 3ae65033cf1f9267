"""A function's source as a syntax tree, and a changed tree as a function again."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

__all__ = ["assigned_name", "names_in", "rebuilt", "resolve", "scope_of", "syntax_tree"]

_ASSIGNED = re.compile(r"^\s*(\w+)\s*(?::[^=]+)?=[^=]")


def assigned_name(frame: FrameType) -> str | None:
    """The name that the caller's line assigns to, for reports."""
    match = _ASSIGNED.match(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
    return match.group(1) if match else None


def names_in(code: CodeType) -> set[str]:
    """Every global, closure and attribute name that a code object uses, nested functions included."""
    found = set(code.co_names) | set(code.co_freevars)
    for const in code.co_consts:
        if hasattr(const, "co_names"):
            found |= names_in(const)
    return found


def syntax_tree(fn: FunctionType | CodeType) -> ast.FunctionDef | None:
    """The definition of a function with the line numbers of its file, or None where there is no source."""
    try:
        lines, first = inspect.getsourcelines(fn)
    except (OSError, TypeError):
        return None
    try:
        # A method is indented; the added line makes that a block.
        module = (
            ast.parse("if True:\n" + "".join(lines)) if lines[0][:1].isspace() else ast.parse("".join(lines))
        )
    except SyntaxError:
        return None
    indented = lines[0][:1].isspace()
    node = module.body[0]
    if indented and isinstance(node, ast.If):
        node = node.body[0]
    if not isinstance(node, ast.FunctionDef):
        return None
    return ast.increment_lineno(node, first - (2 if indented else 1))


def scope_of(fn: FunctionType) -> dict[str, Any]:
    """The global and closure names of a function with their present values."""
    scope = dict(fn.__globals__)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return scope


def resolve(node: ast.expr, scope: dict[str, Any]) -> Any:
    """What a name or dotted name means, or None."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        base = resolve(node.value, scope)
        return None if base is None else getattr(base, node.attr, None)
    return None


def rebuilt(fn: FunctionType, node: ast.FunctionDef, helpers: dict[str, object]) -> FunctionType:
    """A function like ``fn`` with the body of ``node``.

    Args:
        helpers: further names that the body uses; they shadow nothing of the function's module.
    """
    free = [*fn.__code__.co_freevars, *helpers]
    node.decorator_list = []
    node.returns = None
    for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        arg.annotation = None
    # Defaults are taken over from the function itself.
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [None if d is None else ast.Constant(None) for d in node.args.kw_defaults]
    factory = ast.FunctionDef(
        name="factory",
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(n) for n in free], kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        body=[node, ast.Return(ast.Name(node.name, ast.Load()))],
        decorator_list=[],
    )
    if hasattr(factory, "type_params"):
        factory.type_params = []
    module = ast.fix_missing_locations(ast.Module([factory], []))
    code = compile(module, fn.__code__.co_filename, "exec")
    outer = next(c for c in code.co_consts if hasattr(c, "co_name") and c.co_name == "factory")
    inner = next(c for c in outer.co_consts if hasattr(c, "co_name") and c.co_name == node.name)
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells.update((name, CellType(value)) for name, value in helpers.items())
    made = FunctionType(
        inner, fn.__globals__, fn.__name__, fn.__defaults__, tuple(cells[n] for n in inner.co_freevars)
    )
    made.__kwdefaults__ = fn.__kwdefaults__
    made.__doc__ = fn.__doc__
    return made
