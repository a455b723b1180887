"""The body of a comprehension's code object, structured, back to one expression."""

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.lift.build import negate
from depyf.decompiler.source.passes.counting import is_temporary
from depyf.decompiler.structure.accumulation import AccumulateStatement
from depyf.decompiler.structure.unstructured import Unstructured


def comprehension(code: Code, body: List[ast.stmt], iterable: ast.expr, unreached: Sequence[str] = ()) -> ast.expr:
    """Return the comprehension of ``code``, which has the statements ``body``.

    ``iterable``: the iterable of the outermost loop; ``unreached``: names that the comprehension must mention. Raises
    ``Unstructured`` if the statements are not a comprehension.
    """
    kind, statements = code.co_name, list(body)
    if statements and isinstance(statements[-1], ast.Return):
        statements.pop()
    if len(statements) == 2 and isinstance(statements[0], ast.Assign):  # the empty container that is filled
        del statements[0]
    generators: List[ast.comprehension] = []
    current = statements
    while True:
        assigned = current[0] if generators and len(current) > 1 else None
        if isinstance(assigned, ast.Assign) and len(assigned.targets) == 1:
            # ``for y in [f(x)]`` is an assignment since 3.9
            once = ast.List([assigned.value], ast.Load())
            generators.append(ast.comprehension(assigned.targets[0], once, [], 0))
            current = current[1:]
            continue
        # ``if not a: continue`` before the rest is ``if a`` around the rest.
        if len(current) != 1:
            current = _continue_form(current)
        statement = current[0]
        if isinstance(statement, (ast.For, ast.AsyncFor)) and not statement.orelse:
            # The outermost iterable is evaluated outside, and is the argument of the code object.
            over = statement.iter if generators else iterable
            async_ = int(isinstance(statement, ast.AsyncFor))
            generators.append(ast.comprehension(statement.target, over, [], async_))
            current = statement.body
        elif isinstance(statement, ast.If) and generators and not statement.orelse:
            generators[-1].ifs.append(statement.test)
            current = statement.body
        else:
            break
    if generators and isinstance(statement, (ast.Pass, ast.Continue)):
        # ``if False``: the compiler removes the code it guards, and keeps the loop variables in that.
        generators[-1].ifs.append(ast.Constant(False))
        generators.extend(_loops_over_nothing(code, generators))
        return _NEVER[kind](mentioning(ast.Constant(None), unreached), generators)
    if unreached and generators:
        generators[0].ifs.insert(0, mentioning(ast.Constant(True), unreached))
    return _result(kind, statement, generators)


