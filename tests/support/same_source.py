"""Compare the syntax trees of two functions, up to what bytecode does not store."""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import re
from typing import Any, List, Optional, Type, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def same_source(left: str, right: str) -> bool:
    """Whether two texts of one function differ in nothing that CPython keeps."""
    return canonical(left) == canonical(right)


def canonical(source: str) -> str:
    """A dump of the canonical tree of a text that is one function."""
    function = ast.parse(source).body[0]
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    tree = canonical_tree(function)
    for node in ast.walk(
        tree
    ):  # before 3.9, a node that is made here has no optional fields, and the parser's have them
        for field in node._fields:
            setattr(node, field, getattr(node, field, None))
    return ast.dump(tree)


def canonical_tree(function: Function, owner: Optional[str] = None) -> Function:
    """A copy of a function's tree in one form of several that compile to the same bytecode.

    ``owner`` is the class that the function stands in, for the private names in it.

    Taken away, because bytecode has nothing of it:

    - what belongs to the code around the function: its decorators, defaults and annotations
    - annotations of local variables, ``pass``, constants as statements, what stands behind a statement that leaves
    - ``if`` with a constant test, ``__debug__`` included
    - ``global`` and ``nonlocal`` (where they stand, and in which order; a missing one would fail verification)

    Made alike, because the compiler does the same with both:

    - ``import a, b`` and two imports; ``with a, b`` and two statements; ``del a, b`` and two
    - ``else`` behind a branch that leaves, and the same statements without it; ``else`` of a loop without ``break``
    - ``if a: if b:`` and ``if a and b:``; ``not (a and b)`` and ``not a or not b``; ``not a in b`` and ``a not in b``
    - ``return a if b else c`` and two returns
    - at the end of a function: ``return``, ``return None`` and nothing; also ``break`` out of a loop that ends it
    - at the end of a loop's body: ``continue`` and nothing
    - ``if a: b; continue`` in front of the rest of such a body, and ``if a: b`` with the rest as ``else``
    - constant expressions and their values; ``"%s" % (a,)`` and ``f"{a!s}"``; the order of constants in a set
    - a list that is only run over, searched or assigned to, and a tuple
    - private names, in a class and as they are compiled; docstrings with other indentation (3.13 takes it away)
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


class Displays(ast.NodeTransformer):
    """Makes a list alike that is only run over, searched or assigned to, and a tuple."""

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter, node.type_comment = _as_tuple(node.iter), None
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


class _Canonical(Displays):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                setattr(node, field, self._statements(statements, function=self._is_function(node)))
        if self._is_function(node):
            node.body = _without_jumps(node.body, ast.Return)  # type: ignore[attr-defined]
        return node

    @staticmethod
    def _is_function(node: ast.AST) -> bool:
        return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))

    def _statements(self, statements: List[ast.stmt], function: bool) -> List[ast.stmt]:
        docstring = _docstring(statements) if function else []
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
        if isinstance(node.test, ast.Constant):
            return node  # only one branch of it is compiled
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
        return _folded(_formatted(node) if isinstance(node.op, ast.Mod) else node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return _folded(node)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        self.generic_visit(node)
        if all(isinstance(element, ast.Constant) for element in node.elts):
            node.elts.sort(key=ast.dump)
        return node

    def visit_Global(self, node: ast.Global) -> None:
        return None

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        return None

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(True) if node.id == "__debug__" else node

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

    def visit_Delete(self, node: ast.Delete) -> List[ast.Delete]:
        return [ast.Delete(targets=[name]) for target in node.targets for name in _flat(target)]

    def visit_While(self, node: ast.While) -> ast.AST:
        if isinstance(node.test, ast.Constant) and node.test.value:
            node.test = ast.Constant(True)
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        value = node.operand
        if isinstance(node.op, ast.Not) and isinstance(value, ast.Compare) and len(value.ops) == 1:
            opposite = _OPPOSITES.get(type(value.ops[0]))
            if opposite is not None:
                return ast.Compare(value.left, [opposite()], value.comparators)
        if isinstance(node.op, ast.Not) and isinstance(value, ast.BoolOp):
            other = ast.Or() if isinstance(value.op, ast.And) else ast.And()
            negated = [self.visit_UnaryOp(ast.UnaryOp(ast.Not(), each)) for each in value.values]
            return self.visit_BoolOp(ast.BoolOp(other, negated))  # type: ignore[arg-type]
        return _folded(node)


_OPPOSITES = {ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}

_LOADING = frozenset(["RESUME", "LOAD_CONST", "LOAD_SMALL_INT", "RETURN_VALUE", "RETURN_CONST"])


def _folded(node: ast.expr) -> ast.expr:
    """The constant that the compiler makes of ``node``, if it does."""
    if any(isinstance(each, (ast.Name, ast.Call, ast.Starred, ast.Lambda)) for each in ast.walk(node)):
        return node
    code = compile(ast.fix_missing_locations(ast.Expression(copy.deepcopy(node))), "<folding>", "eval")
    if not all(each.opname in _LOADING for each in dis.get_instructions(code)):
        return node
    return ast.Constant(eval(code, {}))


_FIELD = re.compile(r"%(?:(%)|(-?)([1-9]\d*)?(\.\d+)?([sra]))")


def _formatted(node: ast.BinOp) -> ast.expr:
    """``"%s and %r" % (a, b)`` as the f-string that it is compiled to since 3.11."""
    if not (isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)):
        return node
    if not isinstance(node.right, ast.Tuple) or any(isinstance(each, ast.Starred) for each in node.right.elts):
        return node
    text, values, arguments, position = "", [], list(node.right.elts), 0
    while position < len(node.left.value):
        field = _FIELD.match(node.left.value, position)
        if field is None and node.left.value[position] == "%":
            return node
        if field is None or field.group(1):
            text += node.left.value[position]
        else:
            if not arguments:
                return node
            if text:
                values.append(ast.Constant(text))
            text = ""
            left, width, precision, conversion = (
                field.group(2),
                field.group(3) or "",
                field.group(4) or "",
                field.group(5),
            )
            if left and not width:
                return node
            spec = (">" if width and not left else "") + width + precision
            specification = ast.Constant(spec) if spec else None
            values.append(ast.FormattedValue(arguments.pop(0), ord(conversion), specification))
        position = position + 1 if field is None else field.end()
    if text:
        values.append(ast.Constant(text))
    return node if arguments else ast.JoinedStr(values)


def _without_jumps(block: List[ast.stmt], jump: Optional[Type[ast.stmt]]) -> List[ast.stmt]:
    """``block`` without the jumps that go where control goes from its end anyway: ``jump`` is a return of nothing at
    the end of a function, ``continue`` at the end of a loop's body, nothing in the middle."""
    block = list(block)
    while block and _is_jump(block[-1], jump):
        block.pop()
    for index, statement in enumerate(block):
        if isinstance(statement, ast.If) and statement.body and _is_jump(statement.body[-1], jump):
            statement.body, statement.orelse = statement.body[:-1], [*statement.orelse, *block[index + 1 :]]
            del block[index + 1 :]
            break
    for index, statement in enumerate(block):
        here = jump if index == len(block) - 1 else None
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            if here is ast.Return and not statement.orelse:
                statement.body = _breaks_as_returns(statement.body)
            statement.body = _without_jumps(statement.body, ast.Continue)
            statement.orelse = _without_jumps(statement.orelse, here)
        elif isinstance(statement, (ast.If, ast.With, ast.AsyncWith)):
            statement.body = _without_jumps(statement.body, here)
            if isinstance(statement, ast.If):
                statement.orelse = _without_jumps(statement.orelse, here)
        elif type(statement).__name__ in ("Try", "TryStar"):
            _try_without_jumps(statement, here)
        elif type(statement).__name__ == "Match":
            for case in statement.cases:  # type: ignore[attr-defined]
                case.body = _without_jumps(case.body, here)
    return block


