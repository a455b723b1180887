"""Names that compilers store in the namespace of a class or module without being written in the source."""

from __future__ import annotations

from typing import Tuple

from depyf.decompiler.bytecode.code import Code, version_of

CONDITIONAL = "__conditional_annotations__"
"""Since 3.14: the numbers of the annotations that were executed."""


_CLASS, _NAMESPACE = "__class__", "__classdict__"
CELLS = frozenset({_CLASS, _NAMESPACE})
"""The cells of classes for functions in them: the class, and since 3.12 its namespace."""


def added_at_start(code: Code) -> Tuple[str, ...]:
    """Return the names that the compiler may store at the start of the class or module ``code``."""
    conditional = (CONDITIONAL,) if version_of(code) >= (3, 14) else ()
    if code.co_name == "<module>":
        return conditional
    first_line = ("__firstlineno__",) if version_of(code) >= (3, 13) else ()
    generic = ("__type_params__",) if version_of(code) >= (3, 12) else ()
    namespace = (_NAMESPACE,) if _NAMESPACE in code.co_cellvars else ()
    return ("__module__", "__qualname__", *first_line, *generic, *namespace, *conditional)


def added_at_end(code: Code) -> Tuple[str, ...]:
    """Return the names that the compiler may store at the end of ``code``."""
    if code.co_name == "<module>":
        return ()
    attributes = ("__static_attributes__",) if version_of(code) >= (3, 13) else ()
    namespace = ("__classdictcell__",) if _NAMESPACE in code.co_cellvars else ()
    return (*attributes, *namespace, *(("__classcell__",) if _CLASS in code.co_cellvars else ()))
