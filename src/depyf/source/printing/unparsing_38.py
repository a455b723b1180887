"""Python 3.8: trees to text by the package ``astunparse``, with parentheses only where they are needed.

``astunparse`` puts them around every expression. Here they are put where the expression binds less tightly than its
place asks for, as ``ast.unparse`` does.
"""

from __future__ import annotations

import ast
import io
from typing import Any, Callable, Dict, List, Sequence, Tuple, Type, Union

# How tightly expressions bind, loosest first. What is written without thinking has its place at TEST.
_TUPLE, _YIELD, _TEST, _OR, _AND, _NOT, _COMPARE = range(7)
_BINARY: Dict[Type[ast.operator], int] = {
    ast.BitOr: 7, ast.BitXor: 8, ast.BitAnd: 9, ast.LShift: 10, ast.RShift: 10, ast.Add: 11, ast.Sub: 11,
    ast.Mult: 12, ast.Div: 12, ast.FloorDiv: 12, ast.Mod: 12, ast.MatMult: 12, ast.Pow: 14,
}  # fmt: skip
_BIT_OR, _SIGN, _AWAIT, _ATOM = 7, 13, 15, 16


def unparse_38(node: ast.AST) -> str:
    """Return the text of any node."""
    import astunparse

    class Printer(_Parentheses, astunparse.Unparser):  # type: ignore[misc]
        """Writes a tree to a file as it is made."""

    text = io.StringIO()
    Printer(_completed(node), text)
    return text.getvalue().strip("\n")


def _completed(root: ast.AST) -> ast.AST:
    """``root`` with ``None`` in optional fields that are not there: node classes have no defaults in 3.8."""
    for node in ast.walk(root):
        for field in node._fields:
            if not hasattr(node, field):
                setattr(node, field, None)
    return root


