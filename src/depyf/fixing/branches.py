"""``if`` on the values of a tensor, whose sides only compute a tensor, as ``torch.where``.

    if y.sum() > 0:                    y = torch.where(y.sum() > 0, y * 2, y - 1)
        y = y * 2             ->
    else:
        y = y - 1

Both sides are new tensors of the shape of one variable (``expressions.py``), so that nobody can tell the result from
the side that was chosen. A side that is a variable as it is (``if`` without ``else``) would be that very tensor, and
``torch.where`` makes a new one: it is accepted only where the statements before have made it, and nothing else refers
to it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import Iterator, List, Optional, Sequence, Tuple, Union

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.syntax import parse
from depyf.fixing.edits import (
    FUNCTIONS,
    Change,
    Edit,
    NoEdit,
    Project,
    binds,
    dotted,
    name_of_torch,
    segment,
    tree_of,
)
from depyf.fixing.expressions import base_of_side, is_fresh, parts_of_test
from depyf.fixing.problems import Problem
from depyf.fixing.replacing import with_expression
from depyf.fixing.variables import SCOPES, function_at, has_line, only_value, sees_variables

Chooses = Union[ast.If, ast.IfExp]


@dataclass(frozen=True)
class _Branch:
    """A statement or expression that chooses: its test, both sides, and the variable that is assigned (empty: the sides
    are returned, or the value of an expression). ``follows`` is the ``return`` after the ``if`` that is the other side,
    None if the ``if`` has it itself. ``statement`` is the statement that an expression is in, ``before`` the statements
    before that one in its block."""

    node: Chooses
    target: str
    chosen: ast.expr
    other: Optional[ast.expr]
    statement: ast.stmt
    before: Sequence[ast.stmt]
    follows: Optional[ast.Return] = None


def where_for_branch(problem: Problem, project: Project) -> Edit:
    """Return the edit of the ``if`` at the line of a graph break. Raises ``NoEdit``."""
    file, line = problem.file, problem.line
    may_have_gradient = not _is_without_gradient(project, file, line)

    def text_of(source: bytes, *, is_probe: bool = False) -> str:
        return _where_text(source, file, line, is_probe=is_probe, has_gradient=may_have_gradient)

    def change(*, is_probe: bool) -> Change:
        return Change(file, line, lambda source: _replaced(source, file, line, text_of(source, is_probe=is_probe)))

    words = f"line {line}: {text_of(project.source(file))[:80]}"
    return Edit(("where", file, str(line)), words, (change(is_probe=False),), (change(is_probe=True),))


def where_for_item(problem: Problem, project: Project) -> Edit:
    """Return the same edit where a number is read out of a tensor in the test of the ``if``. Raises ``NoEdit``, without
    a reason where the line has no ``if``."""
    try:
        _branch_at(project.tree(problem.file), problem.line)
    except NoEdit as error:
        raise NoEdit from error
    return where_for_branch(problem, project)


def _where_text(source: bytes, file: str, line: int, *, is_probe: bool, has_gradient: bool) -> str:
    """Return the statement that replaces an ``if``, or the expression that replaces a conditional expression."""
    tree = tree_of(source, file)
    torch = name_of_torch(tree)
    branch = _branch_at(tree, line)
    function = function_at(tree, line)
    names = {each.id for each in ast.walk(branch.node.test) if isinstance(each, ast.Name)}
    values = {name: only_value(function, name) for name in names} if function is not None else {}
    known = {name: value for name, value in values.items() if value is not None}
    test, is_opposite = parts_of_test(branch.node.test, torch, known)
    sides = branch.chosen, branch.other or ast.Name(branch.target)
    bases = {base_of_side(each, torch, has_gradient=has_gradient) for each in sides}
    if len(bases) != 1:
        raise NoEdit("the sides are computed from different variables, so that their shapes may differ")
    for each in sides:
        if isinstance(each, ast.Name) and (
            not _is_dropped(branch, each.id)
            or _is_shared(tree, each.id, line)
            or not _is_made_before(each.id, branch.before)
        ):
            raise NoEdit(
                f"one side is {each.id} as it is, which something else may refer to: torch.where makes a new tensor"
            )
    called = {dotted(each.func) for each in ast.walk(branch.node.test) if isinstance(each, ast.Call)}
    for name in (torch, *(called & {"bool", "float"})):
        if binds(tree, name):
            raise NoEdit(f"{name} is not the {'module' if name == torch else 'builtin'} everywhere in the file")
    texts = [segment(source, branch.chosen)]
    texts.append(branch.target if branch.other is None else segment(source, branch.other))
    start = "" if isinstance(branch.node, ast.IfExp) else f"{branch.target} = " if branch.target else "return "
    where = _PROBE.format(torch=torch) if is_probe else f"{torch}.where"
    text = "".join(each if isinstance(each, str) else segment(source, each) for each in test)
    return f"{start}{where}({', '.join([text, *(reversed(texts) if is_opposite else texts)])})"


def _is_dropped(branch: _Branch, name: str) -> bool:
    """Return whether a variable whose value is one of the sides is assigned or left then, so that nobody can tell its
    old value from the result."""
    node = branch.statement
    if isinstance(branch.node, ast.If):
        return branch.target in ("", name)
    if isinstance(node, ast.Assign) and node.value is branch.node:
        return [dotted(each) for each in node.targets] == [name]
    return isinstance(node, ast.Return) and node.value is branch.node


def _is_without_gradient(project: Project, file: str, line: int) -> bool:
    """Return whether the function around a line computes without gradients in each call: all of it by a decorator, or
    the line by a ``with``. In a generator or a coroutine the caller may end that in the middle."""
    tree = project.tree(file)
    torch = name_of_torch(tree)
    if any(_MAY_END.search(project.source(name)) for name in project.imported()) or binds(tree, torch):
        return False
    function = function_at(tree, line)
    if not isinstance(function, ast.FunctionDef) or any(
        isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await)) for each in ast.walk(function)
    ):
        return False

    def is_off(node: ast.expr) -> bool:
        name = dotted(node.func) if isinstance(node, ast.Call) and not node.args and not node.keywords else ""
        return name in (f"{torch}.no_grad", f"{torch}.inference_mode")

    for each in reversed(function.decorator_list):
        if is_off(each):
            return True
        if dotted(each.func if isinstance(each, ast.Call) else each) != f"{torch}.compile":
            break  # a decorator may keep the function as it is, and call it elsewhere
    return any(
        isinstance(node, ast.With) and has_line(node, line) and any(is_off(each.context_expr) for each in node.items)
        for node in ast.walk(function)
    )


_MAY_END = re.compile(rb"enable_grad|set_grad_enabled|__wrapped__|unwrap|autocast|inference_mode(?!\(\))")
"""What turns gradients on, finds a function without its decorators, or lets operations change the dtype."""

_PROBE = (
    "(lambda c, a, b: {torch}.where(c, a, b) if c.dtype == {torch}.bool and not c.dim() and type(a) is type(b) and "
    "a.is_floating_point() and (a.shape, a.dtype, a.device, a.layout, a.requires_grad) == (b.shape, b.dtype, b.device, "
    "b.layout, b.requires_grad) else 1 / 0)"
)
"""In the place of ``torch.where``: raises unless both sides are tensors of one kind."""


def _branch_at(tree: ast.Module, line: int) -> _Branch:
    """Return the ``if`` whose test is at a line, else the one conditional expression at the line."""
    found: List[_Branch] = []
    for block in _blocks(tree):
        for at, node in enumerate(block):
            if isinstance(node, ast.If) and node.lineno <= line <= (node.test.end_lineno or line):
                follows = block[at + 1] if at + 1 < len(block) else None
                return _taken_apart(node, block[:at], follows)
            if node.lineno <= line <= (node.end_lineno or line) and not hasattr(node, "body"):
                found += [
                    _Branch(each, "", each.body, each.orelse, node, block[:at])
                    for each in ast.walk(node)
                    if isinstance(each, ast.IfExp) and each.lineno <= line <= (each.end_lineno or line)
                ]
    if len(found) == 1:
        return found[0]
    raise NoEdit(
        "there is no if statement and no single conditional expression at the line (a while, an assert, and, or)"
    )


def _blocks(tree: ast.AST) -> Iterator[List[ast.stmt]]:
    """Yield each list of statements, but not an ``elif``, which is no statement of its own."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            is_elif = name == "orelse" and isinstance(node, ast.If) and len(block or ()) == 1
            if isinstance(block, list) and block and not (is_elif and isinstance(block[0], ast.If)):
                yield block


