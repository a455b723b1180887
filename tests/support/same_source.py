"""Compare the syntax trees of two functions, up to what the bytecode of a function does not hold."""

from __future__ import annotations

import ast
import copy
from typing import List, Optional, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def same_source(left: str, right: str) -> bool:
    """Whether two texts of one function differ in nothing that CPython keeps."""
    return canonical(left) == canonical(right)


def canonical(source: str) -> str:
    """A dump of the canonical tree of a text that is one function."""
    function = ast.parse(source).body[0]
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    return ast.dump(canonical_tree(function))


def canonical_tree(function: Function, owner: Optional[str] = None) -> Function:
    """A copy of a function's tree in one form of several that compile to the same bytecode.

    ``owner`` is the class that the function stands in, for the private names in it.

    Taken away: decorators, defaults and annotations of the function itself (they belong to the code around it),
    annotations of local variables, ``pass``, constants as statements, a ``return`` at the end that returns nothing,
    the layout of docstrings.
    Made alike: ``import a, b``; ``with a, b``; ``else`` after a branch that leaves or a loop without ``break``; lists
    that nobody can tell from tuples; constant expressions; conditional expressions that are returned; ``not`` of
    ``and`` and ``or``; an ``if`` that is all that an ``if`` holds; private names, which are compiled with their class.
    """
    function = without_surroundings(function)
    _Private(owner).visit(function)
    tree: Function = _Canonical().visit(function)
    return tree


def without_surroundings(function: Function) -> Function:
    """A copy without what belongs to the code around the function: decorators, defaults, annotations."""
    function = copy.deepcopy(function)
    function.decorator_list = []
    function.returns = None
    function.args.defaults = []
    function.args.kw_defaults = [None for _ in function.args.kwonlyargs]
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for argument in [*arguments, function.args.vararg, function.args.kwarg]:
        if argument is not None:
            argument.annotation = None
    return function


class _Private(ast.NodeTransformer):
    """Names with two underscores as the compiler spells them in a class."""

    def __init__(self, owner: Optional[str]) -> None:
        self.owner = owner

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._spelled(node.name)
        outer, self.owner = self.owner, node.name
        node.body = [self.visit(each) for each in node.body]
        self.owner = outer
        for field in ("bases", "keywords", "decorator_list", "type_params"):
            for each in getattr(node, field, []):
                self.visit(each)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if isinstance(value, str) and not isinstance(node, (ast.Constant, ast.ImportFrom)):
                setattr(node, field, self._spelled(value))
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                node.names = [self._spelled(name) for name in node.names]
        return super().generic_visit(node)

    def _spelled(self, name: str) -> str:
        owner = (self.owner or "").lstrip("_")
        if not owner or not name.startswith("__") or name.endswith("__") or "." in name:
            return name
        return f"_{owner}{name}"


