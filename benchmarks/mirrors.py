"""Make mirrors of functions for ``peers.py``: the same control flow with other names, constants or line tables.

Test sets of decompilers have such anonymised and altered copies, since a tool may recognise what it was developed with.

    names       each name becomes ``v0``, ``v1``, ... in the order of first use; special names and ``super`` stay
    constants   the numbers, and the texts, of a function change places among themselves, by a fixed seed
    lines       the line tables of the compiled code are empty
"""

from __future__ import annotations

import ast
import random
from types import CodeType
from typing import Any, Callable, Dict, Iterator, List, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]

_NAMES = {
    "Name": "id", "arg": "arg", "Attribute": "attr", "keyword": "arg", "FunctionDef": "name", "ClassDef": "name",
    "AsyncFunctionDef": "name", "ExceptHandler": "name", "alias": "asname", "MatchAs": "name", "MatchStar": "name",
    "MatchMapping": "rest", "Global": "names", "Nonlocal": "names", "MatchClass": "kwd_attrs", "TypeVar": "name",
}  # fmt: skip
"""The field of a node that holds one name or a list of names. Modules of imports keep theirs."""


def with_other_names(function: Function) -> None:
    """Replace each name in ``function``."""
    names: Dict[str, str] = {}

    def other(name: str) -> str:
        special = name == "super" or (name.startswith("__") and name.endswith("__"))
        return name if special else names.setdefault(name, f"v{len(names)}")

    for node in ast.walk(function):
        field = _NAMES.get(type(node).__name__, "")
        value = getattr(node, field, None) if field else None
        if isinstance(value, str):
            setattr(node, field, other(value))
        elif isinstance(value, list):
            setattr(node, field, [other(each) for each in value])


def with_other_constants(function: Function) -> None:
    """Shuffle the constants of each type in ``function``, apart from the texts of formatted strings."""
    places: Dict[type, List[ast.Constant]] = {}
    for node in _outside_of_strings(function):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, complex, str, bytes):
            places.setdefault(type(node.value), []).append(node)
    for constants in places.values():
        values = [each.value for each in constants]
        random.Random(len(values)).shuffle(values)
        for each, value in zip(constants, values):
            each.value = value


def _outside_of_strings(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
            yield from _outside_of_strings(child)


def without_lines(code: CodeType) -> CodeType:
    """Return ``code``, and the code inside, with empty line tables."""
    consts = tuple(without_lines(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    table: Any = {"co_linetable" if hasattr(code, "co_linetable") else "co_lnotab": b""}
    return code.replace(co_consts=consts, **table)


OF_SOURCE: Dict[str, Callable[[Function], None]] = {"names": with_other_names, "constants": with_other_constants}
OF_CODE: Dict[str, Callable[[CodeType], CodeType]] = {"lines": without_lines}
MIRRORS = ("plain", *OF_SOURCE, *OF_CODE)
