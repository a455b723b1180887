"""Statements to lines of text: long ones broken, with blank lines around definitions, docstrings in triple quotes."""

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.source.printing.docstrings import indented, triple_quoted
from depyf.decompiler.source.printing.expressions import (
    BINARY,
    BIT_OR,
    BIT_XOR,
    TEST,
    TUPLE,
    YIELD,
    Expressions,
    methods,
)
from depyf.decompiler.source.printing.literals import Literals
from depyf.decompiler.source.printing.repeated_tests import is_unbreakable
from depyf.decompiler.source.printing.wrapping import WIDTH, wrap


class _Patterns(Expressions):
    """Writes patterns. Their classes are new in 3.10."""

    def _MatchValue(self, node: ast.MatchValue, level: int) -> str:
        return self.text(node.value)

    def _MatchSingleton(self, node: ast.MatchSingleton, level: int) -> str:
        return repr(node.value)

    def _MatchSequence(self, node: ast.MatchSequence, level: int) -> str:
        return f"[{self.items(node.patterns)}]"

    def _MatchStar(self, node: ast.MatchStar, level: int) -> str:
        return f"*{node.name or '_'}"

    def _MatchMapping(self, node: ast.MatchMapping, level: int) -> str:
        items = [f"{self.text(key)}: {self.text(pattern)}" for key, pattern in zip(node.keys, node.patterns)]
        rest = [] if node.rest is None else [f"**{node.rest}"]
        return f"{{{', '.join(items + rest)}}}"

    def _MatchClass(self, node: ast.MatchClass, level: int) -> str:
        named = [f"{name}={self.text(pattern)}" for name, pattern in zip(node.kwd_attrs, node.kwd_patterns)]
        return f"{self.text(node.cls)}({', '.join([*map(self.text, node.patterns), *named])})"

    def _MatchAs(self, node: ast.MatchAs, level: int) -> str:
        if node.pattern is None:
            return node.name or "_"
        text = f"{self.text(node.pattern, BIT_OR)} as {node.name}"
        return f"({text})" if level > TEST else text

    def _MatchOr(self, node: ast.MatchOr, level: int) -> str:
        text = " | ".join([self.text(pattern, BIT_XOR) for pattern in node.patterns])
        return f"({text})" if level > BIT_OR else text


methods.add(_Patterns)


_STEP = "    "
_DEFINITIONS = frozenset((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))

_WriteLine = Callable[["Statements", Any], str]
_WriteLines = Callable[["Statements", Any, str], None]