def _taken_apart(node: ast.If, before: Sequence[ast.stmt], follows: Optional[ast.stmt]) -> _Branch:
    target, chosen = _side(node.body)
    if node.orelse:
        if target != (found := _side(node.orelse))[0]:
            raise NoEdit("the sides do not assign the same variable")
        return _Branch(node, target, chosen, found[1], node, before)
    if target:
        return _Branch(node, target, chosen, None, node, before)
    if isinstance(follows, ast.Return) and follows.value is not None:
        return _Branch(node, "", chosen, follows.value, node, before, follows)
    raise NoEdit("what follows the if is no return")


def _side(block: Sequence[ast.stmt]) -> Tuple[str, ast.expr]:
    """Return the variable that a side assigns (empty: it returns), and its value."""
    node = block[0]
    if len(block) == 1 and isinstance(node, ast.Return) and node.value is not None:
        return "", node.value
    if len(block) == 1 and isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            return target.id, node.value
    raise NoEdit("a side is more than one assignment to a variable, or one return")


def _is_made_before(name: str, before: Sequence[ast.stmt]) -> bool:
    """Return whether the statements before have made the tensor, and nothing else refers to it."""
    for node in reversed(before):
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        is_print = dotted(called) == "print"
        if is_print or not any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node)):
            continue
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            return node.targets[0].id == name and is_fresh(node.value)
        return False
    return False


