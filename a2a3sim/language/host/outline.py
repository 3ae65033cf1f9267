"""Blocks as functions: what stands in ``with pl.at(...):`` becomes a task that can run later and elsewhere.

A context manager cannot postpone the statements below it. So a function that uses `pl.at` is rewritten once,
from its source: each block becomes a function of the names it reads, called through `Block.open`, and the
names it assigns come back from there. Loops that carry values by `pl.yield_` get their values also where they
run zero times.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, TypeAlias, TypeGuard

from a2a3sim.errors import ParserSyntaxError
from a2a3sim.language.host import blocks
from a2a3sim.language.host.directions import directions
from a2a3sim.language.kernel import loops
from a2a3sim.language.source import names_in, rebuilt, resolve, scope_of, syntax_tree
from a2a3sim.locate import shown

__all__ = ["outlined"]

_OPEN, _LOCALS, _UNBOUND = "__a2a3sim_open", "__a2a3sim_locals", "__a2a3sim_unbound"

#: From a call's function expression and the names in scope to the `Function` of the program that it names, or None.
Callee: TypeAlias = Callable[[ast.expr, dict[str, Any]], Any]


def outlined(fn: FunctionType, callee: Callee | None = None) -> FunctionType:
    """``fn`` with its blocks made functions; ``fn`` itself if it has none or its source is not at hand.

    Args:
        callee: from a call's function expression and the names in scope to the `Function` of the program that
            it names, or None.

    Raises:
        ParserSyntaxError: a block that leaves by return, break or continue.
    """
    names = names_in(fn.__code__)
    if not names & {"at", "yield_"}:
        return fn
    node = syntax_tree(fn)
    if node is None:
        return fn
    rewriter = _Rewriter(fn, node, callee)
    node.body = rewriter.statements(node.body)
    if not rewriter.count:
        return fn
    return rebuilt(fn, node, {_OPEN: blocks.open_block, _LOCALS: locals, _UNBOUND: blocks.UNBOUND})


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> set[str]:
    return {
        n.id
        for node in nodes
        for n in ast.walk(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, context)
    }


def _one_item_each(function: ast.FunctionDef) -> None:
    """``with a, b:`` becomes two nested statements."""
    for node in ast.walk(function):
        if isinstance(node, ast.With) and len(node.items) > 1:
            inner = ast.copy_location(ast.With(node.items[1:], node.body), node)
            node.items, node.body = node.items[:1], [inner]


class _Rewriter:
    """Rewrites the statements of one function.

    Attributes:
        count: how many places were changed.
    """

    def __init__(self, fn: FunctionType, node: ast.FunctionDef, callee: Callee | None = None) -> None:
        self.fn = fn
        self.scope = scope_of(fn)
        self.callee = None if callee is None else (lambda expression: callee(expression, self.scope))
        self.at = blocks.at
        self.loops = (loops.pl_range, loops.parallel, loops.unroll)
        self.carry = loops.yield_
        self.count = 0
        code = fn.__code__
        self.locals = {*code.co_varnames, *code.co_cellvars}
        names = names_in(code)
        self.graph = "defer_wait" in names or any(
            isinstance(n, ast.Call)
            and self._means(n.func, self.at)
            and any(k.arg == "deps" for k in n.keywords)
            for n in ast.walk(node)
        )
        _one_item_each(node)
        # Before anything is changed: what each block takes, and what others take from it.
        self.taken = {id(n): self._traffic(node, n) for n in ast.walk(node) if self._is_block(n)}

    def _traffic(self, function: ast.FunctionDef, block: ast.With) -> tuple[tuple[str, ...], ...]:
        """Local names that a block loads, that others load from it, that it reads and writes as tensors."""
        loaded = _names(block.body, ast.Load) & self.locals
        inside = {id(n) for s in block.body for n in ast.walk(s)}
        outside = {
            n.id
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in inside
        }
        outs = _names(block.body, ast.Store) & self.locals & outside
        reads, writes = directions(block.body, self.callee)
        return tuple(
            tuple(sorted(names)) for names in (loaded, outs, reads & self.locals, writes & self.locals)
        )

    def _is_block(self, node: ast.AST) -> TypeGuard[ast.With]:
        if not isinstance(node, ast.With):
            return False
        first = node.items[0].context_expr
        return isinstance(first, ast.Call) and self._means(first.func, self.at)

    def _means(self, node: ast.expr, *what: object) -> bool:
        found = resolve(node, self.scope)
        return found is not None and any(found is w for w in what)

    # ---- statements -------------------------------------------------------------------------------

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A statement list, rewritten."""
        found = []
        for statement in body:
            found += self._statement(statement)
        return found

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            return [statement]
        if self._is_block(statement):
            return self._block(statement)
        carried = statement if isinstance(statement, ast.For) and self._carries(statement) else None
        before = [] if carried is None else list(carried.body)
        for field in ("body", "orelse", "finalbody"):
            part = getattr(statement, field, None)
            if part:
                setattr(statement, field, self.statements(part))
        for handler in getattr(statement, "handlers", ()):
            handler.body = self.statements(handler.body)
        return [statement] if carried is None else self._loop(carried, before)

    # ---- loops ------------------------------------------------------------------------------------

    def _carries(self, loop: ast.For) -> bool:
        call = loop.iter
        return (
            isinstance(call, ast.Call)
            and any(k.arg == "init_values" for k in call.keywords)
            and self._means(call.func, *self.loops)
        )

    def _loop(self, loop: ast.For, body: list[ast.stmt]) -> list[ast.stmt]:
        """After a loop without a single trip, the names of its yield hold the initial values."""
        target = None
        for statement in body:
            if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
                continue
            if self._means(statement.value.func, self.carry):
                target = statement.targets[0]
        if target is None:
            return [loop]
        self.count += 1
        name = f"__a2a3sim_loop_{self.count}"
        made = ast.Assign([_store(name)], loop.iter)
        loop.iter = _load(name)
        value = ast.Attribute(_load(name), "final", ast.Load())
        unused = ast.UnaryOp(ast.Not(), ast.Attribute(_load(name), "trips", ast.Load()))
        after = ast.If(unused, [ast.Assign([target], value)], [])
        for new in (made, after):
            ast.copy_location(new, loop)
            ast.fix_missing_locations(new)
        return [made, loop, after]

    # ---- blocks -----------------------------------------------------------------------------------

    def _block(self, block: ast.With) -> list[ast.stmt]:
        self.count += 1
        number = self.count
        self._check_exits(block, block.body, in_loop=False)
        loaded, outs, reads, writes = self.taken[id(block)]
        body = self.statements(block.body)
        name, result = f"block_{number}_at_line_{block.lineno}", f"__a2a3sim_result_{number}"
        unbound = [
            ast.If(
                ast.Compare(_load(p), [ast.Is()], [_load(_UNBOUND)]),
                [ast.Delete([ast.Name(p, ast.Del())])],
                [],
            )
            for p in loaded
        ]
        arguments = ast.arguments(
            posonlyargs=[], args=[ast.arg(p) for p in loaded], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        back = ast.Return(ast.Call(_load(_LOCALS), [], []))
        function = ast.FunctionDef(name=name, args=arguments, body=[*unbound, *body, back], decorator_list=[])
        if hasattr(function, "type_params"):
            function.type_params = []
        item = block.items[0]
        opened = ast.Call(
            _load(_OPEN),
            [
                item.context_expr,
                _load(name),
                ast.Call(_load(_LOCALS), [], []),
                *(ast.Constant(names) for names in (loaded, outs, reads, writes)),  # type: ignore[arg-type]  # tuples do
                ast.Constant(self.graph),
            ],
            [],
        )
        found: list[ast.stmt] = [function, ast.Assign([_store(result)], opened)]
        if item.optional_vars is not None:
            found.append(ast.Assign([item.optional_vars], ast.Attribute(_load(result), "task", ast.Load())))
        values = ast.Attribute(_load(result), "values", ast.Load())
        for out in outs:
            test = ast.Compare(ast.Constant(out), [ast.In()], [values])
            value = ast.Subscript(values, ast.Constant(out), ast.Load())
            found.append(ast.If(test, [ast.Assign([_store(out)], value)], []))
        for new in found:
            ast.copy_location(new, block)
            ast.fix_missing_locations(new)
        return found

    def _check_exits(self, block: ast.With, body: list[ast.stmt], in_loop: bool) -> None:
        for statement in body:
            left = isinstance(statement, ast.Return) or (
                isinstance(statement, (ast.Break, ast.Continue)) and not in_loop
            )
            if left:
                error = ParserSyntaxError(
                    f"{shown(self.fn.__code__.co_filename)}:{statement.lineno}: a pl.at block is a task "
                    "of its own "
                    f"and cannot be left by {type(statement).__name__.lower()}"
                )
                error.located = True
                raise error
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                continue
            loop = in_loop or isinstance(statement, (ast.For, ast.While))
            for field in ("body", "orelse", "finalbody"):
                self._check_exits(block, getattr(statement, field, None) or [], loop)
