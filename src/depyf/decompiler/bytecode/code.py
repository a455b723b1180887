"""Code objects of the running interpreter, and code objects that another version compiled."""

from __future__ import annotations
import __future__

import functools
import inspect
import operator
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING, Any, Iterator, Optional, Tuple, TypeVar, Union

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.opcode_table import Version, running_version, table_for

if TYPE_CHECKING:
    from typing import TypeGuard  # new in 3.10

FUTURE_FLAGS = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
"""The flags of the running version that ``from __future__`` imports set, and that code compiled at runtime inherits."""
# Today's CO_NESTED has the value that "from __future__ import nested_scopes" still claims.
FUTURE_FLAGS &= ~inspect.CO_NESTED


def future_flags(version: Version) -> int:
    """Return ``FUTURE_FLAGS`` of ``version``: 3.9 gave them other bits."""
    flags: int = FUTURE_FLAGS << _MOVED if version >= (3, 9) else FUTURE_FLAGS >> (4 - _MOVED)
    return flags


_MOVED = 4 if running_version() < (3, 9) else 0

HANDS_ON_FUTURES = frozenset({"compile", "eval", "exec"})
"""Names of the builtins that compile with the flags of the code that calls them."""

EFFECTIVE_FUTURES = {
    name: getattr(__future__, name).compiler_flag
    for name in __future__.all_feature_names
    if compile(f"from __future__ import {name}", "", "exec", dont_inherit=True).co_flags & FUTURE_FLAGS
}
"""The ``from __future__`` imports that still have an effect, with the flags that they set."""


COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""The names of code objects that are part of an expression and are called with the first iterable."""


@dataclass(frozen=True, eq=False)
class PortableCode:
    """A code object of another CPython than the running one, as data: it can be read, and can't be run.

    It has the fields of ``types.CodeType`` of its ``version`` by the same names; ``co_linetable`` is the line table of
    that version (``co_lnotab`` before 3.10), ``co_exceptiontable`` is empty before 3.11, ``co_qualname`` is computed
    where the version has none.
    """

    version: Version
    co_argcount: int
    co_posonlyargcount: int
    co_kwonlyargcount: int
    co_nlocals: int
    co_stacksize: int
    co_flags: int
    co_code: bytes
    co_consts: Tuple[Any, ...]
    co_names: Tuple[str, ...]
    co_varnames: Tuple[str, ...]
    co_freevars: Tuple[str, ...]
    co_cellvars: Tuple[str, ...]
    co_filename: str
    co_name: str
    co_qualname: str
    co_firstlineno: int
    co_linetable: bytes
    co_exceptiontable: bytes

    def replace(self, **changes: object) -> PortableCode:
        """Return a copy with other values, as ``CodeType.replace`` does."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        major, minor = self.version
        return f"<code object {self.co_name} of CPython {major}.{minor}, line {self.co_firstlineno}>"


Code = Union[CodeType, PortableCode]


def is_code(value: object) -> TypeGuard[Code]:
    """Return whether ``value`` is a code object of any version."""
    return isinstance(value, (CodeType, PortableCode))


AnyCode = TypeVar("AnyCode", bound=Code)


def nested_codes(code: AnyCode) -> Iterator[AnyCode]:
    """Yield ``code`` and every code object inside it, outer ones first."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from nested_codes(constant)


def parameter_names(code: Code) -> Tuple[str, ...]:
    """Return the names of all parameters, in the order of ``co_varnames``: ``*args`` and ``**kwargs`` come last."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count]


_KIND_FLAGS = (
    inspect.CO_OPTIMIZED
    | inspect.CO_NEWLOCALS
    | inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_NESTED
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ITERABLE_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)
"""The flags for the kind of a code object; their bits are the same in all versions."""

_HAS_DOCSTRING = 0x4000000
"""Since 3.14: the first constant is the docstring. No other version uses this bit."""


def flags_like(reference: Code, code: Code) -> int:
    """Return the flags for ``code`` to replace ``reference``: its own where the versions differ.

    Its source decides whether it has a docstring; the verifier compares that.
    """
    if version_of(reference) == version_of(code):
        return reference.co_flags & ~_HAS_DOCSTRING | code.co_flags & _HAS_DOCSTRING
    return code.co_flags & ~_KIND_FLAGS | reference.co_flags & _KIND_FLAGS


def check_facts(code: Code) -> None:
    """Raise ``ValueError`` when the fields of a code object are inconsistent: the interpreter does not check them."""
    raw = code.co_code
    if len(raw) % 2 or not raw:
        raise ValueError(f"{code.co_name}: {len(raw)} bytes of code; instructions have two each")
    positional, positional_only, keywords = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    if min(positional, positional_only, keywords) < 0 or positional_only > positional:
        raise ValueError(
            f"{code.co_name}: {positional} positional parameters, {positional_only} of them by position only, and "
            f"{keywords} keywords"
        )
    parameters = positional + keywords
    parameters += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    if parameters > len(code.co_varnames):
        raise ValueError(f"{code.co_name}: {parameters} parameters, and {len(code.co_varnames)} local variables")


def futures_of(code: Code) -> Tuple[str, ...]:
    """Return the names of the ``from __future__`` imports of the module that ``code`` is from."""
    flags = code.co_flags << 4 if version_of(code) < (3, 9) else code.co_flags
    flags >>= _MOVED
    return tuple(name for name, flag in EFFECTIVE_FUTURES.items() if flags & flag)


def fast_slots(code: Code) -> Tuple[str, ...]:
    """Return the variables by slot: the arguments of LOAD_FAST and LOAD_DEREF index them since 3.11."""
    local = code.co_varnames
    known = set(local)
    return (*local, *(name for name in code.co_cellvars if name not in known), *code.co_freevars)


def version_of(code: Code) -> Version:
    """Return the ``(major, minor)`` of the CPython that compiled ``code``."""
    return code.version if isinstance(code, PortableCode) else running_version()


def is_of_another_version(code: Code) -> bool:
    """Return whether another Python than the running one has compiled ``code``."""
    return version_of(code) != running_version()


def own_qualified_name(code: Code) -> Optional[str]:
    """Return the qualified name that ``code`` itself has; ``None`` before 3.11, where the code that makes a function
    has its name (``PortableCode.co_qualname`` is then computed from the names in constants)."""
    return None if version_of(code) < (3, 11) else str(getattr(code, "co_qualname"))  # noqa: B009 - new in 3.11


def may_use(code: Code, *names: str) -> bool:
    """Return whether ``code`` may have an instruction with one of these names; false only where it has none."""
    opcodes, used = table_for(version_of(code)).opcodes, code.co_code[::2]
    return any(opcodes[name] in used for name in names if name in opcodes)


def may_bind_globals(code: Code) -> bool:
    """Return whether the code may store or delete globals; false only where no instruction does."""
    return may_use(code, "STORE_GLOBAL", "DELETE_GLOBAL")


def docstring(code: Code) -> Optional[str]:
    """Return ``__doc__`` of a function with this code; ``None`` for comprehensions, classes and modules. A lambda has
    one only in handmade bytecode. Before 3.14 it is the first constant, whenever that is a string; since then a flag
    marks it."""
    if (
        (code.co_name.startswith("<") and code.co_name != "<lambda>")
        or not code.co_flags & inspect.CO_OPTIMIZED
        or not code.co_consts
    ):
        return None
    if version_of(code) >= (3, 14) and not code.co_flags & _HAS_DOCSTRING:
        return None
    first = code.co_consts[0]
    return first if type(first) is str else None
