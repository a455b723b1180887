"""Code objects whose names do not fit the names that they are stored under, as obfuscators leave them.

``def f(): ...`` stores a function ``f`` whose code is called ``f``. Where the code has another name, or several
variables of one name, no text gives that code. It is decompiled with names that fit, and the result is compared with
the original after the original names were put back: the names in the text are placeholders.

A module of its own: the stages never see the original names.
"""

from __future__ import annotations

import inspect
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass, replace
from depyf.decompiler.bytecode.code import COMPREHENSIONS, AnyCode, Code, is_code, nested_codes, own_qualified_name
from depyf.decompiler.lift.build import names_match
from depyf.decompiler.lift.items import GENERIC_PREFIX
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import Instr, Op
from depyf.decompiler.source.compiling.placeholders import Kind, Placeholder

_FAR = 60
"""The limit on operations between the making of a function and its store: decorators and bases are between them."""

_MADE_BY_COMPILERS = COMPREHENSIONS | {"<lambda>", "__annotate__"}


@dataclass(frozen=True)
class _Names:
    """The names in a code object: its own, the qualified one (3.11), that of the class whose body it is, variables."""

    name: str
    qualified: Optional[str]
    of_class: Optional[str]
    variables: Tuple[str, ...]


@dataclass(frozen=True)
class RenamedCode:
    """``code`` has names that fit; ``originals`` are the original names of code objects in it, by their paths there."""

    code: Code
    originals: Dict[str, _Names]
    placeholders: Tuple[Placeholder, ...]

    def undone(self, code: AnyCode) -> AnyCode:
        """Return ``code``, which was compiled from the text, with the original names."""
        return _changed(code, "", lambda path, each: self.originals.get(path))


def may_not_fit(code: Code) -> bool:
    """Return whether names in ``code`` may not fit; false where all do, or where functions have each other's names. It
    looks at no instruction."""
    return any(map(_may_not_fit, nested_codes(code)))


def with_fitting_names(code: Code) -> Optional[RenamedCode]:
    """Return ``code`` with names that fit where they are stored; ``None`` if all do, or if two code objects that would
    get one name have different ones."""
    # 1. One name for each variable: what is stored in a variable is looked up by its name.
    distinct = _changed(code, "", lambda path, each: replace(_names_of(each), variables=_distinct(each)))
    before = {id(new): old.co_varnames for new, old in zip(nested_codes(distinct), nested_codes(code))}
    # 2. The names under which functions and classes are stored, and what follows from these.
    fitting: Dict[int, str] = {}
    _find_stored(distinct, fitting)
    found: Dict[str, _Names] = {}
    placeholders: List[Placeholder] = []
    collisions: List[str] = []

    def fit(path: str, each: Code) -> Optional[_Names]:
        names = _names_of(each)
        new = replace(names, name=fitting.get(id(each), each.co_name))
        follows = any(path.startswith(f"{around}.") for around in found)
        if new.name != names.name or follows:
            of_class, qualified = (None if old is None else path for old in (names.of_class, names.qualified))
            new = replace(new, qualified=qualified, of_class=of_class)
        old = replace(names, variables=before[id(each)])
        if new == old:
            return None
        if found.setdefault(path, old) != old:
            collisions.append(path)
        if new.name != old.name:
            placeholders.append(Placeholder(path, old.name, Kind.CODE_NAME))
        for text, name in zip(new.variables, old.variables):
            if text != name:
                placeholders.append(Placeholder(f"{text} in {path}", name, Kind.NAME))
        return new

    changed = _changed(distinct, "", fit, fitting)
    return RenamedCode(changed, found, tuple(placeholders)) if found and not collisions else None


def _may_not_fit(code: Code) -> bool:
    if len(set(code.co_varnames)) != len(code.co_varnames):
        return True
    if code.co_name.startswith(GENERIC_PREFIX):
        return False  # the function that it makes is returned, and not stored
    made = {each.co_name for each in code.co_consts if is_code(each)} - _MADE_BY_COMPILERS
    unknown = made.difference(code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars)
    return any(not name.startswith((GENERIC_PREFIX, "__")) for name in unknown)


