"""Source back to a code object that can stand in for a given one."""

from __future__ import annotations

import ast
import inspect
from types import CodeType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar

from depyf.asynchronous import synchronous
from depyf.bytecode.code import FUTURE_FLAGS, Code, is_code, version_of
from depyf.bytecode.nesting import names_of
from depyf.normal.modes import flags_of, in_mode
from depyf.quick_dataclass import dataclass
from depyf.result import DecompilationError
from depyf.source.compiling.cell_order import respell, sorted_spellings
from depyf.source.compiling.placeholders import StandIns
from depyf.source.compiling.restoring import Restoration, stand_in_for
from depyf.source.compiling.scaffold import Scaffolded, Target, dig, marks, scaffold, target_of
from depyf.source.deep_stack import with_deep_stack
from depyf.source.futures import imported_flags
from depyf.source.source_text import SourceText
from depyf.without_warnings import without_warnings

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Compiled:
    """What a text compiles to.

    ``alone``: the code object of the text itself, in the surroundings of the original (``source.scaffold``): no
    constant was put into it, and no name changed. ``code`` is a replacement for the original, see ``compile_like``.
    ``given`` are qualified names of functions in that, by those that they have in ``alone``.
    """

    alone: CodeType
    code: CodeType
    given: Mapping[str, str]


def compile_source(source: SourceText, reference: Code, filename: str, *, replaceable: bool = True) -> Compiled:
    """The code object of ``source`` by itself, and the one that can replace ``reference`` (if it is ``replaceable``:
    where parts are missing, variables may be, too).

    Both come from one compilation, unless the second needs what the text does not hold: constants without a literal,
    names that can't be written, another order of variables. Raises ``DecompilationError`` when either can't be had.
    """
    return _refusing(reference, lambda: _Job(source, reference, filename).both(replaceable=replaceable))


def compile_like(source: SourceText, reference: Code, filename: str, *, all_locals: bool = False) -> CodeType:
    """The code object of ``source`` that can stand in for ``reference``.

    It has the name, parameters, free variables, cell variables (the last two in the same order), flags and objects as
    constants of ``reference``, and lies on the lines of ``source.text`` in file ``filename``. With ``all_locals`` it
    has all local variables of ``reference``, too, also those that nothing uses any more. Raises
    ``DecompilationError`` when that can't be had.
    """
    return _refusing(reference, lambda: _Job(source, reference, filename).restored(None, all_locals=all_locals))


def _refusing(reference: Code, work: Callable[[], _Result]) -> _Result:
    try:
        return with_deep_stack(work)
    except synchronous(SyntaxError, ValueError, TypeError) as error:
        raise DecompilationError(f"{reference.co_name}: the source does not compile: {error}") from error


def _with_locals(code: CodeType, names: Sequence[str]) -> CodeType:
    """``code`` with all these local variables: before 3.10 only those are made that bytecode is made for."""
    known = set(code.co_varnames)
    lost = [name for name in names if name not in known]
    if not lost:
        return code
    return code.replace(co_nlocals=code.co_nlocals + len(lost), co_varnames=(*code.co_varnames, *lost))


def _out_of_order(code: CodeType, reference: Code) -> bool:
    return any(
        getattr(code, field) != getattr(reference, field)
        and sorted(getattr(code, field)) == sorted(getattr(reference, field))
        for field in ("co_freevars", "co_cellvars")
    )


def _given_names(reference: Code) -> Dict[str, str]:
    """The qualified names that functions in ``reference`` have, by those that the compiler would give them where they
    differ: Dynamo gives functions names of its own."""
    if not reference.co_flags & inspect.CO_OPTIMIZED:
        return {}
    names, given = names_of(reference), {}
    for inner in reference.co_consts:
        if is_code(inner):
            given[f"{names.own}.<locals>.{inner.co_name}"] = names.within(inner)
    return {usual: name for usual, name in given.items() if usual != name}


