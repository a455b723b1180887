"""``values="types"``: write the types of the values that a program held, and not the values.

Every hidden value has a name, ``str 1`` or ``int 2``: equal values have the same name in all files of a dump, so that a
reader sees which values differ. What the author of the program wrote is no such value: texts, numbers and names of the
source and of its code objects stay (``HiddenValues.learn_source``, ``learn_code``).
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import os
import re
from types import CodeType
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.messages import chosen_word
from depyf.base.text_edits import Edit, edited
from depyf.decompiler.syntax import children, parse
from depyf.report.render.scrubbing import without_literals

NAME = regex(r"\b__hidden_[a-z]+_\d+\b")
"""The name that a hidden value has in code."""

PLAIN = (str, bytes, int, float, complex)
"""The types of values that have a literal, and are hidden."""
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

_QUOTED = regex(r"(?<!\w)([bBrRuU]{0,2})('(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")")
_NUMBER = regex(r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
_FRACTION = regex(r"(?<!PyTorch )(?<![\w.\]])-?\d+\.\d+(?:e[-+]?\d+)?(?![\w.])")
_WORD = regex(r"[^\W\d]\w*")
_NAME_FOLLOWS = regex(r"(?:\b(?:[LG]|__dict__|_modules|_parameters|_buffers)\[|<(?:class|enum) )\Z")

_RAISED = regex(
    r"(?:(?<=^)|(?<=[\s(]))((?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)|StopIteration)):"
    r" (?=\S)(.*(?:\n(?!\s*$| *File |Traceback|The above|During handling|from user code| *(?:Explanation|Hint"
    r"|Developer|For more|Set TORCH)).*)*)",
    re.MULTILINE,
)
"""``ValueError: message``, with the further lines of the message."""

_OF_TORCH = frozenset(
    {"Unsupported", "InternalTorchDynamoError", "BackendCompilerFailed", "TorchRuntimeError", "FailOnRecompileLimitHit"}
)
"""Errors without the name of their module whose message PyTorch wrote."""

_PACKAGES = frozenset({"torch", "builtins", "numpy", "depyf", "triton", "sympy"})
_SIZES = frozenset(
    {"size", "stride", "storage_offset", "dim", "numel", "ndim", "shape", "device", "dtype", "layout", "len"}
)
"""Attributes and functions whose values are shapes and types."""

_NAMING_CALLS = ("hasattr", "getattr", "check_tensor", "___check", "___inlined", "___ids", "___live")
"""Calls whose texts are names and types."""

_STATE = "___check_global_state()"
"""The guard on PyTorch's settings. The JSON in its text has names of settings, such as "dtype", and no value of the
program; hidden, these names were missing in all messages."""

_NAMESPACES = frozenset({"__dict__", "_modules", "_parameters", "_buffers"})
_LARGEST_INDEX = 999
_SHORTEST_TEXT, _SHORTEST_NUMBER = 4, 3
_LONGEST_TEXT = 200
"""Of texts that are searched for in messages, in characters; a number has at least so many digits."""

_MOST_SEARCHED = 1000
"""The limit on texts and numbers that are searched for in messages; the oldest are forgotten first."""


ALL, TYPES = "all", "types"
VARIABLE = "DEPYF_VALUES"


def chosen_values(given: Optional[str] = None) -> str:
    """Return whether a dump has all values or their types: as ``given``, as the environment says, or by default.

    Raises ``ValueError`` for another word. Another word in the environment is reported, and hides values.
    """
    chosen = chosen_word(given, "values", VARIABLE, (ALL, TYPES), "values are not shown")
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return chosen or (TYPES if os.environ.get(VARIABLE) or in_ci else ALL)


class HiddenValues:
    """The values that one dump directory does not show."""

    def __init__(self) -> None:
        self._numbers: Dict[Tuple[str, bytes], int] = {}
        self._in_messages: Dict[str, str] = {}
        self._words: Set[str] = set(dir(builtins))
        self._literals: Set[str] = set()
        self._seen: Set[str] = set()

    def learn_source(self, text: str) -> None:
        """Note what stands in a source file of the program: its texts, numbers and names may be shown."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if digest not in self._seen:
            self._seen.add(digest)
            self._words.update(_WORD.findall(text))
            self._literals.update(match.group(2)[1:-1] for match in _QUOTED.finditer(text))
            self._literals.update(_NUMBER.findall(text))

    def learn_code(self, code: CodeType) -> None:
        """Note what stands in a code object of the program."""
        self._words.update((*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars, code.co_name))
        todo: List[object] = list(code.co_consts)
        while todo:
            each = todo.pop()
            if isinstance(each, CodeType):
                self.learn_code(each)
            elif isinstance(each, (tuple, frozenset)):
                todo += each
            elif type(each) in PLAIN:
                self._literals.add(_plain(each))

    def name_of(self, value: object) -> str:
        """Return the name of a value: its type, and a number that equal values share."""
        kind = type(value).__name__
        key = kind, hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).digest()
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers.setdefault(key, len(self._numbers) + 1)
        name, plain = f"{kind} {number}", _plain(value)
        least = _SHORTEST_TEXT if isinstance(value, (str, bytes)) else _SHORTEST_NUMBER
        if least <= len(plain) <= _LONGEST_TEXT and not self._is_written(value):
            self._in_messages.setdefault(plain, f"<{name}>")
            if len(self._in_messages) > _MOST_SEARCHED:
                self._in_messages.pop(next(iter(self._in_messages)), None)
        return name

    def shown(self, value: object) -> object:
        """Return a constant for display: a text that names it if it is hidden, otherwise the constant."""
        return value if self._may_stand(value) else f"<{self.name_of(value)}>"

    def value(self, text: Optional[str]) -> Optional[str]:
        """Return the name of the value that ``text`` is the ``repr`` of; other texts as ``message`` returns them."""
        if text is None:
            return None
        try:
            found = ast.literal_eval(text)
        except synchronous(*_UNREADABLE, TypeError):
            return self.message(text)
        if found is None or found is Ellipsis or isinstance(found, bool):
            return text
        return f"<{self.name_of(found)}>"

    def guard(self, text: str) -> str:
        """Return the text of a guard, or of what a guard reads, without the values that it compares and keys of dicts.

        Shapes, types and properties of tensors stay. A text that is not Python is a message.
        """
        if text.startswith(_STATE):
            return text
        try:
            tree = parse(text, mode="eval")
        except synchronous(*_UNREADABLE):
            return self.message(text)
        edits = [(*_range(node), f"<{self.name_of(value)}>") for node, value in self._of_guard(tree.body)]
        return edited(text, edits) if edits else text

    def code(self, source: str) -> str:
        """Return a program with a name (``NAME``) in place of each hidden constant; all lines stay where they are."""
        try:
            tree = parse(source)
        except synchronous(*_UNREADABLE):
            return without_literals(source)
        edits: List[Edit] = []
        for node, value in self._of_code(tree):
            start, end = _range(node)
            name = _NO_VALUE if value is None else in_code(self.name_of(value))
            edits.append((start, end, f"({name}" + "\n" * (end[0] - start[0]) + ")" if end[0] > start[0] else name))
        return edited(source, edits) if edits else source

    def message(self, text: str) -> str:
        """Return a text for people without quoted texts, fractions, messages of exceptions, and known values."""
        text = _RAISED.sub(self._raised, text)
        text = _QUOTED.sub(self._quoted, text)
        text = _FRACTION.sub(lambda match: self._number(match.group()), text)
        for plain, name in sorted(self._in_messages.items(), key=lambda each: -len(each[0])):
            if plain in text:
                text = re.sub(
                    rf"(?<![\w.]){re.escape(plain)}(?![\w.])" if plain.isdecimal() else re.escape(plain), name, text
                )
        return text

    def _raised(self, match: re.Match[str]) -> str:
        kind = match.group(1)
        if kind.startswith("torch.") or kind.rpartition(".")[2] in _OF_TORCH or self._is_written(match.group(2)):
            return match.group()
        return f"{kind}: <message>" + "\n" * match.group(2).count("\n")

    def _quoted(self, match: re.Match[str]) -> str:
        content = match.group(2)[1:-1]
        if self._is_written(content) or not content or _NAME_FOLLOWS.search(match.string[: match.start()]):
            return match.group()
        return f"<{self.name_of(content)}>"

    def _number(self, text: str) -> str:
        return text if text.lstrip("-") in self._literals else f"<{self.name_of(float(text))}>"

    def _is_written(self, value: object) -> bool:
        """Return whether the author of the program wrote this text or number, or it is a name of Python or PyTorch."""
        plain = _plain(value)
        if plain in self._literals:
            return True
        parts = plain.split(".")
        if not isinstance(value, str) or not all(part.isidentifier() for part in parts):
            return False
        return parts[0] in _PACKAGES or all(part in self._words for part in parts)

    def _may_stand(self, value: object) -> bool:
        if type(value) not in PLAIN or value in ("", b""):
            return True
        return self._is_written(value) or (isinstance(value, int) and -10 < value < 10)

    def _of_code(self, node: ast.AST, *, is_index: bool = False) -> Iterator[Tuple[ast.AST, object]]:
        """Yield the hidden constants of a program; None as the value of a text that is put together."""
        constant = _constant(node)
        if constant is not None:
            value = constant[0]
            index = is_index and type(value) is int and abs(value) <= _LARGEST_INDEX
            if not index and not self._may_stand(value):
                yield node, value
        elif type(node).__name__ in ("JoinedStr", "TemplateStr"):  # positions inside are wrong before Python 3.12
            if any(True for each in children(node) for _ in self._of_code(each)):
                yield node, None
        else:
            for each in children(node):
                yield from self._of_code(each, is_index=isinstance(node, ast.Subscript) and each is node.slice)

    def _of_guard(self, node: ast.AST, *, compared: Optional[bool] = None) -> Iterator[Tuple[ast.AST, object]]:
        """Yield the hidden constants of a guard; ``compared`` says whether they are compared with a value (not with a
        shape), None where nothing is compared."""
        constant = _constant(node)
        if constant is not None:
            value = constant[0]
            is_text = isinstance(value, (str, bytes))
            if compared or (is_text and compared is None and not self._is_written(value)):
                yield node, value
        elif isinstance(node, ast.Compare):
            yield from self._of_comparison([node.left, *node.comparators])
        elif isinstance(node, ast.Call) and _called(node).endswith("equals"):
            yield from self._of_comparison(node.args)
        elif isinstance(node, ast.Call) and _called(node).startswith(_NAMING_CALLS):
            for argument in node.args:
                yield from () if _constant(argument) else self._of_guard(argument, compared=compared)
        elif isinstance(node, ast.Subscript) and _is_namespace(node.value):
            yield from self._of_guard(node.value)
        else:
            inner = compared if _is_display(node) else None
            for each in children(node):
                yield from self._of_guard(each, compared=inner)

    def _of_comparison(self, sides: Sequence[ast.expr]) -> Iterator[Tuple[ast.AST, object]]:
        of_shape = any(map(_is_shape, sides))
        for side in sides:
            yield from self._of_guard(side, compared=not of_shape if _is_display(side) else None)


