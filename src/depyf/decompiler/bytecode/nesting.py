"""Qualified names. Before 3.11 the code object has none: the code that makes the function has its name."""

from __future__ import annotations

import inspect
from typing import Dict, Mapping

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.code import Code, is_code, own_qualified_name
from depyf.decompiler.bytecode.instructions import decode


@dataclass(frozen=True)
class Names:
    """The qualified name of a code object. ``nested``: by ``id``, the names of the code objects that it makes functions
    of; empty if these have their names themselves."""

    own: str
    nested: Mapping[int, str]

    def within(self, code: Code) -> str:
        """Return the qualified name of a code object nested in this one."""
        known = own_qualified_name(code)
        return self.nested.get(id(code), code.co_name) if known is None else known


def qualified_name(code: Code) -> str:
    """Return the qualified name of ``code``; before 3.11 a function has it only if it makes functions itself."""
    known = own_qualified_name(code)
    return names_of(code).own if known is None else known


def names_of(code: Code) -> Names:
    """Return the qualified names that ``code`` shows. Raises ``ValueError`` when its bytecode is malformed."""
    nested: Dict[int, str] = {}
    known = own_qualified_name(code)
    if known is not None:
        return Names(known, nested)
    own, stated = code.co_name, False
    if code.co_flags & inspect.CO_OPTIMIZED and not any(map(is_code, code.co_consts)):
        return Names(own, nested)
    # LOAD_CONST <code>; LOAD_CONST 'f.<locals>.g'; MAKE_FUNCTION       names a nested function
    # LOAD_CONST 'A.B'; STORE_NAME __qualname__                          at the start of a class: its own name
    #
    # A function has no name of its own: the names of its functions start with it, "f.<locals>." (in a comprehension
    # without "<locals>").
    instructions = decode(code).instructions
    for before, ins, after in zip(instructions, instructions[1:], instructions[2:]):
        if ins.name != "LOAD_CONST":
            continue
        name = code.co_consts[ins.arg]
        stores = after.name in ("STORE_NAME", "STORE_GLOBAL") and code.co_names[after.arg] == "__qualname__"
        if stores and isinstance(name, str):
            if not (code.co_flags & inspect.CO_OPTIMIZED or stated) and name.rpartition(".")[2] == code.co_name:
                own, stated = name, True  # a class stores its own name first
        elif after.name == "MAKE_FUNCTION" and before.name == "LOAD_CONST" and isinstance(name, str):
            inner = code.co_consts[before.arg]
            if is_code(inner):
                if not inner.co_flags & inspect.CO_OPTIMIZED:
                    name = names_of(inner).own  # a class body is given its plain name
                nested[id(inner)] = name
                around, _, last = name.rpartition(".")
                if code.co_flags & inspect.CO_OPTIMIZED and last == inner.co_name:
                    if around.endswith(".<locals>"):
                        own = around[: -len(".<locals>")]
                    elif around.rpartition(".")[2] == code.co_name:
                        own = around  # functions in a comprehension have no "<locals>" in their names
    return Names(own, nested)