def _is_shared(tree: ast.Module, name: str, line: int) -> bool:
    """Return whether something else may refer to the value of a variable of the function around a line although no
    statement of that function names both: an inner function, another function by ``global``, a copy of all locals."""
    around = [each for each in ast.walk(tree) if isinstance(each, FUNCTIONS) and has_line(each, line)]
    for node in (node for function in around[-1:] for node in ast.walk(function) if node is not function):
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.NamedExpr)):
            return True
        if getattr(node, "finalbody", None):  # it may change what the function returns, after the return
            return True
        if sees_variables(node):
            return True
        if isinstance(node, SCOPES) and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node)):
            return True
    return not around or (bool(binds(tree, "print")))


def _replaced(source: bytes, file: str, line: int, text: str) -> bytes:
    """Return the source with the text in the place of the ``if`` or of the conditional expression. Comments inside of
    a statement are put above."""
    import libcst
    from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

    tree = tree_of(source, file)
    branch = _branch_at(tree, line)
    if isinstance(branch.node, ast.IfExp):
        return with_expression(source, file, tree, branch.node, text)
    wrapper = MetadataWrapper(libcst.parse_module(source), unsafe_skip_copy=True)
    module = wrapper.module
    places = wrapper.resolve(PositionProvider).items()
    old = next(each for each, at in places if isinstance(each, libcst.If) and at.start.line == branch.node.lineno)
    comments = list(_comments(source, branch.node.lineno, branch.node.end_lineno or line))
    if branch.follows is not None:
        comments += _comments(source, (branch.node.end_lineno or line) + 1, branch.follows.end_lineno or 0)
    lines = [*old.leading_lines, *(libcst.EmptyLine(comment=libcst.Comment(each)) for each in comments)]
    new = libcst.ensure_type(
        libcst.parse_statement(text, config=module.config_for_parsing), libcst.SimpleStatementLine
    ).with_changes(leading_lines=lines)
    parent = wrapper.resolve(ParentNodeProvider)[old]
    if not isinstance(parent, (libcst.IndentedBlock, libcst.Module)):
        raise NoEdit("the if statement is no statement of a block")
    at = next(index for index, each in enumerate(parent.body) if each is old)
    rest = parent.body[at + 1 + (branch.follows is not None) :]
    block = parent.with_changes(body=[*parent.body[:at], new, *rest])
    after: bytes = libcst.ensure_type(module.deep_replace(parent, block), libcst.Module).bytes
    _check_result(source, after, file, line, text)
    return after


def _check_result(source: bytes, after: bytes, file: str, line: int, text: str) -> None:
    """Raise ``NoEdit`` unless the edited source is the old one with that statement alone in the place of the ``if``."""
    tree = tree_of(source, file)
    branch = _branch_at(tree, line)
    for block in _blocks(tree):
        at = len(branch.before)
        if at < len(block) and block[at] is branch.node:
            block[at : at + 1 + (branch.follows is not None)] = parse(f"def f():\n {text}").body[0].body  # type: ignore[attr-defined]
            break
    if ast.dump(tree) != ast.dump(tree_of(after, file)):
        raise NoEdit("the edited source is not what it should be")


def _comments(source: bytes, first: int, last: int) -> Iterator[str]:
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type == tokenize.COMMENT and first <= token.start[0] <= last:
            yield token.string