class Statements(_Patterns):
    """Writes statements to ``lines``."""

    def __init__(self, literals: Literals) -> None:
        super().__init__(literals)
        self.lines: List[str] = []

    def module(self, statements: Sequence[ast.stmt]) -> str:
        """Return the text of a module."""
        self._documented(statements, "")
        return "\n".join(self.lines) + "\n"

    def prompt(self, statements: Sequence[ast.stmt]) -> str:
        """Return the input at a prompt on one line, as it must be unless it is one compound statement."""
        if not all(statement.__class__ in _SIMPLE for statement in statements):
            raise DecompilationError("an input at a prompt with several statements has one with blocks")
        return "; ".join([_SIMPLE[statement.__class__](self, statement) for statement in statements]) + "\n"

    def block(self, statements: Sequence[ast.stmt], indent: str, previous: Optional[type] = None) -> None:
        """Write ``statements``, which follow a statement of class ``previous``. Two blank lines are around
        definitions of a module, one around inner ones."""
        for statement in statements:
            cls = statement.__class__
            if previous is not None and (cls in _DEFINITIONS or previous in _DEFINITIONS):
                self.lines += ("",) if indent else ("", "")
            self.indent = indent
            write = _SIMPLE.get(cls)
            if write is not None:
                self._line(write(self, statement), cls, indent)
            else:
                _COMPOUND[cls](self, statement, indent)
            previous = cls

    def _line(self, text: str, cls: type, indent: str) -> None:
        """Add the line of a statement, or its header, as several lines where it is too long."""
        line = indent + text
        if len(line) > WIDTH and "\n" not in line:
            broken = wrap(line)
            if len(broken) > 1 and not is_unbreakable(text, cls):
                self.lines += broken
                return
        self.lines.append(line)

    def _documented(self, statements: Sequence[ast.stmt], indent: str) -> None:
        """Write a body whose first statement may be a docstring."""
        first = statements[0] if statements else None
        value: object = (
            first.value.value if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else 0
        )
        if isinstance(value, str):
            self.lines.append(indent + triple_quoted(indented(value, indent)))
            self.block(statements[1:], indent, ast.Expr)
        else:
            self.block(statements, indent)

    # --- simple statements -------------------------------------------------------------------------------------------

    def _Expr(self, node: ast.Expr) -> str:
        return self.text(node.value, YIELD)

    def _Assign(self, node: ast.Assign) -> str:
        targets = node.targets
        text = "".join([self.text(target, TUPLE) + " = " for target in targets])
        last = targets[-1]
        several = isinstance(last, ast.Tuple) and len(last.elts) > 1
        return text + (self.bare(node.value, YIELD) if several else self.text(node.value, YIELD))

    def _AugAssign(self, node: ast.AugAssign) -> str:
        symbol = BINARY[node.op.__class__][0].rstrip()
        return f"{self.text(node.target)}{symbol}= {self.text(node.value, YIELD)}"

    def _AnnAssign(self, node: ast.AnnAssign) -> str:
        target = self.text(node.target)
        if not node.simple and isinstance(node.target, ast.Name):
            target = f"({target})"
        value = getattr(node, "value", None)
        text = f"{target}: {self.text(node.annotation)}"
        return text if value is None else f"{text} = {self.text(value, YIELD)}"

    def _Return(self, node: ast.Return) -> str:
        value = getattr(node, "value", None)
        return "return" if value is None else "return " + self.bare(value, TEST)

    def _Raise(self, node: ast.Raise) -> str:
        exception, cause = getattr(node, "exc", None), getattr(node, "cause", None)
        text = "raise" if exception is None else "raise " + self.text(exception)
        return text if cause is None else f"{text} from {self.text(cause)}"

    def _Assert(self, node: ast.Assert) -> str:
        message = getattr(node, "msg", None)
        text = "assert " + self.text(node.test)
        return text if message is None else f"{text}, {self.text(message)}"

    def _Delete(self, node: ast.Delete) -> str:
        return "del " + self.items(node.targets)

    def _Import(self, node: ast.Import) -> str:
        return f"{_lazy(node)}import {self.items(node.names)}"

    def _ImportFrom(self, node: ast.ImportFrom) -> str:
        module = "." * (node.level or 0) + (getattr(node, "module", None) or "")
        return f"{_lazy(node)}from {module} import {self.items(node.names)}"

    def _Global(self, node: ast.Global) -> str:
        return "global " + ", ".join(node.names)

    def _Nonlocal(self, node: ast.Nonlocal) -> str:
        return "nonlocal " + ", ".join(node.names)

    def _Pass(self, node: ast.Pass) -> str:
        return "pass"

    def _Break(self, node: ast.Break) -> str:
        return "break"

    def _Continue(self, node: ast.Continue) -> str:
        return "continue"

    def _TypeAlias(self, node: ast.AST) -> str:
        name, value = (self.text(getattr(node, field)) for field in ("name", "value"))
        return f"type {name}{self._type_parameters(node)} = {value}"

    # --- compound statements -----------------------------------------------------------------------------------------

    def _suite(self, header: str, cls: type, statements: Sequence[ast.stmt], indent: str) -> None:
        self._line(header + ":", cls, indent)
        self.block(statements, indent + _STEP)

    def _clause(self, header: str, statements: Sequence[ast.stmt], indent: str) -> None:
        """Write a block with a header that is never broken; none if there are no statements."""
        if statements:
            self.lines.append(f"{indent}{header}:")
            self.block(statements, indent + _STEP)

    def _If(self, node: ast.If, indent: str) -> None:
        word = "if "
        while True:
            self._suite(word + self.text(node.test), ast.If, node.body, indent)
            (inner,) = node.orelse if len(node.orelse) == 1 else (None,)
            if not isinstance(inner, ast.If):
                break
            node, word, self.indent = inner, "elif ", indent
        self._clause("else", node.orelse, indent)

    def _While(self, node: ast.While, indent: str) -> None:
        self._suite("while " + self.text(node.test), ast.While, node.body, indent)
        self._clause("else", node.orelse, indent)

    def _For(self, node: Union[ast.For, ast.AsyncFor], indent: str) -> None:
        word = "async for" if isinstance(node, ast.AsyncFor) else "for"
        header = f"{word} {self.text(node.target, TUPLE)} in {self.iterable(node.iter, TEST)}"
        self._suite(header, ast.For, node.body, indent)
        self._clause("else", node.orelse, indent)

    _AsyncFor = _For

    def _With(self, node: Union[ast.With, ast.AsyncWith], indent: str) -> None:
        word = "async with" if isinstance(node, ast.AsyncWith) else "with"
        self._suite(f"{word} {', '.join(map(self._item, node.items))}", ast.With, node.body, indent)

    _AsyncWith = _With

    def _item(self, node: ast.withitem) -> str:
        target = getattr(node, "optional_vars", None)
        text = self.text(node.context_expr)
        return text if target is None else f"{text} as {self.text(target)}"

    def _Try(self, node: Union[ast.Try, ast.TryStar], indent: str) -> None:
        self._suite("try", ast.Try, node.body, indent)
        word = "except" if isinstance(node, ast.Try) else "except*"
        for handler in node.handlers:
            self.indent = indent
            caught, name = getattr(handler, "type", None), getattr(handler, "name", None)
            header = word if caught is None else f"{word} {self.text(caught)}"
            self._clause(f"{header} as {name}" if name else header, handler.body, indent)
        self._clause("else", node.orelse, indent)
        self._clause("finally", node.finalbody, indent)

    _TryStar = _Try

    def _Match(self, node: ast.Match, indent: str) -> None:
        self._line(f"match {self.text(node.subject)}:", node.__class__, indent)
        for case in node.cases:
            self.indent = indent + _STEP
            guard = "" if case.guard is None else f" if {self.text(case.guard)}"
            self._clause(f"case {self.text(case.pattern)}{guard}", case.body, indent + _STEP)

    def _FunctionDef(self, node: Union[ast.FunctionDef, ast.AsyncFunctionDef], indent: str) -> None:
        word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        returns = getattr(node, "returns", None)
        arrow = "" if returns is None else f" -> {self.text(returns)}"
        parameters = f"{self._type_parameters(node)}({self.parameters(node.args)})"
        self._definition(node, f"{word} {node.name}{parameters}{arrow}:", indent)

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef, indent: str) -> None:
        arguments = self.items([*node.bases, *node.keywords])
        name = node.name + self._type_parameters(node)
        self._definition(node, f"class {name}({arguments}):" if arguments else f"class {name}:", indent)

    def _definition(
        self, node: Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef], header: str, indent: str
    ) -> None:
        for decorator in node.decorator_list:
            self.lines.append(f"{indent}@{self.text(decorator)}")
        self._line(header, node.__class__, indent)
        self._documented(node.body, indent + _STEP)

    def _type_parameters(self, node: ast.AST) -> str:
        parameters = getattr(node, "type_params", None)
        return f"[{', '.join(map(self._type_parameter, parameters))}]" if parameters else ""

    def _type_parameter(self, node: ast.AST) -> str:
        name, bound, default = (getattr(node, field, None) for field in ("name", "bound", "default_value"))
        text = {"ParamSpec": "**", "TypeVarTuple": "*"}.get(node.__class__.__name__, "") + str(name)
        text += "" if bound is None else f": {self.text(bound)}"
        return text if default is None else f"{text} = {self.text(default)}"