_NO_VALUE = "___placeholder('a text with values')"


def in_code(name: str) -> str:
    """Return the name that code has for a hidden value: ``__hidden_str_1`` for ``str 1``."""
    return f"__hidden_{name.replace(' ', '_')}"


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else repr(value)


def _constant(node: ast.AST) -> Optional[Tuple[Union[str, bytes, int, float, complex]]]:
    """Return (value,) of a text or a number, also of a negative one; None for any other node."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant(node.operand)
        return None if inner is None or isinstance(inner[0], (str, bytes)) else (-inner[0],)
    value = node.value if isinstance(node, ast.Constant) else None
    return (value,) if isinstance(value, PLAIN) and type(value) in PLAIN else None


def _is_display(node: ast.AST) -> bool:
    """Return whether an expression is a value as ``repr`` writes it."""
    if _constant(node) is not None or isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        return isinstance(node.func, (ast.Name, ast.Attribute)) and all(map(_is_display, node.args)) and bool(node.args)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return all(map(_is_display, node.elts))
    if isinstance(node, ast.Dict):
        return all(key is not None and _is_display(key) for key in node.keys) and all(map(_is_display, node.values))
    return isinstance(node, ast.BinOp) and _is_display(node.left) and _is_display(node.right)


def _is_shape(node: ast.AST) -> bool:
    """Return whether an expression reads a shape or a type."""
    if isinstance(node, ast.Attribute) and node.attr in _SIZES:
        return True
    if isinstance(node, ast.Name):
        return node.id in _SIZES or node.id.startswith("utils_device")
    return any(map(_is_shape, children(node)))


def _is_namespace(node: ast.AST) -> bool:
    """Return whether the keys of this mapping are names: of variables, attributes, submodules."""
    if isinstance(node, ast.Name):
        return node.id in ("L", "G", "___ids", "___names")
    return isinstance(node, ast.Attribute) and node.attr in _NAMESPACES


def _called(node: ast.Call) -> str:
    function = node.func
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _range(node: ast.AST) -> Tuple[Tuple[int, int], Tuple[int, int]]:
    located: Union[ast.expr, ast.stmt] = node  # type: ignore[assignment]
    start = located.lineno, located.col_offset
    return start, (located.end_lineno or located.lineno, located.end_col_offset or 0)