class _Canonical(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                setattr(node, field, self._statements(statements, function=self._is_function(node)))
        return node

    @staticmethod
    def _is_function(node: ast.AST) -> bool:
        return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))

    def _statements(self, statements: List[ast.stmt], function: bool) -> List[ast.stmt]:
        docstring = statements[:1] if function and _is_constant(statements[:1]) else []
        kept: List[ast.stmt] = []
        for statement in statements[len(docstring) :]:
            if isinstance(statement, ast.Pass) or _is_constant([statement]):
                continue
            if isinstance(statement, ast.If) and isinstance(statement.test, ast.Constant):
                kept.extend(statement.body if statement.test.value else statement.orelse)
                continue
            kept.append(statement)
            if isinstance(statement, (ast.For, ast.While, ast.AsyncFor)) and not _breaks(statement.body):
                kept.extend(statement.orelse)
                statement.orelse = []
            if isinstance(statement, ast.If) and statement.body and isinstance(statement.body[-1], _LEAVES):
                kept.extend(statement.orelse)
                statement.orelse = []
        while function and kept and _returns_nothing(kept[-1]):
            kept.pop()
        for index, statement in enumerate(kept):
            if isinstance(statement, _LEAVES):
                del kept[index + 1 :]
                break
        return docstring + kept

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Union[ast.AST, None]:
        self.generic_visit(node)
        if not node.simple:
            return ast.Assign(targets=[node.target], value=node.value, lineno=0) if node.value else node
        return ast.Assign(targets=[node.target], value=node.value, lineno=0) if node.value else None

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node  # a class body keeps its annotations and its doc string

    def visit_Import(self, node: ast.Import) -> List[ast.Import]:
        return [ast.Import(names=[alias]) for alias in node.names]

    def visit_With(self, node: ast.With) -> ast.AST:
        for item in reversed(node.items[1:]):
            node.body = [ast.With(items=[item], body=node.body)]
        node.items = node.items[:1]
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if not node.orelse and len(node.body) == 1 and isinstance(node.body[0], ast.If) and not node.body[0].orelse:
            inner = node.body[0]
            node.test = self.visit_BoolOp(ast.BoolOp(ast.And(), [node.test, inner.test]))
            node.body = inner.body
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        values: List[ast.expr] = []
        for value in node.values:
            same = isinstance(value, ast.BoolOp) and type(value.op) is type(node.op)
            values.extend(value.values if isinstance(value, ast.BoolOp) and same else [value])
        return ast.BoolOp(node.op, values)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        try:
            value = eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<folding>", "eval"), {})
        except Exception:  # it has names in it, or is not to be folded
            return node
        return ast.parse(repr(value), mode="eval").body if len(repr(value)) < 200 else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        if all(isinstance(part, ast.Constant) for part in node.values):
            return ast.Constant("".join(part.value for part in node.values if isinstance(part, ast.Constant)))
        return node

    def visit_Return(self, node: ast.Return) -> Union[ast.AST, List[ast.stmt]]:
        if isinstance(node.value, ast.IfExp):
            choice = node.value
            both = [self.visit_Return(ast.Return(value)) for value in (choice.body, choice.orelse)]
            yes, no = (each if isinstance(each, list) else [each] for each in both)
            return [ast.If(test=self.visit(choice.test), body=yes, orelse=[]), *no]
        self.generic_visit(node)
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            node.value = None
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        node.kind = None
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = _as_tuple(node.iter)
        return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = _as_tuple(node.iter)
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if isinstance(node.ops[-1], (ast.In, ast.NotIn)):
            node.comparators[-1] = _as_tuple(node.comparators[-1])
        return self.generic_visit(node)

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        return ast.Tuple(node.elts, node.ctx) if isinstance(node.ctx, (ast.Store, ast.Del)) else node

    def visit_Delete(self, node: ast.Delete) -> List[ast.Delete]:
        return [ast.Delete(targets=[name]) for target in node.targets for name in _flat(target)]

    def visit_While(self, node: ast.While) -> ast.AST:
        if isinstance(node.test, ast.Constant) and node.test.value:
            node.test = ast.Constant(True)
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        value = node.operand
        if isinstance(node.op, ast.USub) and isinstance(value, ast.Constant) and isinstance(value.value, (int, float)):
            return ast.Constant(-value.value)
        if isinstance(node.op, ast.Not) and isinstance(value, ast.BoolOp):
            other = ast.Or() if isinstance(value.op, ast.And) else ast.And()
            negated = [self.visit_UnaryOp(ast.UnaryOp(ast.Not(), each)) for each in value.values]
            return self.visit_BoolOp(ast.BoolOp(other, negated))  # type: ignore[arg-type]
        return node


def _breaks(statements: List[ast.stmt]) -> bool:
    """Whether a ``break`` in a loop's body leaves that loop."""
    for statement in statements:
        if isinstance(statement, ast.Break):
            return True
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        # What stands in the body of a loop inside leaves that loop.
        loop = isinstance(statement, (ast.For, ast.AsyncFor, ast.While))
        fields = ("orelse",) if loop else ("body", "orelse", "finalbody")
        inner = [getattr(statement, field, []) for field in fields]
        inner += [handler.body for handler in getattr(statement, "handlers", [])]
        inner += [case.body for case in getattr(statement, "cases", [])]
        if any(_breaks(block) for block in inner):
            return True
    return False


def _flat(target: ast.expr) -> List[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for element in target.elts for name in _flat(element)]
    return [target]


def _as_tuple(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.List) and not any(isinstance(element, ast.Starred) for element in node.elts):
        return ast.Tuple(node.elts, node.ctx)
    return node


def _is_constant(statements: List[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant)


def _returns_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Return) and statement.value is None
