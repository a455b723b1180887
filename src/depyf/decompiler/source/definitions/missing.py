"""Stubs for functions and classes that can't be decompiled, in a module or class whose rest can.

A function is replaced by one with the same signature that raises when it is called, a class by one whose body raises.
The result is never reported as proved.
"""

from __future__ import annotations

import ast
import inspect
from typing import Callable, Dict, List

from depyf.base.asynchronous import synchronous
from depyf.decompiler.bytecode.code import Code, docstring, is_code
from depyf.decompiler.bytecode.nesting import Names, names_of
from depyf.decompiler.source.definitions.scopes import docstring_statement
from depyf.decompiler.source.names import is_writable

_LONGEST = 300


class Missing:
    """The missing functions and classes, by the ``id`` of their code objects, with the reason. ``known``: to be
    omitted; ``found``: have failed. ``whole``: the code object around all others, which can't be missing. With
    ``stubs_only``, only stubs are made."""

    def __init__(self, whole: Code, *, stubs_only: bool = False) -> None:
        self._whole, self._stubs_only = whole, stubs_only
        self.known: Dict[int, str] = {}
        self.found: Dict[int, str] = {}
        self.stubs: Dict[int, Code] = {}

    def may_be(self, code_id: int) -> bool:
        """Return whether the code with this ``id`` is a function or class that can have a stub."""
        return code_id in self.stubs

    def body(self, code: Code, made: Callable[[Code], List[ast.stmt]]) -> List[ast.stmt]:
        """Return what ``made`` makes of the function or class of ``code``, or a stub body when that fails."""
        # A body that failed before is not made again; in the first round, all failures are found at once.
        if code is self._whole:
            return made(code)
        self.stubs[id(code)] = code
        if self._stubs_only:
            return _stand_in(code, "")
        if id(code) not in self.known:
            try:
                return made(code)
            except RecursionError:
                raise  # the caller provides more stack
            except synchronous() as error:  # any error belongs to this one, and is reported
                self.found[id(code)] = str(error)
        return _stand_in(code, self.known.get(id(code)) or self.found[id(code)])

    def names(self) -> Dict[int, str]:
        """Return the qualified names of all code objects, by ``id``."""
        found: Dict[int, str] = {}

        def walk(code: Code) -> None:
            try:
                names = names_of(code)
            except synchronous(ValueError):  # malformed: its nested code is named without it
                names = Names(code.co_name, {})
            for inner in filter(is_code, code.co_consts):
                found[id(inner)] = names.within(inner)
                walk(inner)

        walk(self._whole)
        return found


def _stand_in(code: Code, reason: str) -> List[ast.stmt]:
    """Return a body that raises. The code after the ``raise`` gives the function the free variables of the original,
    and makes it a generator if that is one."""
    text = docstring(code)
    body: List[ast.stmt] = [] if text is None else [docstring_statement(text)]
    said = reason.split("\n", 1)[0][:_LONGEST]
    message = ast.Constant(f"depyf: {code.co_name} could not be decompiled: {said}")
    error = ast.Call(ast.Name("NotImplementedError", ast.Load()), [message], [])
    body.append(ast.Raise(error, None))
    for name in filter(is_writable, code.co_freevars):
        body.append(ast.Expr(ast.Name(name, ast.Load())))
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR):
        body.append(ast.Expr(ast.Yield(None)))
    return body
