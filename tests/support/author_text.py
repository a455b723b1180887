"""Compare the exact texts of two functions, without what leaves no trace in a code object, and name the differences.

``same_source.py`` is the laxer measure beside this one: there every text counts as the same that compiles to the same
operations. Here the lines and columns of the instructions count, too: ``if a: if b:`` is not ``if a and b:``.
"""

from __future__ import annotations

import ast
import copy
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from same_source import (
    _LEAVES,
    Displays,
    Function,
    _folded,
    _formatted,
    _is_constant,
    _Private,
    without_surroundings,
)

if sys.version_info >= (3, 9):
    unparse = ast.unparse
else:
    from depyf.decompiler.source.printing.statements import unparse

Block = List[ast.stmt]


def author_text(function: Function, owner: Optional[str] = None) -> str:
    """The text of a function as ``ast.unparse`` writes it, without what a code object has no trace of.

    ``owner`` is the class that the function stands in, for the private names in it. Taken away:

    - what belongs to the code around the function: its decorators, defaults and annotations
    - annotations of local variables, constants as statements, what stands behind a statement that leaves
    - ``if`` and ``while`` with a constant test that is false, the test of an ``if`` that is true, ``__debug__`` too
    - ``global`` and ``nonlocal``: where they stand, and in which order
    - ``pass`` beside other statements, ``else: pass``

    Made alike: constant expressions and their values; ``while 1`` and ``while True``; the order of constants in a set;
    annotations of inner functions and strings of these;
    a list that is only run over, searched or assigned to, and a tuple; ``not a in b`` and ``a not in b``; private names
    in a class and as they are compiled; docstrings with other indentation (3.13 takes it away).
    """
    return unparse(_traced(function, owner))


def strict_text(function: Function) -> str:
    """The text of a function as ``ast.unparse`` writes it, without its decorators, defaults and annotations, which the
    code around it evaluates. Only docstrings are made alike, in their indentation."""
    function = without_surroundings(function)
    function.type_comment = None
    for node in ast.walk(function):
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            and ast.get_docstring(node) is not None
        ):
            node.body[0] = _docstring(node.body[0])
    return unparse(ast.fix_missing_locations(function))


def _traced(function: Function, owner: Optional[str]) -> Function:
    function = without_surroundings(function)
    function.type_comment = None
    name = function.name  # a code object has it as it was written
    _Private(owner).visit(function)
    function.name = name
    tree: Function = _Traced().visit(function)
    return ast.fix_missing_locations(tree)


class _Blocks(ast.NodeTransformer):
    """Rewrites every list of statements, innermost first."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, self.block(block, node, field))
        return node

    def block(self, block: Block, owner: ast.AST, field: str) -> Block:
        """The new statements of ``field`` of ``owner``."""
        raise NotImplementedError


class _Traced(_Blocks, Displays):
    def block(self, block: Block, owner: ast.AST, field: str) -> Block:
        definition = isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        kept: Block = []
        for index, statement in enumerate(block):
            if _is_constant([statement]):
                if index == 0 and definition and isinstance(statement.value.value, str):  # type: ignore[attr-defined]
                    kept.append(_docstring(statement))
            elif isinstance(statement, ast.If) and isinstance(statement.test, ast.Constant):
                kept.extend(statement.body if statement.test.value else statement.orelse)
            elif isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant):
                if statement.test.value:
                    statement.test, statement.orelse = ast.Constant(True), []
                    kept.append(statement)
                else:
                    kept.extend(statement.orelse)
            elif isinstance(statement, (ast.Global, ast.Nonlocal)):
                continue
            else:
                kept.append(statement)
        for index, statement in enumerate(kept):
            if isinstance(statement, _LEAVES):
                del kept[index + 1 :]
                break
        kept = [statement for statement in kept if not isinstance(statement, ast.Pass)]
        return kept or ([ast.Pass()] if field == "body" else [])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Optional[ast.AST]:
        self.generic_visit(node)
        if node.value is None:
            return None if node.simple else node
        return ast.Assign([node.target], node.value, lineno=0)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node  # a class body keeps its annotations

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.type_comment = None
        node.returns = _evaluated(node.returns)
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.visit_FunctionDef(node)  # type: ignore[arg-type]

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = _evaluated(node.annotation)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _folded(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return _folded(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        value = node.operand
        if isinstance(node.op, ast.Not) and isinstance(value, ast.Compare) and len(value.ops) == 1:
            opposite = {ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
            if type(value.ops[0]) in opposite:
                return ast.Compare(value.left, [opposite[type(value.ops[0])]()], value.comparators)
        return _folded(node)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        self.generic_visit(node)
        if all(isinstance(element, ast.Constant) for element in node.elts):
            node.elts.sort(key=ast.dump)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(True) if node.id == "__debug__" else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        node.kind = None
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        if all(isinstance(part, ast.Constant) for part in node.values):
            return ast.Constant("".join(part.value for part in node.values if isinstance(part, ast.Constant)))
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.format_spec, ast.Constant):  # the tree of a specification is always a ``JoinedStr``
            node.format_spec = ast.JoinedStr([node.format_spec])
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.type_comment = None
        return self.generic_visit(node)


def _evaluated(annotation: Optional[ast.expr]) -> Optional[ast.expr]:
    """An annotation that is a string, as ``from __future__ import annotations`` makes each of them one."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return annotation
    return annotation