def mentioning(value: ast.expr, names: Sequence[str]) -> ast.expr:
    """Return ``value`` with ``names`` where the compiler sees them and no code evaluates them."""
    if not names:
        return value
    mentioned: List[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    other = mentioned[0] if len(mentioned) == 1 else ast.Tuple(mentioned, ast.Load())
    return ast.IfExp(ast.Constant(True), value, other)


def _loops_over_nothing(code: Code, generators: List[ast.comprehension]) -> Iterator[ast.comprehension]:
    """Yield ``for x in ()`` for each variable ``x`` of ``code`` that ``generators`` do not have."""
    parts = [part for loop in generators for part in (loop.target, *loop.ifs)]
    bound = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
    for name in (*code.co_varnames, *code.co_cellvars):
        if name not in bound and name.isidentifier():
            bound.add(name)
            yield ast.comprehension(ast.Name(name, ast.Store()), ast.Tuple([], ast.Load()), [], 0)


def _continue_form(statements: List[ast.stmt]) -> List[ast.stmt]:
    """Return an ``if`` around the rest for ``if a: continue``, and ``if a or True`` for a test without effect."""
    always, first = _always(statements), statements[0] if statements else None
    if always is not None:
        return [ast.If(always, statements[1:], [])]
    if (
        isinstance(first, ast.If)
        and len(first.body) == 1
        and isinstance(first.body[0], ast.Continue)
        and not first.orelse
    ):
        return [ast.If(negate(first.test), statements[1:], [])]
    raise Unstructured("a comprehension does more than one thing in its loop")


def _always(statements: List[ast.stmt]) -> Optional[ast.expr]:
    """Return ``test or True`` where ``if not test: pass`` comes first; ``None`` elsewhere."""
    first = statements[0] if statements else None
    if not isinstance(first, ast.If) or first.orelse or not all(isinstance(each, ast.Pass) for each in first.body):
        return None
    return ast.BoolOp(ast.Or(), [negate(first.test), ast.Constant(True)])


def _result(kind: str, statement: ast.stmt, generators: List[ast.comprehension]) -> ast.expr:
    if not generators:
        raise Unstructured("a comprehension without a loop")
    if kind == "<genexpr>":
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
            element = statement.value.value
            last = generators[-1]
            if len(generators) > 1 and _only_passes_on(last, element):  # ``*element``
                return ast.GeneratorExp(ast.Starred(last.iter, ast.Load()), generators[:-1])
            return ast.GeneratorExp(element if element is not None else ast.Constant(None), generators)
    elif isinstance(statement, AccumulateStatement):
        if statement.kind == "list" and kind == "<listcomp>":
            return ast.ListComp(statement.element, generators)
        if statement.kind == "set" and kind == "<setcomp>":
            return ast.SetComp(statement.element, generators)
        if statement.kind == "map" and kind == "<dictcomp>":
            if statement.key is None:  # ``**element``
                return _unpacking_dict(statement.element, generators)
            return ast.DictComp(statement.key, statement.element, generators)
    raise Unstructured(f"the loop of a {kind} does not end in adding an element")


_NEVER: Dict[str, Callable[[ast.expr, List[ast.comprehension]], ast.expr]] = {
    "<genexpr>": ast.GeneratorExp,
    "<listcomp>": ast.ListComp,
    "<setcomp>": ast.SetComp,
    "<dictcomp>": lambda element, generators: ast.DictComp(element, ast.Constant(None), generators),
}
"""Makers of comprehensions whose element is never computed."""


def _only_passes_on(loop: ast.comprehension, element: Optional[ast.expr]) -> bool:
    """Return whether ``loop`` has no variable of the source: it yields the elements of its iterable."""
    target = loop.target
    if not isinstance(target, ast.Name) or not is_temporary(target.id) or loop.ifs or loop.is_async:
        return False
    return isinstance(element, ast.Name) and element.id == target.id


def _unpacking_dict(element: ast.expr, generators: List[ast.comprehension]) -> ast.expr:
    without_value: Any = None  # 3.15
    return ast.DictComp(element, without_value, generators)


def as_expression(body: List[ast.stmt], *, at_end: bool = True) -> ast.expr:
    """Return the value of a lambda with the body ``body``: returns in branches become a conditional expression.
    ``at_end``: nothing follows ``body``, so that its end returns None. Raises ``Unstructured`` for other statements."""
    # return a                          a
    # if t: return a else: return b     a if t else b
    # if t: return a; return b          the same, with the rest of the body as the other arm
    if not body and at_end:
        return ast.Constant(None)
    if len(body) == 1:
        statement = body[0]
        if isinstance(statement, ast.Return):
            return statement.value if statement.value is not None else ast.Constant(None)
        if isinstance(statement, ast.If) and statement.orelse:
            yes, no = as_expression(statement.body, at_end=at_end), as_expression(statement.orelse, at_end=at_end)
            return ast.IfExp(statement.test, yes, no)
    always = _always(body)
    if always is not None:
        return ast.IfExp(always, as_expression(body[1:], at_end=at_end), ast.Constant(None))
    if body and isinstance(body[0], ast.If) and not body[0].orelse:
        yes, no = as_expression(body[0].body, at_end=at_end and len(body) == 1), as_expression(body[1:], at_end=at_end)
        return ast.IfExp(body[0].test, yes, no)
    if len(body) == 2 and isinstance(body[0], ast.Expr) and _is_none(body[1]):
        return body[0].value
    raise Unstructured("a lambda has statements")


def _is_none(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Return)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is None
    )