def _try_without_jumps(statement: Any, jump: Optional[Type[ast.stmt]]) -> None:
    inner = None if statement.finalbody else jump
    statement.body = _without_jumps(statement.body, None if statement.orelse else inner)
    for handler in statement.handlers:
        handler.body = _without_jumps(handler.body, inner)
    statement.orelse = _without_jumps(statement.orelse, inner)
    statement.finalbody = _without_jumps(statement.finalbody, None)


def _is_jump(statement: ast.stmt, jump: Optional[Type[ast.stmt]]) -> bool:
    return jump is not None and isinstance(statement, jump) and (jump is not ast.Return or _returns_nothing(statement))


def _breaks_as_returns(block: List[ast.stmt]) -> List[ast.stmt]:
    """A loop's body with ``return`` for every ``break`` that leaves this loop."""
    result: List[ast.stmt] = []
    for statement in block:
        if isinstance(statement, ast.Break):
            result.append(ast.Return(None))
            continue
        result.append(statement)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        loop = isinstance(statement, (ast.For, ast.AsyncFor, ast.While))
        for field in ("orelse",) if loop else ("body", "orelse", "finalbody"):
            if hasattr(statement, field):
                setattr(statement, field, _breaks_as_returns(getattr(statement, field)))
        for part in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
            part.body = _breaks_as_returns(part.body)
    return result


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


def _docstring(statements: List[ast.stmt]) -> List[ast.stmt]:
    first = statements[0] if statements else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return [ast.Expr(ast.Constant(inspect.cleandoc(first.value.value)))]
    return []


def _is_constant(statements: List[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant)


def _returns_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Return) and statement.value is None