def _docstring(statement: Any) -> ast.stmt:
    import inspect

    return ast.Expr(ast.Constant(inspect.cleandoc(statement.value.value)))


# --- what differs


class _WithoutElse(_Blocks):
    """``else`` behind a branch that leaves."""

    def block(self, block: Block, owner: ast.AST, field: str) -> Block:
        kept: Block = []
        for statement in block:
            kept.append(statement)
            if isinstance(statement, ast.If) and statement.body and isinstance(statement.body[-1], _LEAVES):
                kept.extend(statement.orelse)
                statement.orelse = []
        return kept


class _NoNesting(_Blocks):
    """``if a: if b:`` and ``if a and b:``."""

    def block(self, block: Block, owner: ast.AST, field: str) -> Block:
        return [self._merged(statement) for statement in block]

    def _merged(self, outer: ast.stmt) -> ast.stmt:
        if isinstance(outer, ast.If) and len(outer.body) == 1 and not outer.orelse:
            inner = outer.body[0]
            if isinstance(inner, ast.If) and not inner.orelse:
                values = [each for test in (outer.test, inner.test) for each in _operands(test)]
                outer.test, outer.body = ast.BoolOp(ast.And(), values), inner.body
        return outer


def _operands(test: ast.expr) -> List[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


class _NoNegation(ast.NodeTransformer):
    """``not (a and b)`` and ``not a or not b``; ``not a == b`` stays."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        value = node.operand
        if isinstance(node.op, ast.Not) and isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
            return value.operand
        if isinstance(node.op, ast.Not) and isinstance(value, ast.BoolOp):
            other = ast.Or() if isinstance(value.op, ast.And) else ast.And()
            return self._flat(other, [self.visit_UnaryOp(ast.UnaryOp(ast.Not(), each)) for each in value.values])
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return self._flat(node.op, node.values)

    def _flat(self, op: ast.boolop, values: List[Any]) -> ast.BoolOp:
        parts: List[ast.expr] = []
        for value in values:
            same = isinstance(value, ast.BoolOp) and type(value.op) is type(op)
            parts.extend(value.values if same else [value])
        return ast.BoolOp(op, parts)


class _NoSwaps(_Blocks):
    """The branches of an ``if`` in one order, tests without ``not``."""

    def block(self, block: Block, owner: ast.AST, field: str) -> Block:
        for statement in block:
            if isinstance(statement, ast.If) and isinstance(statement.test, ast.UnaryOp):
                if isinstance(statement.test.op, ast.Not) and statement.orelse:
                    statement.test = statement.test.operand
                    statement.body, statement.orelse = statement.orelse, statement.body
            if isinstance(statement, ast.If) and isinstance(statement.test, ast.Compare) and statement.orelse:
                opposite = {ast.NotIn: ast.In, ast.IsNot: ast.Is}.get(type(statement.test.ops[0]))
                if opposite is not None and len(statement.test.ops) == 1:
                    statement.test.ops = [opposite()]
                    statement.body, statement.orelse = statement.orelse, statement.body
        return block


class _NoJumps(_Blocks):
    """``continue`` and ``return`` of nothing where control goes there anyway; the rest in ``else``."""

    def block(self, block: Block, owner: ast.AST, field: str) -> Block:
        if isinstance(owner, (ast.For, ast.While, ast.AsyncFor)) and field == "body":
            return self._without(block, lambda each: isinstance(each, ast.Continue))
        if isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self._without(block, _returns_nothing)
        return block

    def _without(self, block: Block, jump: Callable[[ast.stmt], bool]) -> Block:
        block = list(block)
        while block and jump(block[-1]):
            block.pop()
        for index, statement in enumerate(block):
            if isinstance(statement, ast.If) and statement.body and jump(statement.body[-1]):
                statement.orelse = [*statement.orelse, *block[index + 1 :]]
                statement.body = self._without(statement.body, jump) or [ast.Pass()]
                del block[index + 1 :]
                break
        last: Any = block[-1] if block else None
        if isinstance(last, (ast.If, ast.With, ast.Try)):
            if not getattr(last, "finalbody", None):
                for field in ("body", "orelse"):
                    if getattr(last, field, None) and not (
                        field == "body" and isinstance(last, ast.Try) and last.orelse
                    ):
                        setattr(last, field, self._without(getattr(last, field), jump))
                last.body = last.body or [ast.Pass()]
                for handler in getattr(last, "handlers", []):
                    handler.body = self._without(handler.body, jump) or [ast.Pass()]
        if isinstance(last, ast.If) and isinstance(last.body[0], ast.Pass) and last.orelse:
            last.test, last.body, last.orelse = ast.UnaryOp(ast.Not(), last.test), last.orelse, []
        return block


def _returns_nothing(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Return):
        return False
    return statement.value is None or (isinstance(statement.value, ast.Constant) and statement.value.value is None)


class _BareReturns(ast.NodeTransformer):
    """``return None`` and ``return``."""

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if _returns_nothing(node):
            node.value = None
        return node


class _NoChoices(ast.NodeTransformer):
    """``return a if b else c`` and two returns."""

    def visit_Return(self, node: ast.Return) -> Any:
        if isinstance(node.value, ast.IfExp):
            choice = node.value
            no = self.visit_Return(ast.Return(choice.orelse))
            yes = self.visit_Return(ast.Return(choice.body))
            return ast.If(choice.test, yes if isinstance(yes, list) else [yes], no if isinstance(no, list) else [no])
        return node


class _OneName(ast.NodeTransformer):
    """``import a, b``, ``with a, b``, ``del a, b`` and two statements."""

    def visit_Import(self, node: ast.Import) -> List[ast.Import]:
        return [ast.Import(names=[alias]) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> List[ast.ImportFrom]:
        return [ast.ImportFrom(node.module, [alias], node.level) for alias in node.names]

    def visit_Delete(self, node: ast.Delete) -> List[ast.Delete]:
        return [ast.Delete([target]) for target in node.targets]

    def visit_With(self, node: ast.With) -> ast.AST:
        for item in reversed(node.items[1:]):
            node.body = [ast.With([item], node.body)]
        node.items = node.items[:1]
        return self.generic_visit(node)


class _NoLoopElse(_Blocks):
    """``else`` of a loop or ``try``, and the same behind it."""

    def block(self, block: Block, owner: ast.AST, field: str) -> Block:
        kept: Block = []
        for statement in block:
            kept.append(statement)
            if isinstance(statement, (ast.For, ast.While, ast.AsyncFor)):
                kept.extend(statement.orelse)
                statement.orelse = []
            elif isinstance(statement, ast.Try):
                statement.body.extend(statement.orelse)
                statement.orelse = []
        return kept


class _Formatting(ast.NodeTransformer):
    """``"%s" % (a,)`` and an f-string."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _formatted(node) if isinstance(node.op, ast.Mod) else node


CLASSES: Dict[str, Tuple[Callable[[], ast.NodeTransformer], ...]] = {
    "continue or return where control goes anyway": (_NoJumps,),
    "return None or return": (_BareReturns,),
    "else behind a branch that leaves": (_WithoutElse,),
    "nested if or and": (_NoNesting,),
    "not": (_NoNegation,),
    "branches swapped": (_NoSwaps,),
    "return of a choice or two returns": (_NoChoices,),
    "one statement or two (import, with, del)": (_OneName,),
    "else of a loop or try, or behind it": (_NoLoopElse,),
    "% or f-string": (_Formatting,),
}
"""What may differ, and the rewriting that makes both sides alike."""


def differences(left: str, right: str) -> List[str]:
    """Which of ``CLASSES`` are needed to make two texts alike; ``["other"]`` if all of them are not enough."""
    names = list(CLASSES)
    if not _alike(left, right, names):
        return ["other"]
    for name in list(names):
        fewer = [other for other in names if other != name]
        if _alike(left, right, fewer):
            names = fewer
    return names


def _alike(left: str, right: str, names: List[str]) -> bool:
    return _rewritten(left, names) == _rewritten(right, names)


def _rewritten(text: str, names: List[str]) -> str:
    tree: Any = ast.parse(text)
    for _ in range(3):
        for name in names:
            for transformer in CLASSES[name]:
                tree = transformer().visit(tree)
    return ast.dump(copy.deepcopy(tree))
