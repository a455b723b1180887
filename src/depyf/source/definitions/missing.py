"""Functions and classes that can't be decompiled, in a module or class whose rest can: their stubs.

A file with one such function in it is worth reading; so its place holds a function with the same signature that says,
when it is called, that it is not there. A class has a body that says so when control gets there. What is made this way
is never called proved.
"""

from __future__ import annotations

import ast
import inspect
from typing import Callable, Dict, List

from depyf.asynchronous import synchronous
from depyf.bytecode.code import Code, docstring, is_code
from depyf.bytecode.nesting import Names, names_of
from depyf.source.definitions.scopes import docstring_statement
from depyf.source.names import is_writable

_LONGEST = 300


class Missing:
    """Which functions and classes are missing, by the ``id`` of their code objects, with the reason.

    ``known`` are those to leave out, ``found`` those that failed on the way.
    ``whole`` is the code object that all the others are in; it can't be missing. With ``stubs_only``, nothing else is
    made.
    """

    def __init__(self, whole: Code, *, stubs_only: bool = False) -> None:
        self._whole, self._stubs_only = whole, stubs_only
        self.known: Dict[int, str] = {}
        self.found: Dict[int, str] = {}
        self.stubs: Dict[int, Code] = {}

    def may_be(self, code_id: int) -> bool:
        """Whether that is a function or class that can have a stub."""
        return code_id in self.stubs

    def body(self, code: Code, made: Callable[[Code], List[ast.stmt]]) -> List[ast.stmt]:
        """What ``made`` makes of the function or class of ``code``, or what stands for it when that fails."""
        if code is self._whole:
            return made(code)
        self.stubs[id(code)] = code
        if self._stubs_only:
            return _stand_in(code, "")
        if id(code) not in self.known:
            try:
                return made(code)
            except RecursionError:
                raise  # there is more stack to be had
            except synchronous() as error:  # whatever it is: it is of this one, and it is reported
                self.found[id(code)] = str(error)
        return _stand_in(code, self.known.get(id(code)) or self.found[id(code)])

    def names(self) -> Dict[int, str]:
        """The qualified names of all code objects, by ``id``."""
        found: Dict[int, str] = {}

        def walk(code: Code) -> None:
            try:
                names = names_of(code)
            except synchronous(ValueError):  # malformed: what is in it is named by itself
                names = Names(code.co_name, {})
            for inner in filter(is_code, code.co_consts):
                found[id(inner)] = names.within(inner)
                walk(inner)

        walk(self._whole)
        return found


def _stand_in(code: Code, reason: str) -> List[ast.stmt]:
    """A body that raises; what follows the ``raise`` makes the function close over what the original does, and a
    generator where that is one."""
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