def _find_stored(code: Code, fitting: Dict[int, str]) -> None:
    """Add the names under which code objects in ``code`` are stored, where their own do not match."""
    try:
        ops = lower(code).ops
    except synchronous(ValueError, NotImplementedError):
        ops = ()
    for made, name in () if code.co_name.startswith(GENERIC_PREFIX) else _stores(ops):
        own = made.co_name
        if not (own in _MADE_BY_COMPILERS or own.startswith(GENERIC_PREFIX) or names_match(own, name)):
            fitting[id(made)] = name
    for inner in code.co_consts:
        if is_code(inner):
            _find_stored(inner, fitting)


def _stores(ops: Sequence[Instr]) -> Iterator[Tuple[Code, str]]:
    """Yield the code objects of functions and classes with the variables that are assigned next."""
    for index, instr in enumerate(ops):
        if instr.op is Op.MAKE_FUNCTION and index and ops[index - 1].op is Op.CONST and is_code(ops[index - 1].arg):
            for later in ops[index + 1 : index + _FAR]:
                if later.op is Op.STORE:
                    yield ops[index - 1].arg, later.arg[1]
                if later.op in (Op.STORE, Op.MAKE_FUNCTION) or later.target is not None:
                    break


def _distinct(code: Code) -> Tuple[str, ...]:
    """Return the local variables of ``code`` with a name for each; those in cells keep theirs."""
    kept = {*code.co_cellvars, *code.co_freevars}
    if len(set(code.co_varnames)) == len(code.co_varnames) or kept & set(code.co_varnames):
        return code.co_varnames
    taken = {*code.co_varnames, *code.co_names, *kept}
    result: List[str] = []
    for number, name in enumerate(code.co_varnames):
        spelled = name
        while spelled in result or (spelled != name and spelled in taken):
            spelled = f"{name or 'variable'}_{number}" if spelled == name else f"{spelled}_"
        result.append(spelled)
    return tuple(result)


def _names_of(code: Code) -> _Names:
    return _Names(code.co_name, own_qualified_name(code), _name_of_class(code), code.co_varnames)


def _name_of_class(code: Code) -> Optional[str]:
    """Return the qualified name that the body of a class stores."""
    if code.co_flags & inspect.CO_OPTIMIZED or "__qualname__" not in code.co_names:
        return None
    try:
        ops = lower(code).ops
    except synchronous(ValueError, NotImplementedError):
        return None
    stored = ("name", "__qualname__")
    names = [one.arg for one, other in zip(ops, ops[1:]) if other.op is Op.STORE and other.arg == stored]
    return names[0] if names and type(names[0]) is str else None


def _changed(
    code: AnyCode,
    path: str,
    names: Callable[[str, Code], Optional[_Names]],
    fitting: Optional[Dict[int, str]] = None,
) -> AnyCode:
    """Return ``code``, which is at ``path``, with the ``names`` of it and its nested code objects. A path is the names
    of the code objects around and its own, joined as qualified names are; ``fitting`` has some that are new."""
    new = names(path, code) if path else None
    is_function = code.co_flags & inspect.CO_OPTIMIZED and code.co_name not in COMPREHENSIONS
    inside = f"{path}.<locals>." if is_function else f"{path}." if path else ""
    of_class = None if new is None or new.of_class is None else _name_of_class(code)
    constants: List[object] = []
    for each in code.co_consts:
        if is_code(each):
            name = each.co_name if fitting is None else fitting.get(id(each), each.co_name)
            constants.append(_changed(each, inside + name, names, fitting))
        else:
            constants.append(new.of_class if new is not None and type(each) is str and each == of_class else each)
    changes: Dict[str, object] = {}
    if any(one is not other for one, other in zip(constants, code.co_consts)):
        changes["co_consts"] = tuple(constants)
    if new is not None:
        changes["co_name"] = new.name
        if new.qualified is not None:
            changes["co_qualname"] = new.qualified
        if len(new.variables) == len(code.co_varnames):  # the compiler leaves out variables without bytecode
            changes["co_varnames"] = new.variables
    replaced: AnyCode = code.replace(**changes) if changes else code  # type: ignore[assignment, arg-type]
    return replaced
