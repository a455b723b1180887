"""Qualified names. Before 3.11 they are not in the code object, but in the code that makes the function."""

from __future__ import annotations

import inspect
from typing import Dict, Mapping

from depyf.bytecode.code import Code, is_code
from depyf.bytecode.instructions import decode
from depyf.quick_dataclass import dataclass


@dataclass(frozen=True)
class Names:
    """The qualified name of a code object, and those of the code objects that it makes functions of, by ``id``, where
    these do not have it themselves."""

    own: str
    nested: Mapping[int, str]

    def within(self, code: Code) -> str:
        """Return the qualified name of a code object nested in this one."""
        return str(getattr(code, "co_qualname", None) or self.nested.get(id(code), code.co_name))


def qualified_name(code: Code) -> str:
    """Return the qualified name of ``code``; before 3.11 a function has it only if it makes functions itself."""
    known = getattr(code, "co_qualname", None)
    return names_of(code).own if known is None else str(known)


def names_of(code: Code) -> Names:
    """Return the qualified names that ``code`` shows. Raises ``ValueError`` when its bytecode is malformed."""
    nested: Dict[int, str] = {}
    known = getattr(code, "co_qualname", None)
    if known is not None:
        return Names(str(known), nested)
    own, stated = code.co_name, False
    if code.co_flags & inspect.CO_OPTIMIZED and not any(map(is_code, code.co_consts)):
        return Names(own, nested)
    instructions = decode(code).instructions
    for before, ins, behind in zip(instructions, instructions[1:], instructions[2:]):
        if ins.name != "LOAD_CONST":
            continue
        name = code.co_consts[ins.arg]
        stores = behind.name in ("STORE_NAME", "STORE_GLOBAL") and code.co_names[behind.arg] == "__qualname__"
        if stores and isinstance(name, str):
            if not (code.co_flags & inspect.CO_OPTIMIZED or stated) and name.rpartition(".")[2] == code.co_name:
                own, stated = name, True  # a class stores its own name first
        elif behind.name == "MAKE_FUNCTION" and before.name == "LOAD_CONST" and isinstance(name, str):
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
