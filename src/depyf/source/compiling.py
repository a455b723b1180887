"""Source back to a code object that can stand in for a given one."""

from __future__ import annotations

import ast
import inspect
import threading
import warnings
from dataclasses import dataclass
from types import CodeType
from typing import Any, Dict, Mapping, Optional, Sequence

from depyf.bytecode.code import FUTURE_FLAGS, Code, is_code, version_of
from depyf.bytecode.nesting import names_of
from depyf.result import DecompilationError
from depyf.source.cell_order import respell, sorted_spellings
from depyf.source.deep_stack import with_deep_stack
from depyf.source.placeholders import StandIns
from depyf.source.restoring import ANNOTATIONS, Restoration, needs_postponing, stand_in_for
from depyf.source.scaffold import NAME, Target, dig, scaffold, target_of
from depyf.source.source_text import SourceText

_filters_lock = threading.Lock()


def compile_like(source: SourceText, reference: Code, filename: str, *, all_locals: bool = False) -> CodeType:
    """The code object of ``source`` that can stand in for ``reference``.

    It has the name, parameters, free variables, cell variables (the last two in the same order), flags and objects as
    constants of ``reference``, and lies on the lines of ``source.text`` in file ``filename``. With ``all_locals`` it
    has all local variables of ``reference``, too, also those that nothing uses any more. Raises
    ``DecompilationError`` when that can't be had.
    """
    try:
        return with_deep_stack(lambda: _compile_like(source, reference, filename, all_locals))
    except (SyntaxError, ValueError, TypeError) as error:
        raise DecompilationError(f"{reference.co_name}: the source does not compile: {error}") from error


def _compile_like(source: SourceText, reference: Code, filename: str, all_locals: bool) -> CodeType:
    stand_ins = StandIns(source.constants)
    tree = stand_ins.put_in(source.tree)
    target = target_of(tree, reference)
    job = _Job(source, reference, filename, stand_ins)
    if target is None:
        code = job.compile(tree)
        return stand_in_for(
            reference, Restoration(source.names, stand_ins, NAME, NAME, reference.co_flags & ANNOTATIONS).restore(code)
        )
    code = job.compile_target(target)
    if version_of(reference) != version_of(code):
        return stand_in_for(reference, code)  # to be compared, and never to run: its variables need no order
    missing = [cell for cell in reference.co_cellvars if cell not in code.co_cellvars]
    # Code made by hand may have a local variable that is called like a free one; source can't, and nothing uses it.
    known = (*code.co_varnames, *reference.co_freevars)
    unused = [name for name in reference.co_varnames if name not in known] if all_locals else []
    if missing or unused:
        code = job.compile_target(target, missing, unused)
    if _out_of_order(code, reference):
        code = job.compile_target(target, missing, unused, sorted_spellings(reference))
    return stand_in_for(reference, _with_locals(code, unused))


def _with_locals(code: CodeType, names: Sequence[str]) -> CodeType:
    """``code`` with all these local variables: before 3.10 only those are made that bytecode is made for."""
    lost = [name for name in names if name not in code.co_varnames]
    if not lost:
        return code
    return code.replace(co_nlocals=code.co_nlocals + len(lost), co_varnames=(*code.co_varnames, *lost))


def _out_of_order(code: CodeType, reference: Code) -> bool:
    return any(
        getattr(code, field) != getattr(reference, field)
        and sorted(getattr(code, field)) == sorted(getattr(reference, field))
        for field in ("co_freevars", "co_cellvars")
    )


def _given_names(reference: Code, qualname: str) -> Dict[str, str]:
    """The qualified names that functions in ``reference`` have, by those that the compiler would give them where they
    differ: Dynamo gives functions names of its own."""
    if not reference.co_flags & inspect.CO_OPTIMIZED:
        return {}
    names, given = names_of(reference), {}
    for inner in reference.co_consts:
        if is_code(inner):
            given[f"{qualname}.<locals>.{inner.co_name}"] = names.within(inner)
    return {usual: name for usual, name in given.items() if usual != name}


@dataclass(frozen=True)
class _Job:
    source: SourceText
    reference: Code
    filename: str
    stand_ins: StandIns

    def compile_target(
        self,
        target: Target,
        missing: Sequence[str] = (),
        unused: Sequence[str] = (),
        spellings: Optional[Mapping[str, str]] = None,
    ) -> CodeType:
        """The code of ``target`` with names restored; ``missing`` cells and ``unused`` variables made; variables in the
        order of ``spellings``."""
        written = {original: name for name, original in self.source.names.items()}
        free = [written.get(name, name) for name in self.reference.co_freevars]
        cells = [written.get(name, name) for name in missing]
        unused = [written.get(name, name) for name in unused]
        if spellings is not None:
            by_text = {written.get(name, name): spelling for name, spelling in spellings.items()}
            target = respell(target, by_text)
            free = [by_text.get(name, name) for name in free]
            cells = [by_text.get(name, name) for name in cells]
            unused = [by_text.get(name, name) for name in unused]
        scaffolded = scaffold(target, self.reference, free, cells, unused)
        code = dig(self.compile(scaffolded.tree), scaffolded)
        qualname = names_of(self.reference).own
        flags = self.reference.co_flags & ANNOTATIONS
        given = _given_names(self.reference, qualname)
        return Restoration(self.source.names, self.stand_ins, scaffolded.qualname, qualname, flags, given).restore(code)

    def compile(self, tree: ast.Module) -> CodeType:
        # With asserts and docstrings, whatever the interpreter was started with: what is in the source was there. The
        # annotations in it mean what they say, where they can; a module that postpones them says that itself.
        flags = self.reference.co_flags & FUTURE_FLAGS
        if not needs_postponing(self.reference):
            flags &= ~ANNOTATIONS
        arguments: Any = (tree, self.filename, "exec", flags, True, 0)
        if not self.source.constants:
            code: CodeType = compile(*arguments)
            return code
        # A stand-in that is called or compared by identity looks like a mistake to the compiler.
        with _filters_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = compile(*arguments)
            return code
