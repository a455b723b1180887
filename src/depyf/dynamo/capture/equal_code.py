"""Recall the decompilation of earlier code that differs in numbered names alone (``__compiled_fn_3``, its own name).
Such code is mostly a recompilation of the same function, and is not decompiled again.

The earlier proof holds for it: the verifier compares names for equality and nothing else. So if the code, the code that
its text compiles to and the hints are the earlier ones under a one-to-one renaming, the proof is the earlier proof
under this renaming. Each condition is checked, and code that does not meet them is decompiled like any other.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from types import CodeType
from typing import Hashable, Optional, Tuple

from depyf.base.late_regex import regex
from depyf.base.locks import Lock
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler import Decompilation, Hints, LineMap, Verdict, loaded_constants
from depyf.dynamo.hooks import nested_code

_NUMBERED = regex(r"__compiled_fn_\d+\Z")

_MOST = 128
"""Keep at most this many decompilations."""

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
    """The part of a ``Decompilation`` that files show, recalled from earlier code."""

    source: str
    verdict: Verdict
    line_map: LineMap
    code: CodeType
    """What ``source`` compiles to, in the file of the new code."""
    reason = ""
    placeholders = ()


class EqualCode:
    """The latest decompilations that were proved."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[Hashable, _Known] = OrderedDict()

    def recall(self, code: CodeType, name: str, hints: Hints, path: str) -> Optional[Recalled]:
        """Return the text for ``code``, to be written into the file ``path`` as a function called ``name``, if equal
        code is known.

        The text is not compiled again. Each name has become another name of the same length wherever it occurs, and no
        name occurs in a string. So the compiler would make the earlier code, at the same lines and columns, with the
        new names.
        """
        names = _numbered(code, name)
        key = None if names is None else _key(code, names, hints)
        if names is None or key is None:
            return None
        with self._lock:
            known = self._known.get(key)
        if known is None:
            return None
        # All names are replaced in one pass, since a new name may be an old name of another graph: fn_2 -> fn_3 and
        # fn_3 -> fn_4.
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
        """Remember a decompilation that was proved, and what its text compiles to, if both can be used again."""
        code, text = decompilation.code, decompilation.text
        # Placeholders for constants or names stand for objects of this code object alone.
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
    """Return the names that may differ: the function's name, then the names of graphs. ``None`` if a name has another
    use: renaming would then change a variable or an attribute as well.
    """
    graphs = [each for each in code.co_names if _NUMBERED.match(each)]
    others = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    own = {*others, *code.co_names}
    if name in own or any(_NUMBERED.match(each) for each in others):
        return None
    return (name, *dict.fromkeys(graphs))


def _key(code: CodeType, names: Tuple[str, ...], hints: Hints) -> Optional[Hashable]:
    """Return everything about the code that its text and the proof depend on, with numbers in place of ``names``.

    ``None`` if a constant is an object that can't be compared.
    """
    constants = loaded_constants(code)
    if constants is None:
        return None
    # The lengths of names are a part of the key: the printer breaks long lines, so __compiled_fn_9 and __compiled_fn_10
    # may be laid out differently.
    number = {name: (at, len(name)) for at, name in enumerate(names)}

    def of(name: str) -> Hashable:
        return number.get(name, name)

    return (
        tuple(number.values()),
        tuple(getattr(code, field, None) for field in _SAME),
        tuple(map(of, code.co_names)),
        constants,
        hints.droppable,
        frozenset(map(of, hints.stable_globals)),
        frozenset((of(each), count) for each, count in hints.tuple_results.items()),
        frozenset((of(each), parameters) for each, parameters in hints.parameters.items()),
    )


def _is_in_a_string(names: Tuple[str, ...], code: CodeType) -> bool:
    """Return whether a name is also a part of a constant, or the code contains other code, which could have it."""
    constants = repr(code.co_consts)
    return any(isinstance(each, CodeType) for each in code.co_consts) or any(name in constants for name in names)
