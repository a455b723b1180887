"""The code objects of inlined comprehensions, reconstructed: since 3.12 the compiler makes none."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any, Dict, Optional, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.code import Code, PortableCode, version_of
from depyf.decompiler.bytecode.nesting import qualified_name
from depyf.decompiler.normal.ops import Instr, Op

_FUNCTION_FLAGS = inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS | inspect.CO_NESTED
_OTHER_FLAGS = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ITERABLE_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)


@dataclass(frozen=True, eq=False, repr=False)
class InlinedCode(PortableCode):
    """The code object that a comprehension would have if it were not inlined (PEP 709).

    It has no bytecode of its own, but ``ops`` in normal form, with offsets of the enclosing code. Copies of the same
    comprehension, as in the copies of a ``finally`` body, are equal. ``open_tests``: see ``NormalCode``; here also the
    tests outside of the handler which restores the variables of the enclosing code.
    """

    ops: Tuple[Instr, ...] = ()
    open_tests: Optional[Tuple[int, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InlinedCode) or len(self.ops) != len(other.ops):
            return NotImplemented
        return self.co_varnames == other.co_varnames and all(map(_same, self.ops, other.ops))

    def __hash__(self) -> int:
        return hash((self.co_name, self.co_varnames, len(self.ops)))


def inlined_code(
    around: Code,
    name: str,
    variables: Tuple[str, ...],
    cells: Tuple[str, ...],
    ops: Tuple[Instr, ...],
    open_tests: Optional[Tuple[int, ...]],
) -> InlinedCode:
    """Return the code object called ``name`` for ``ops``, which are inlined in ``around``. ``variables``: its local
    variables; ``cells``: the variables that functions nested in it use."""
    facts: Dict[str, Any] = {field.name: getattr(around, field.name, None) for field in fields(PortableCode)}
    facts.update(
        version=version_of(around),
        co_argcount=1,
        co_posonlyargcount=1,
        co_kwonlyargcount=0,
        co_flags=around.co_flags & ~_OTHER_FLAGS | _FUNCTION_FLAGS,
        co_varnames=(".0", *variables),
        co_cellvars=cells,
        co_freevars=tuple(sorted({*around.co_freevars, *around.co_cellvars} - {*cells, *variables})),
        co_name=name,
        co_qualname=f"{qualified_name(around)}.<locals>.{name}",
    )
    return InlinedCode(ops=ops, open_tests=open_tests, **facts)


def _same(one: Instr, two: Instr) -> bool:
    if one.arg is not two.arg and (type(one.arg) is not type(two.arg) or one.op is Op.CONST):
        return False
    return (one.op, one.arg, one.target, one.handler) == (two.op, two.arg, two.target, two.handler)
