"""A compiled code object made a replacement for another one: names, constants, flags as they were in the bytecode."""

from __future__ import annotations

import inspect
import operator
from typing import Any, Dict, Mapping, Optional, Tuple, cast

from depyf.decompiler.bytecode.code import AnyCode, Code, flags_like, is_code, parameter_names, version_of
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.source.compiling.cell_order import RESPELLED, original_spelling
from depyf.decompiler.source.compiling.placeholders import StandIns
from depyf.decompiler.source.compiling.scaffold import MARKS, NAME

_KIND_FLAGS = {
    inspect.CO_OPTIMIZED: "a function",
    inspect.CO_VARARGS: "with *args",
    inspect.CO_VARKEYWORDS: "with **kwargs",
    inspect.CO_GENERATOR: "a generator",
    inspect.CO_COROUTINE: "a coroutine",
    inspect.CO_ASYNC_GENERATOR: "an asynchronous generator",
}


class Restoration:
    """Undoes in code objects the changes that made the tree writable and compilable. ``flags``: those that it could not
    be compiled with. ``given``: qualified names by those that the compiler makes."""

    def __init__(
        self,
        names: Optional[Mapping[str, str]] = None,
        stand_ins: Optional[StandIns] = None,
        flags: int = 0,
        given: Optional[Mapping[str, str]] = None,
    ) -> None:
        self._names = names or {}
        self._stand_ins = stand_ins or StandIns({})
        self._flags = flags
        self._given = given or {}
        self._qualname = self._original_qualname = NAME
        self._renames = bool(self._names)

    def within(self, qualname: str, original_qualname: str, *, respelled: bool) -> Restoration:
        """Return the restoration for code that is called ``qualname`` where it was compiled, and ``original_qualname``
        at home. ``respelled``: with variables that were ``respell``-ed."""
        result = Restoration(self._names, self._stand_ins, self._flags, self._given)
        result._qualname, result._original_qualname = qualname, original_qualname
        result._renames = result._renames or respelled
        return result

    def restore(self, code: AnyCode) -> AnyCode:
        """Return ``code``, and its nested code, with the original names and constants."""
        changes: Dict[str, Any] = {"co_flags": code.co_flags | self._flags} if self._flags else {}
        for field in ("co_name", "co_qualname"):
            if hasattr(code, field):
                changes[field] = self._string(getattr(code, field))
        if self._renames:
            for field in ("co_names", "co_varnames", "co_cellvars", "co_freevars"):
                changes[field] = tuple(map(self._string, getattr(code, field)))
        changes["co_consts"] = tuple(map(self._constant, code.co_consts))
        changed = {field: value for field, value in changes.items() if not _same(getattr(code, field), value)}
        return cast(AnyCode, code.replace(**changed)) if changed else code

    def _constant(self, constant: object) -> object:
        if is_code(constant):
            return self.restore(constant)
        if type(constant) is str:
            return self._string(constant)
        return self._strings(self._stand_ins.take_out(constant))

    def _strings(self, constant: object) -> object:
        """Restore the names in a constant: names of keyword arguments, imported names, names of classes."""
        if type(constant) is str:
            return self._string(constant)
        if type(constant) is tuple and any(type(item) in (str, tuple) for item in constant):
            items = tuple(self._strings(item) for item in constant)
            return constant if _same(items, constant) else items
        return constant

    def _string(self, text: str) -> str:
        # In this order: placeholder names, prefixes of respelled variables, then qualified names, whose parts may be
        # placeholders.
        text = self._names.get(text, text)
        if self._renames and RESPELLED in text:
            text = original_spelling(text)
        if text.startswith(MARKS) and (text + ".").startswith(self._qualname + "."):
            # depyf_scaffold.<locals>.depyf_scaffold.<locals>.g    is    f.<locals>.g
            rest = text[len(self._qualname) :].split(".")
            text = self._original_qualname + ".".join(self._names.get(part, part) for part in rest)
            text = self._as_given(text)
        elif "." in text and self._names:
            # import a.b
            text = ".".join(self._names.get(part, part) for part in text.split("."))
        return text

    def _as_given(self, qualname: str) -> str:
        """Return the given name of a function, or of a function in one that has a given name."""
        for usual, name in self._given.items():
            if qualname == usual or qualname.startswith(f"{usual}."):
                return name + qualname[len(usual) :]
        return qualname


def _same(one: object, other: object) -> bool:
    """Return whether both consist of the same objects (equality would confuse 1 and 1.0, and could run user code)."""
    if type(one) is tuple and type(other) is tuple:
        return len(one) == len(other) and all(map(operator.is_, one, other))
    return one is other


def stand_in_for(reference: Code, code: AnyCode) -> AnyCode:
    """Return ``code`` with the name and flags of ``reference``. Raises ``DecompilationError`` if parameters, free
    variables, cells or kind of function differ."""
    where = reference.co_name
    for flag, kind in _KIND_FLAGS.items():
        if (reference.co_flags ^ code.co_flags) & flag:
            raise DecompilationError(f"{where}: the original is {_not(reference, flag)}{kind}, the source is not")
    counts = _counts(reference), _counts(code)
    names = parameter_names(reference), parameter_names(code)
    if counts[0] != counts[1] or names[0] != names[1]:
        raise DecompilationError(f"{where}: the original takes the parameters {names[0]}, the source {names[1]}")
    for field, kind in (("co_freevars", "free variables"), ("co_cellvars", "cell variables")):
        wanted, got = getattr(reference, field), getattr(code, field)
        if version_of(reference) != version_of(code):
            # The set of cells depends on the version. The set of free variables does not, but their order does.
            wanted, got = (sorted(wanted), sorted(got)) if field == "co_freevars" else ((), ())
        if wanted != got:
            raise DecompilationError(f"{where}: the original has the {kind} {wanted}, the source {got}")
    changes: Dict[str, Any] = {"co_name": reference.co_name, "co_flags": flags_like(reference, code)}
    if hasattr(reference, "co_qualname") and hasattr(code, "co_qualname"):
        changes["co_qualname"] = reference.co_qualname
    return cast(AnyCode, code.replace(**changes))


def _not(reference: Code, flag: int) -> str:
    return "" if reference.co_flags & flag else "not "


def _counts(code: Code) -> Tuple[int, int, int]:
    return code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
