"""Transformed code that differs from earlier code in numbered names alone (``__compiled_fn_3``, its own name): a
recompilation of the same function, mostly. It is not decompiled again.

The earlier proof holds for it: the verifier compares names for equality and nothing else. So if original, recompiled
code and hints are those of before with other names, each name replaced by one other, then the one is proved to be the
same as the other because it was before. All of this is checked, and what does not fit is decompiled like any other
code.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from types import CodeType
from typing import Hashable, Optional, Tuple

from depyf.bytecode.instructions import constants_read
from depyf.dynamo.hooks import nested_code
from depyf.dynamo.hooks.locks import Lock
from depyf.hints import Hints
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass
from depyf.result import Decompilation, Verdict
from depyf.source.line_map import LineMap
from depyf.verify.constants import ATOMS, constant_key, holds_nan

_NUMBERED = re_compile(r"__compiled_fn_\d+\Z")

_MOST = 128
"""How many are kept."""

_SAME = (
    "co_code", "co_varnames", "co_cellvars", "co_freevars", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount",
    "co_nlocals", "co_stacksize", "co_flags", "co_firstlineno", "co_exceptiontable",
    "co_linetable" if hasattr(CodeType, "co_linetable") else "co_lnotab",
)  # fmt: skip
"""The fields of a code object that hold neither constants nor global names, by all versions of Python."""


@dataclass(frozen=True)
class _Known:
    """A proved decompilation: the text, the numbered names in it, and the code object that the text compiled to."""

    source: str
    verdict: Verdict
    line_map: LineMap
    names: Tuple[str, ...]
    code: CodeType


@dataclass(frozen=True)
class Recalled:
    """What is known of code because earlier code was equal: the part of its ``Decompilation`` that files show."""

    source: str
    verdict: Verdict
    line_map: LineMap
    code: CodeType
    """What ``source`` compiles to, in the file that it was recalled for."""
    reason = ""
    placeholders = ()


class EqualCode:
    """What was decompiled and proved so far, the latest of it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[Hashable, _Known] = OrderedDict()

    def recall(self, code: CodeType, name: str, hints: Hints, path: str) -> Optional[Recalled]:
        """Return the text for ``code``, to be written into the file ``path`` as a function called ``name``, if equal
        code is known.

        It is not compiled again. Each name has become another of the same length wherever it stands, and none stands in
        a string, so the compiler would make the code of before, at the same lines and columns, with the other names.
        """
        names = _numbered(code, name)
        key = None if names is None else _key(code, names, hints)
        if names is None or key is None:
            return None
        with self._lock:
            known = self._known.get(key)
        if known is None:
            return None
        mapping = dict(zip(known.names, names))
        words = re.compile(r"\b(?:" + "|".join(map(re.escape, known.names)) + r")\b")
        source = words.sub(lambda match: mapping[match.group()], known.source)
        compiled = known.code.replace(
            co_filename=path,
            co_names=tuple(mapping.get(each, each) for each in known.code.co_names),
            **nested_code.name_fields(code),
        )
        return Recalled(source, known.verdict, known.line_map, compiled)

    def keep(self, name: str, hints: Hints, decompilation: Decompilation, compiled: CodeType) -> None:
        """Remember a decompilation that was proved and what its text compiles to, if that can be used again."""
        code, text = decompilation.code, decompilation.text
        plain = decompilation.verdict.proved and not (decompilation.reason or text.constants or text.names)
        if not isinstance(code, CodeType) or not plain:
            return
        names = _numbered(code, name)
        key = None if names is None else _key(code, names, hints)
        if names is None or key is None or _is_in_a_string(names, compiled):
            return
        with self._lock:
            self._known[key] = _Known(text.text, decompilation.verdict, decompilation.line_map, names, compiled)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)


def _numbered(code: CodeType, name: str) -> Optional[Tuple[str, ...]]:
    """Return the names that may differ: the function's, then those of graphs. ``None`` if one has another use."""
    graphs = [each for each in code.co_names if _NUMBERED.match(each)]
    others = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    own = {*others, *code.co_names}
    if name in own or any(_NUMBERED.match(each) for each in others):
        return None
    return (name, *dict.fromkeys(graphs))


def _key(code: CodeType, names: Tuple[str, ...], hints: Hints) -> Optional[Hashable]:
    """Return everything about the code that its text and the proof depend on, with numbers in place of ``names``. Their
    lengths are a part of it, as long lines are broken. ``None`` if a constant is an object that can't be compared."""
    constants = _constants(code)
    if constants is None:
        return None
    number = {name: (at, len(name)) for at, name in enumerate(names)}

    def of(name: str) -> Hashable:
        return number.get(name, name)

    return (
        tuple(number.values()),
        _fields(code),
        tuple(map(of, code.co_names)),
        constants,
        hints.droppable,
        frozenset(map(of, hints.stable_globals)),
        frozenset((of(each), count) for each, count in hints.tuple_results.items()),
        frozenset((of(each), parameters) for each, parameters in hints.parameters.items()),
    )


def _fields(code: CodeType) -> Tuple[object, ...]:
    return tuple(getattr(code, field, None) for field in _SAME)


def _constants(code: CodeType) -> Optional[Hashable]:
    """Return the constants that the code loads, by their index, and the first, which may be a docstring. Dynamo leaves
    those of the user's function that its code does not load. None for code objects and other objects."""
    read = {0, *constants_read(code)} & set(range(len(code.co_consts)))
    found = [(at, code.co_consts[at]) for at in sorted(read)]
    if any(not _is_comparable(constant) or holds_nan(constant) for _, constant in found):
        return None
    return tuple((at, constant_key(constant)) for at, constant in found)


def _is_comparable(constant: object) -> bool:
    if type(constant) is tuple:
        return all(map(_is_comparable, constant))
    return type(constant) in (*ATOMS, float, complex)


def _is_in_a_string(names: Tuple[str, ...], code: CodeType) -> bool:
    """Return whether one of the names is also a part of a constant, or the code has other code in it."""
    constants = repr(code.co_consts)
    return any(isinstance(each, CodeType) for each in code.co_consts) or any(name in constants for name in names)
