"""What one statement of Python does, run by the Python that runs this: its result, and its error to the letter.

The interpreter of the normal form (``interpreter.py``) uses these where an operation is more than a function of the
``operator`` module: unpacking, patterns, imports, and the errors that unbound names raise.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any, Callable, Dict, List, NoReturn, Tuple


@lru_cache(maxsize=None)
def function(text: str, name: str = "f") -> Callable[..., Any]:
    """Return the function ``name`` that ``text`` defines."""
    namespace: Dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, "<natively>", "exec", dont_inherit=True), namespace)
    made: Callable[..., Any] = namespace[name]
    return made


def error_of(text: str, *arguments: object) -> BaseException:
    """Return a new exception like the one that the function in ``text`` raises, without what hangs on that."""
    try:
        function(text)(*arguments)
    except Exception as error:
        return type(error)(*error.args)
    raise AssertionError(text)


def unpacked(value: object, before: int, after: int = -1) -> List[Any]:
    """Return the values of ``a, b = value``; with ``after`` not negative, of ``a, b, *c, d = value``."""
    names = [f"a{number}" for number in range(before)]
    if after >= 0:
        names += ["*rest", *(f"b{number}" for number in range(after))]
    listed = ", ".join(names)
    plain = listed.replace("*", "")
    return list(function(f"def f(value):\n [{listed}] = value\n return [{plain}]")(value))


def unbound_local(name: str) -> NoReturn:
    function(f"def f():\n {_identifier(name)}\n {_identifier(name)} = 1")()
    raise AssertionError(name)


def unbound_cell(name: str, *, free: bool) -> NoReturn:
    name = _identifier(name)
    if not free:
        function(f"def f():\n {name}\n {name} = 1\n return lambda: {name}")()
    code = function(f"def f():\n {name} = 1\n def g(): return {name}\n return g")().__code__
    FunctionType(code, {"__builtins__": {}}, "g", (), (CellType(),))()
    raise AssertionError(name)


def undefined(name: str, *, deleted: bool = False) -> NoReturn:
    name = _identifier(name)
    exec(f"del {name}" if deleted else name, {"__builtins__": {}})
    raise AssertionError(name)


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "name"


def from_module(module: object, name: str) -> object:
    """Return ``name`` of ``from module import name``."""
    namespace = {"__builtins__": {"__import__": lambda *arguments, **keywords: module}}
    exec(_import_of(name), namespace)
    return namespace[name]


@lru_cache(maxsize=None)
def _import_of(name: str) -> CodeType:
    return compile(f"from m import {name}", "<import>", "exec", dont_inherit=True)


def all_from_module(module: object, namespace: Any) -> None:
    exec("from m import *", {"__builtins__": {"__import__": lambda *arguments, **keywords: module}}, namespace)


def is_mapping(subject: object) -> bool:
    return bool(function("def f(x):\n match x:\n  case {}: return True\n return False")(subject))


def is_sequence(subject: object) -> bool:
    return bool(function("def f(x):\n match x:\n  case [*_]: return True\n return False")(subject))


def class_match(subject: object, cls: object, positional: int, names: Tuple[str, ...]) -> Any:
    """Return the attributes of ``case cls(a, b, c=d)`` as a tuple, or ``None`` if ``subject`` does not match."""
    parts = [f"a{number}" for number in range(positional)]
    parts += [f"{name}=b{number}" for number, name in enumerate(names)]
    values = "".join(f"{part.rpartition('=')[2]}, " for part in parts)
    text = f"def f(x, k):\n match x:\n  case k.c({', '.join(parts)}): return ({values})\n return None"
    return function(text)(subject, _Holder(cls))


class _Holder:
    def __init__(self, cls: object) -> None:
        self.c = cls


def enter(manager: object, *, asynchronous: bool) -> Tuple[Any, Any]:
    """Return the exit method of ``manager`` and the result of its enter method, which are looked up on the class."""
    names = ("__aenter__", "__aexit__") if asynchronous else ("__enter__", "__exit__")
    begin, end = (special(manager, name) for name in names)
    if begin is MISSING or end is MISSING:
        if asynchronous:
            function("async def f(x):\n async with x: pass")(manager).send(None)
        function("def f(x):\n with x: pass")(manager)
    return end, begin()


MISSING = object()


def special(owner: object, name: str) -> Any:
    """Return a special method, bound; ``MISSING`` when the class has none."""
    kind = type(owner)
    for each in kind.__mro__:
        if name in each.__dict__:
            found = each.__dict__[name]
            bind = getattr(type(found), "__get__", None)
            return found if bind is None else bind(found, owner, kind)
    return MISSING
