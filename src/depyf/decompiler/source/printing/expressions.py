"""Expressions to text, with parentheses only where they are needed.

Each method writes the nodes of one class and returns their text. ``level`` is the least precedence that the position
needs: an expression that binds less tightly is put in parentheses.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type

from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.lift.build import TestedAgain, TestedByNot
from depyf.decompiler.source.printing.fstrings import FormattedStrings
from depyf.decompiler.source.printing.literals import LARGEST_PLAIN_NUMBER, Literals
from depyf.decompiler.source.printing.repeated_tests import ARMS_MATTER, LINES_MATTER

# The precedence of expressions, lowest first. A position without special requirements is TEST.
TUPLE, YIELD, TEST, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, SIGN, POWER, AWAIT, ATOM = (
    range(17)
)

BINARY: Dict[Type[ast.operator], Tuple[str, int]] = {
    ast.BitOr: (" | ", BIT_OR), ast.BitXor: (" ^ ", BIT_XOR), ast.BitAnd: (" & ", BIT_AND),
    ast.LShift: (" << ", SHIFT), ast.RShift: (" >> ", SHIFT), ast.Add: (" + ", SUM), ast.Sub: (" - ", SUM),
    ast.Mult: (" * ", PRODUCT), ast.Div: (" / ", PRODUCT), ast.FloorDiv: (" // ", PRODUCT),
    ast.Mod: (" % ", PRODUCT), ast.MatMult: (" @ ", PRODUCT), ast.Pow: (" ** ", POWER),
}  # fmt: skip
_UNARY: Dict[Type[ast.unaryop], Tuple[str, int]] = {
    ast.Not: ("not ", NOT), ast.Invert: ("~", SIGN), ast.UAdd: ("+", SIGN), ast.USub: ("-", SIGN),
}  # fmt: skip
_COMPARE: Dict[Type[ast.cmpop], str] = {
    ast.Eq: " == ", ast.NotEq: " != ", ast.Lt: " < ", ast.LtE: " <= ", ast.Gt: " > ", ast.GtE: " >= ",
    ast.Is: " is ", ast.IsNot: " is not ", ast.In: " in ", ast.NotIn: " not in ",
}  # fmt: skip
_MEMBERSHIP = frozenset((ast.In, ast.NotIn))
_POSTFIX = frozenset((ast.Attribute, ast.Call, ast.Subscript))


def _may_unpack_in_subscripts() -> bool:
    try:
        compile("a[*b]", "", "eval")
    except SyntaxError:
        return False
    return True


_UNPACKS_IN_SUBSCRIPTS = _may_unpack_in_subscripts()
"""Whether ``a[*b]`` needs no parentheses (3.11)."""

_PLAIN = frozenset((str, bytes, bool, type(None)))
"""The types of constants that print as they are."""

_Write = Callable[["Expressions", Any, int], str]


class _Methods(Dict[type, _Write]):
    """The methods that write nodes, by their class; other classes are written as those that they are made from."""

    def __missing__(self, cls: type) -> _Write:
        base = next((kind for kind in cls.__mro__ if kind in self), None)
        if base is None:
            raise ValueError(f"a {cls.__name__} has no text")
        self[cls] = self[base]
        return self[base]

    def add(self, cls: type) -> None:
        """Add the methods of ``cls`` called ``_<name of a node class>``."""
        for name, method in vars(cls).items():
            node = getattr(ast, name[1:], None)
            if name[0] == "_" and isinstance(node, type):
                self[node] = method


methods = _Methods()


class Expressions:
    """Writes expressions. ``literals`` has the form of constants; ``indent`` is the indentation of the statement."""

    def __init__(self, literals: Literals) -> None:
        self.literals = literals
        self.indent = ""
        self.operators = _COMPARE

    def text(self, node: ast.AST, level: int = TEST) -> str:
        """Return the text of an expression, or of a part of one."""
        return methods[node.__class__](self, node, level)

    def write_diamonds(self) -> None:
        """Write ``<>`` for ``!=`` from now on."""
        self.operators = {**_COMPARE, ast.NotEq: " <> "}

    def items(self, nodes: Sequence[ast.AST]) -> str:
        """Return the texts of ``nodes``, separated by commas."""
        return ", ".join([methods[node.__class__](self, node, TEST) for node in nodes])

    def bare(self, node: ast.expr, level: int) -> str:
        """Return the text of a right side or a returned value: a tuple of several elements without parentheses."""
        form = self._with_display(node)
        if isinstance(form, ast.Tuple) and len(form.elts) > 1:
            return self.items(form.elts)
        return methods[form.__class__](self, form, level)

    def _with_display(self, node: ast.expr) -> ast.expr:
        """Return ``node``; for a constant tuple its display."""
        value: object = node.value if isinstance(node, ast.Constant) else None
        return self.literals.expression(value) if isinstance(value, tuple) else node

    # --- names, constants, displays ----------------------------------------------------------------------------------

    def _Name(self, node: ast.Name, level: int) -> str:
        return node.id

    def _Constant(self, node: ast.Constant, level: int) -> str:
        value: object = node.value
        if value.__class__ in _PLAIN or (type(value) is int and 0 <= value < LARGEST_PLAIN_NUMBER):
            return repr(value)
        if value is ...:
            return "..."
        form = self.literals.expression(value)
        return repr(form.value) if isinstance(form, ast.Constant) else self.text(form, level)

    def _JoinedStr(self, node: ast.JoinedStr, level: int) -> str:
        form = FormattedStrings(self).rendered(node)
        return form if isinstance(form, str) else self.text(form, level)

    def _FormattedValue(self, node: ast.FormattedValue, level: int) -> str:
        return self._JoinedStr(ast.JoinedStr([node]), level)

    def _TemplateStr(self, node: Any, level: int) -> str:
        return FormattedStrings(self).template(node)

    def _Interpolation(self, node: ast.expr, level: int) -> str:
        raise DecompilationError("a field of a t-string is used outside of a t-string")

    def _Tuple(self, node: ast.Tuple, level: int) -> str:
        elements = node.elts
        text = self.items(elements) + ("," if len(elements) == 1 else "")
        return text if elements and level == TUPLE else f"({text})"

    def _List(self, node: ast.List, level: int) -> str:
        return f"[{self.items(node.elts)}]"

    def _Set(self, node: ast.Set, level: int) -> str:
        return f"{{{self.items(node.elts)}}}" if node.elts else "{*()}"

    def _Dict(self, node: ast.Dict, level: int) -> str:
        items = [
            f"**{self.text(value, BIT_OR)}" if key is None else f"{self.text(key)}: {self.text(value)}"
            for key, value in zip(node.keys, node.values)
        ]
        return f"{{{', '.join(items)}}}"

    def _Starred(self, node: ast.Starred, level: int) -> str:
        return "*" + self.text(node.value, BIT_OR)

    # --- operators ---------------------------------------------------------------------------------------------------

    def _BinOp(self, node: ast.BinOp, level: int) -> str:
        binds = BINARY[node.op.__class__][1]
        if binds == POWER:
            text = f"{self.text(node.left, AWAIT)} ** {self.text(node.right, SIGN)}"
        else:
            parts: List[str] = []
            left: ast.expr = node
            while isinstance(left, ast.BinOp) and BINARY[left.op.__class__][1] == binds:
                parts += (self.text(left.right, binds + 1), BINARY[left.op.__class__][0])
                left = left.left
            parts.append(self.text(left, binds))
            text = "".join(reversed(parts))
        return f"({text})" if binds < level else text

    def _UnaryOp(self, node: ast.UnaryOp, level: int) -> str:
        symbol, binds = _UNARY[node.op.__class__]
        text = symbol + self.text(node.operand, binds)
        return f"({text})" if binds < level else text

    def _BoolOp(self, node: ast.BoolOp, level: int) -> str:
        word, binds = (" and ", AND) if node.op.__class__ is ast.And else (" or ", OR)
        text = word.join([methods[value.__class__](self, value, binds + 1) for value in node.values])
        return f"({text})" if binds < level else text

    def _tested_again(self, node: TestedAgain, level: int) -> str:
        """Return the text of an ``and`` or ``or`` that has to be on a line of its own, or in a choice
        (``repeated_tests``)."""
        if not LINES_MATTER:
            arm = ARMS_MATTER and node.chosen
            return f"({self._BoolOp(node, OR)} if True else None)" if arm else self._BoolOp(node, level)
        return f"(\n{self.indent}    {self._BoolOp(node, TEST)}\n{self.indent})"

    def _Compare(self, node: ast.Compare, level: int) -> str:
        text = self.text(node.left, BIT_OR)
        for operator, operand in zip(node.ops, node.comparators):
            cls = operator.__class__
            if cls in _MEMBERSHIP and operand.__class__ is ast.Constant:
                operand = self.literals.as_set(operand) or operand
            text += self.operators[cls] + methods[operand.__class__](self, operand, BIT_OR)
        return f"({text})" if level > COMPARE else text

    def _IfExp(self, node: ast.IfExp, level: int) -> str:
        text = f"{self.text(node.body, OR)} if {self.text(node.test, OR)} else {self.text(node.orelse)}"
        return f"({text})" if level > TEST else text

    def _Lambda(self, node: ast.Lambda, level: int) -> str:
        parameters = self.parameters(node.args)
        text = f"lambda{parameters and ' '}{parameters}: {self.text(node.body)}"
        return f"({text})" if level > TEST else text

    def _NamedExpr(self, node: ast.NamedExpr, level: int) -> str:
        return f"({node.target.id} := {self.text(node.value)})"

    def _Await(self, node: ast.Await, level: int) -> str:
        text = "await " + self.text(node.value, ATOM)
        return f"({text})" if level > AWAIT else text

    def _Yield(self, node: ast.Yield, level: int) -> str:
        value = getattr(node, "value", None)
        text = "yield" if value is None else "yield " + self.text(value)
        return f"({text})" if level > YIELD else text

    def _YieldFrom(self, node: ast.YieldFrom, level: int) -> str:
        text = "yield from " + self.text(node.value)
        return f"({text})" if level > YIELD else text

    # --- attributes, calls, items ------------------------------------------------------------------------------------

    def _postfix(self, node: Any, level: int) -> str:
        """Return the text of an attribute, call or item; of a long chain by a loop, without recursion."""
        chain = [node]
        cls = node.__class__
        while True:
            node = node.func if cls is ast.Call else node.value
            cls = node.__class__
            if cls not in _POSTFIX:
                break
            chain.append(node)
        parts = [node.id if cls is ast.Name else methods[cls](self, node, ATOM)]
        if cls is ast.Constant and type(node.value) is int and chain[-1].__class__ is ast.Attribute:
            parts.append(" ")  # else the period is read as part of a float
        for each in reversed(chain):
            cls = each.__class__
            if cls is ast.Attribute:
                parts += (".", each.attr)
            elif cls is ast.Call:
                parts.append(self.called_with(each))
            else:
                parts += ("[", self._place(each.slice), "]")
        return "".join(parts)

    def called_with(self, call: ast.Call) -> str:
        """Return the arguments of ``call`` in parentheses; a generator expression that is the only one has them."""
        arguments = [*call.args, *call.keywords] if call.keywords else call.args
        if len(arguments) == 1 and arguments[0].__class__ is ast.GeneratorExp:
            return self.text(arguments[0])
        return f"({self.items(arguments)})"

    _Attribute = _postfix
    _Call = _postfix
    _Subscript = _postfix

    def _place(self, place: ast.expr) -> str:
        """Return the text between the brackets of an item."""
        if place.__class__.__name__ == "Index":  # 3.8
            place = place.value  # type: ignore[attr-defined]
        place = self._with_display(place)
        if isinstance(place, ast.Slice):
            return self._bounds(place)
        if not isinstance(place, ast.Tuple) or not place.elts:
            return self.text(place)
        if any(isinstance(item, ast.Slice) for item in place.elts):
            return self._places(place.elts)
        starred = not _UNPACKS_IN_SUBSCRIPTS and any(isinstance(item, ast.Starred) for item in place.elts)
        return self._Tuple(place, TEST if starred else TUPLE)

    def _places(self, parts: Sequence[ast.AST]) -> str:
        texts = [self._bounds(each) if isinstance(each, ast.Slice) else self.text(each) for each in parts]
        return ", ".join(texts) + ("," if len(texts) == 1 else "")

    def _Slice(self, node: ast.Slice, level: int) -> str:
        """Return the text of a slice outside of brackets, which Dynamo makes: a call of the class itself, since the
        program may give its name to something else."""
        parts = [node.lower, node.upper, *([node.step] if node.step else [])]
        return f"{self.literals.name(slice).id}({self.items([part or ast.Constant(None) for part in parts])})"

    def _bounds(self, node: ast.Slice) -> str:
        lower, upper, step = (getattr(node, field, None) for field in ("lower", "upper", "step"))
        text = f"{self.text(lower) if lower else ''}:{self.text(upper) if upper else ''}"
        return f"{text}:{self.text(step)}" if step else text

    def _ExtSlice(self, node: ast.AST, level: int) -> str:  # 3.8
        parts: List[ast.AST] = node.dims  # type: ignore[attr-defined]
        return self._places(parts)

    def _Index(self, node: ast.AST, level: int) -> str:  # 3.8, in ExtSlice
        return self.text(node.value)  # type: ignore[attr-defined]

    def _keyword(self, node: ast.keyword, level: int) -> str:
        return f"**{self.text(node.value)}" if node.arg is None else f"{node.arg}={self.text(node.value)}"

    def _alias(self, node: ast.alias, level: int) -> str:
        name = getattr(node, "asname", None)
        return node.name if name is None else f"{node.name} as {name}"

    # --- parameters and comprehensions -------------------------------------------------------------------------------

    def parameters(self, node: ast.arguments) -> str:
        """Return the text of the parameters of a function."""
        positional = [*node.posonlyargs, *node.args]
        texts = [self._arg(each) for each in positional]
        first = len(positional) - len(node.defaults)
        for index, default in enumerate(node.defaults, first):
            texts[index] += "=" + self.text(default)
        if node.posonlyargs:
            texts.insert(len(node.posonlyargs), "/")
        vararg, kwarg = getattr(node, "vararg", None), getattr(node, "kwarg", None)
        if vararg or node.kwonlyargs:
            texts.append("*" + (self._arg(vararg) if vararg else ""))
        for parameter, value in zip(node.kwonlyargs, node.kw_defaults):
            texts.append(self._arg(parameter) + ("=" + self.text(value) if value else ""))
        if kwarg:
            texts.append("**" + self._arg(kwarg))
        return ", ".join(texts)

    def _arguments(self, node: ast.arguments, level: int) -> str:
        return self.parameters(node)

    def _arg(self, node: ast.arg, level: int = TEST) -> str:
        annotation: Optional[ast.expr] = getattr(node, "annotation", None)
        return node.arg if annotation is None else f"{node.arg}: {self.text(annotation)}"

    def _ListComp(self, node: ast.ListComp, level: int) -> str:
        return f"[{self.text(node.elt)}{self._clauses(node.generators)}]"

    def _SetComp(self, node: ast.SetComp, level: int) -> str:
        return f"{{{self.text(node.elt)}{self._clauses(node.generators)}}}"

    def _GeneratorExp(self, node: ast.GeneratorExp, level: int) -> str:
        return f"({self.text(node.elt)}{self._clauses(node.generators)})"

    def _DictComp(self, node: ast.DictComp, level: int) -> str:
        value: Optional[ast.expr] = node.value  # since 3.15 there may be none: ``{**key for ...}``
        item = f"**{self.text(node.key)}" if value is None else f"{self.text(node.key)}: {self.text(value)}"
        return f"{{{item}{self._clauses(node.generators)}}}"

    def _clauses(self, generators: List[ast.comprehension]) -> str:
        return "".join([self._comprehension(each, TEST) for each in generators])

    def _comprehension(self, node: ast.comprehension, level: int) -> str:
        words = " async for " if node.is_async else " for "
        tests = "".join([f" if {self.text(test, OR)}" for test in node.ifs])
        return f"{words}{self.text(node.target, TUPLE)} in {self.iterable(node.iter, OR)}{tests}"

    def iterable(self, node: ast.expr, level: int) -> str:
        """Return the text of what a loop iterates over."""
        if node.__class__ is ast.Constant:
            node = self.literals.as_set(node, in_order=True) or node
        return self.text(node, level)


methods.add(Expressions)
methods[TestedAgain] = Expressions._tested_again
methods[TestedByNot] = Expressions._BoolOp