class _Parentheses:
    """The methods of ``astunparse.Unparser`` that write expressions. ``_level`` says how tightly the next one that is
    written has to bind to need no parentheses."""

    dispatch: Callable[[object], None]
    write: Callable[[str], None]
    fill: Callable[..., None]
    enter: Callable[[], None]
    leave: Callable[[], None]
    _level = _TEST

    def _put(self, node: ast.AST, level: int) -> None:
        self._level = level
        self.dispatch(node)
        self._level = _TEST

    def _enclosed(self, binds: int, write: Callable[[], None]) -> None:
        """What ``write`` writes, in parentheses if it ``binds`` less tightly than it has to."""
        needed, self._level = binds < self._level, _TEST
        self.write("(" if needed else "")
        write()
        self.write(")" if needed else "")

    def _list(self, nodes: Sequence[ast.AST], level: int = _TEST) -> None:
        for index, node in enumerate(nodes):
            self.write(", " if index else "")
            self._put(node, level)

    # --- statements that are not written as they are in astunparse

    def _Expr(self, node: ast.Expr) -> None:
        self.fill()
        self._put(node.value, _YIELD)

    def _Assign(self, node: ast.Assign) -> None:
        self.fill()
        for target in node.targets:
            self._put(target, _TUPLE)
            self.write(" = ")
        self.dispatch(node.value)

    def _ClassDef(self, node: ast.ClassDef) -> None:
        self.write("\n")
        for decorator in node.decorator_list:
            self.fill("@")
            self.dispatch(decorator)
        self.fill("class " + node.name)
        if node.bases or node.keywords:
            self.write("(")
            self._list([*node.bases, *node.keywords])
            self.write(")")
        self._suite(node.body)

    def _For(self, node: ast.For) -> None:
        self._loop("for ", node)

    def _AsyncFor(self, node: ast.AsyncFor) -> None:
        self._loop("async for ", node)

    def _loop(self, words: str, node: Union[ast.For, ast.AsyncFor]) -> None:
        self.fill(words)
        self._put(node.target, _TUPLE)
        self.write(" in ")
        self.dispatch(node.iter)
        self._suite(node.body)
        if node.orelse:
            self.fill("else")
            self._suite(node.orelse)

    def _suite(self, statements: List[ast.stmt]) -> None:
        self.enter()
        self.dispatch(statements)
        self.leave()

    def _comprehension(self, node: ast.comprehension) -> None:
        self.write(" async for " if node.is_async else " for ")
        self._put(node.target, _TUPLE)
        self.write(" in ")
        self._put(node.iter, _OR)
        for test in node.ifs:
            self.write(" if ")
            self._put(test, _OR)

    # --- expressions

    def _Name(self, node: ast.Name) -> None:
        self._level = _TEST
        self.write(node.id)

    def _Constant(self, node: ast.Constant) -> None:
        self._level = _TEST
        value: object = node.value
        text = "..." if value is ... else repr(value)
        self.write(text.replace("inf", "1e309") if isinstance(value, (float, complex)) else text)

    def _NamedExpr(self, node: ast.NamedExpr) -> None:
        def write() -> None:
            self._put(node.target, _ATOM)
            self.write(" := ")
            self._put(node.value, _TEST)

        self._level = max(self._level, _TEST)
        self._enclosed(_TUPLE, write)

    def _Tuple(self, node: ast.Tuple) -> None:
        def write() -> None:
            self._list(node.elts)
            self.write("," if len(node.elts) == 1 else "")

        if not node.elts:
            self._level = _TEST
            self.write("()")
        else:
            self._enclosed(_TUPLE, write)

    def _display(self, brackets: str, nodes: Sequence[ast.AST]) -> None:
        self._level = _TEST
        self.write(brackets[0])
        self._list(nodes)
        self.write(brackets[1])

    def _List(self, node: ast.List) -> None:
        self._display("[]", node.elts)

    def _Set(self, node: ast.Set) -> None:
        self._display("{}", node.elts)

    def _Dict(self, node: ast.Dict) -> None:
        self._level = _TEST
        self.write("{")
        for index, (key, value) in enumerate(zip(node.keys, node.values)):
            self.write(", " if index else "")
            if key is None:
                self.write("**")
                self._put(value, _BIT_OR)
            else:
                self.dispatch(key)
                self.write(": ")
                self.dispatch(value)
        self.write("}")

    def _comprehended(self, brackets: str, parts: Tuple[object, ...], generators: List[ast.comprehension]) -> None:
        self._level = _TEST
        self.write(brackets[0])
        for index, part in enumerate(parts):
            self.write(": " if index else "")
            self.dispatch(part)
        for generator in generators:
            self.dispatch(generator)
        self.write(brackets[1])

    def _ListComp(self, node: ast.ListComp) -> None:
        self._comprehended("[]", (node.elt,), node.generators)

    def _SetComp(self, node: ast.SetComp) -> None:
        self._comprehended("{}", (node.elt,), node.generators)

    def _GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehended("()", (node.elt,), node.generators)

    def _DictComp(self, node: ast.DictComp) -> None:
        self._comprehended("{}", (node.key, node.value), node.generators)

    def _IfExp(self, node: ast.IfExp) -> None:
        def write() -> None:
            self._put(node.body, _OR)
            self.write(" if ")
            self._put(node.test, _OR)
            self.write(" else ")
            self._put(node.orelse, _TEST)

        self._enclosed(_TEST, write)

    def _Lambda(self, node: ast.Lambda) -> None:
        def write() -> None:
            arguments = node.args
            some = (arguments.posonlyargs, arguments.args, arguments.vararg, arguments.kwonlyargs, arguments.kwarg)
            self.write("lambda " if any(some) else "lambda")
            self.dispatch(arguments)
            self.write(": ")
            self._put(node.body, _TEST)

        self._enclosed(_TEST, write)

    def _BoolOp(self, node: ast.BoolOp) -> None:
        word, binds = (" and ", _AND) if isinstance(node.op, ast.And) else (" or ", _OR)

        def write() -> None:
            for index, value in enumerate(node.values):
                self.write(word if index else "")
                self._put(value, binds + 1)

        self._enclosed(binds, write)

    def _UnaryOp(self, node: ast.UnaryOp) -> None:
        is_not = isinstance(node.op, ast.Not)
        sign = {ast.Not: "not ", ast.Invert: "~", ast.UAdd: "+", ast.USub: "-"}[type(node.op)]
        binds = _NOT if is_not else _SIGN

        def write() -> None:
            self.write(sign)
            self._put(node.operand, binds)

        self._enclosed(binds, write)

    def _BinOp(self, node: ast.BinOp) -> None:
        binds, is_power = _BINARY[type(node.op)], isinstance(node.op, ast.Pow)

        def write() -> None:
            self._put(node.left, binds + is_power)
            self.write(f" {self._symbol(node.op)} ")
            self._put(node.right, _SIGN if is_power else binds + 1)

        self._enclosed(binds, write)

    def _symbol(self, operator: ast.AST) -> str:
        tables: Any = self
        name = type(operator).__name__
        return str(tables.binop.get(name) or tables.cmpops[name])

    def _Compare(self, node: ast.Compare) -> None:
        def write() -> None:
            self._put(node.left, _COMPARE + 1)
            for operator, operand in zip(node.ops, node.comparators):
                self.write(f" {self._symbol(operator)} ")
                self._put(operand, _COMPARE + 1)

        self._enclosed(_COMPARE, write)

    def _Await(self, node: ast.Await) -> None:
        def write() -> None:
            self.write("await ")
            self._put(node.value, _ATOM)

        self._enclosed(_AWAIT, write)

    def _Yield(self, node: ast.Yield) -> None:
        def write() -> None:
            self.write("yield")
            if node.value is not None:
                self.write(" ")
                self._put(node.value, _TEST)

        self._enclosed(_YIELD, write)

    def _YieldFrom(self, node: ast.YieldFrom) -> None:
        def write() -> None:
            self.write("yield from ")
            self._put(node.value, _TEST)

        self._enclosed(_YIELD, write)

    def _Starred(self, node: ast.Starred) -> None:
        self.write("*")
        self._put(node.value, _BIT_OR)

    def _Attribute(self, node: ast.Attribute) -> None:
        self._put(node.value, _ATOM)
        number = isinstance(node.value, ast.Constant) and type(node.value.value) is int
        self.write(" ." if number else ".")
        self.write(node.attr)

    def _Call(self, node: ast.Call) -> None:
        self._put(node.func, _ATOM)
        self.write("(")
        self._list([*node.args, *node.keywords])
        self.write(")")

    def _keyword(self, node: ast.keyword) -> None:
        self.write("**" if node.arg is None else f"{node.arg}=")
        self._put(node.value, _TEST)

    def _Subscript(self, node: ast.Subscript) -> None:
        self._put(node.value, _ATOM)
        self.write("[")
        place = node.slice.value if type(node.slice).__name__ == "Index" else node.slice  # type: ignore[attr-defined]
        starred = isinstance(place, ast.Tuple) and any(isinstance(item, ast.Starred) for item in place.elts)
        self._put(place, _TEST if starred else _TUPLE)
        self.write("]")

    def _Slice(self, node: ast.Slice) -> None:
        self._level = _TEST
        for index, bound in enumerate((node.lower, node.upper, node.step)):
            if index == 1 or (index and bound is not None):
                self.write(":")
            if bound is not None:
                self.dispatch(bound)

    def _ExtSlice(self, node: Any) -> None:
        self._list(node.dims)
        self.write("," if len(node.dims) == 1 else "")

    def _Index(self, node: Any) -> None:
        self.dispatch(node.value)