class _Job:
    def __init__(self, source: SourceText, reference: Code, filename: str) -> None:
        self.source, self.reference, self.filename = source, reference, filename
        self.given = _given_names(reference)
        self.qualname = names_of(reference).own
        self.needs_table = bool(source.constants or source.names or self.given)

    def both(self, *, replaceable: bool) -> Compiled:
        target = target_of(self.source.tree, self.reference)
        if target is None:
            alone = self._compile(self.source.tree)
        else:
            alone = self._dug(self._scaffold(target), Restoration())
            alone = alone.replace(co_flags=alone.co_flags | marks(target))
        made = {f"{self.qualname}.<locals>.{inner.co_name}" for inner in alone.co_consts if isinstance(inner, CodeType)}
        given = {name: self.given[name] for name in made & set(self.given)}
        if not replaceable:
            return Compiled(alone, alone, given)
        return Compiled(alone, self.restored(None if self.needs_table else alone, all_locals=False), given)

    def restored(self, alone: Optional[CodeType], *, all_locals: bool) -> CodeType:
        """A replacement for the original; ``alone`` is what the text compiles to if that needs no more than flags."""
        reference = self.reference
        stand_ins = StandIns(self.source.constants)
        tree = stand_ins.put_in(self.source.tree)
        target = target_of(tree, reference)
        own = Restoration(self.source.names, stand_ins, reference.co_flags & FUTURE_FLAGS, self.given)
        if target is None:
            return stand_in_for(reference, own.restore(alone or self._compile(tree)))
        if alone is not None:
            code = own.restore(alone)
        else:
            code = self._dug(self._scaffold(target), own)
        if version_of(reference) != version_of(code):
            return stand_in_for(reference, code)  # to be compared, and never to run: its variables need no order
        cells = set(code.co_cellvars)
        missing = [cell for cell in reference.co_cellvars if cell not in cells]
        # Code made by hand may have a local variable that is called like a free one; source can't, and nothing uses it.
        known = {*code.co_varnames, *reference.co_freevars}
        unused = [name for name in reference.co_varnames if name not in known] if all_locals else []
        if missing or unused:
            code = self._dug(self._scaffold(target, missing, unused), own)
        if _out_of_order(code, reference):
            code = self._dug(self._scaffold(target, missing, unused, sorted_spellings(reference)), own)
        return stand_in_for(reference, _with_locals(code, unused))

    def _free(self) -> List[str]:
        return self._as_written(self.reference.co_freevars)

    def _as_written(self, names: Sequence[str]) -> List[str]:
        written = {original: name for name, original in self.source.names.items()}
        return [written.get(name, name) for name in names]

    def _scaffold(
        self,
        target: Target,
        missing: Sequence[str] = (),
        unused: Sequence[str] = (),
        spellings: Optional[Mapping[str, str]] = None,
    ) -> Scaffolded:
        """``target`` with ``missing`` cells and ``unused`` variables made, variables in the order of ``spellings``."""
        written = [self._free(), self._as_written(missing), self._as_written(unused)]
        if spellings is not None:
            by_text = dict(zip(self._as_written(list(spellings)), spellings.values()))
            target = respell(target, by_text)
            written = [[by_text.get(name, name) for name in names] for names in written]
        return scaffold(target, self.reference, *written)

    def _dug(self, scaffolded: Scaffolded, restoration: Restoration) -> CodeType:
        """The code object of the target, called as it is in the original, with what ``restoration`` brings back."""
        code = dig(self._compile(scaffolded.tree), scaffolded)
        return restoration.within(scaffolded.qualname, self.qualname).restore(code)

    def _compile(self, tree: ast.Module) -> CodeType:
        # With asserts and docstrings, whatever the interpreter was started with: what is in the source was there. The
        # annotations in it mean what they say: a text that postpones them says that itself.
        mode, flags = self.source.mode, imported_flags(self.source.tree) | flags_of(self.reference)
        arguments: Any = (in_mode(tree, mode), self.filename, mode.value, flags, True, 0)
        # What the compiler warns of, it has warned of where the code is from; and a stand-in for a constant that is
        # called or compared by identity looks like a mistake to it.
        with without_warnings():
            code: CodeType = compile(*arguments)
            return code