def _lazy(node: ast.AST) -> str:
    return "lazy " if getattr(node, "is_lazy", None) else ""  # 3.15


def _table(*names: str) -> Dict[type, Any]:
    """Return the methods that write the statements of these classes, of those that this Python has."""
    return {getattr(ast, name): getattr(Statements, "_" + name) for name in names if hasattr(ast, name)}


_SIMPLE: Dict[type, _WriteLine] = _table(
    "Expr", "Assign", "AugAssign", "AnnAssign", "Return", "Raise", "Assert", "Delete", "Import", "ImportFrom", "Global",
    "Nonlocal", "Pass", "Break", "Continue", "TypeAlias",
)  # fmt: skip
_COMPOUND: Dict[type, _WriteLines] = _table(
    "If", "While", "For", "AsyncFor", "With", "AsyncWith", "Try", "TryStar", "Match", "FunctionDef", "AsyncFunctionDef",
    "ClassDef",
)  # fmt: skip


def unparse(node: ast.AST) -> str:
    """Return the text of any node. Only constants and names with a text come back as they are."""
    writer = Statements(Literals(node))
    if isinstance(node, (ast.Module, ast.Interactive)):
        return writer.module(node.body).rstrip("\n")
    if isinstance(node, ast.stmt):
        return writer.module([node]).rstrip("\n")
    return writer.text(node.body if isinstance(node, ast.Expression) else node)
