"""Source back to a code object that can replace a given one."""

from __future__ import annotations

import ast
import inspect
from types import CodeType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, TypeVar, Union

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.base.without_warnings import without_warnings
from depyf.decompiler.bytecode.code import Code, future_flags, is_code, nested_codes, own_qualified_name, version_of
from depyf.decompiler.bytecode.nesting import Names, names_of
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.modes import Mode, flags_of, in_mode, is_module
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.source.compiling.cell_order import RESPELLED, respell, sorted_spellings
from depyf.decompiler.source.compiling.placeholders import StandIns
from depyf.decompiler.source.compiling.restoring import Restoration, stand_in_for
from depyf.decompiler.source.compiling.scaffold import (
    NAME,
    Scaffolded,
    Target,
    dig,
    marks,
    scaffold,
    target_of,
    with_marked_name,
)
from depyf.decompiler.source.deep_stack import with_deep_stack
from depyf.decompiler.source.futures import imported_flags
from depyf.decompiler.source.source_text import SourceText

if TYPE_CHECKING:
    from depyf.decompiler.bytecode.other_pythons import Interpreter

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Compiled:
    """The result of compiling a text. ``alone``: the code object of the text itself, in the surroundings of the
    original (``source.scaffold``), without restored constants or names. ``code`` is a replacement for the original, see
    ``compile_like``. ``given``: the qualified names of its functions, by those that they have in ``alone``."""

    alone: Code
    code: Code
    given: Mapping[str, str]


def compile_source(
    source: SourceText, reference: Code, filename: str, interpreter: Optional[Interpreter], *, replaceable: bool = True
) -> Compiled:
    """Return the code object of ``source`` by itself, and the one that can replace ``reference``.

    ``interpreter`` compiles it, ``None``: the running Python. ``replaceable`` is False where parts are missing, since
    variables may be, too. Both come from one compilation,
    unless the second needs what text can't express: constants without a literal, names that can't be written, another
    order of variables. Raises ``DecompilationError`` if either can't be made.
    """
    return _refusing(reference, lambda: _Job(source, reference, filename, interpreter).both(replaceable=replaceable))


def compile_like(
    source: SourceText,
    reference: Code,
    filename: str,
    interpreter: Optional[Interpreter] = None,
    *,
    all_locals: bool = False,
) -> Code:
    """Return the code object of ``source`` that can replace ``reference``.

    It has the name, parameters, free variables, cell variables (the last two in the same order), flags and objects as
    constants of ``reference``, and the lines of ``source.text`` in file ``filename``. With ``all_locals`` it also has
    the unused local variables of ``reference``. ``interpreter`` compiles it, else the running Python.
    Raises ``DecompilationError`` when it can't be made.
    """
    return _refusing(
        reference, lambda: _Job(source, reference, filename, interpreter).restored(None, all_locals=all_locals)
    )


def _refusing(reference: Code, work: Callable[[], _Result]) -> _Result:
    try:
        return with_deep_stack(work)
    except synchronous(SyntaxError, ValueError, TypeError) as error:
        raise DecompilationError(f"{reference.co_name}: the source does not compile: {error}") from error
    except synchronous(MemoryError) as error:  # what the parser of Python 3.8 raises for its own stack
        raise DecompilationError(f"{reference.co_name}: nested too deeply for the parser, or no memory") from error


def _with_locals(code: Code, names: Sequence[str]) -> Code:
    """Return ``code`` with all these local variables: before 3.10 only those with bytecode are made."""
    known = set(code.co_varnames)
    lost = [name for name in names if name not in known]
    if not lost:
        return code
    return code.replace(co_nlocals=code.co_nlocals + len(lost), co_varnames=(*code.co_varnames, *lost))


def _loaded_by_name(code: Code) -> Set[str]:
    """Return the names that ``code`` or code in it looks up in a namespace: a local variable would take their place."""
    loads = [instr.arg for each in nested_codes(code) for instr in lower(each).ops if instr.op is Op.LOAD]
    return {name for kind, name in loads if kind in ("global", "name")}


def _out_of_order(code: Code, reference: Code) -> bool:
    return any(
        getattr(code, field) != getattr(reference, field)
        and sorted(getattr(code, field)) == sorted(getattr(reference, field))
        for field in ("co_freevars", "co_cellvars")
    )


def _given_names(reference: Code, names: Names) -> Dict[str, str]:
    """Return the qualified names of functions in ``reference`` that differ from the compiler's, by the latter. Dynamo
    gives functions names of its own. Code that no reachable operation makes a function of has none (before 3.11)."""
    if not reference.co_flags & inspect.CO_OPTIMIZED:
        return {}
    given = {}
    for inner in reference.co_consts:
        if is_code(inner) and (own_qualified_name(inner) is not None or id(inner) in names.nested):
            given[f"{names.own}.<locals>.{inner.co_name}"] = names.within(inner)
    return {usual: name for usual, name in given.items() if usual != name}


class _Job:
    def __init__(self, source: SourceText, reference: Code, filename: str, interpreter: Optional[Interpreter]) -> None:
        self.source, self.reference, self.filename = source, reference, filename
        self.interpreter = interpreter
        self.flags = reference.co_flags & future_flags(version_of(reference))
        names = names_of(reference)
        self.given, self.qualname = _given_names(reference, names), names.own
        self.needs_table = bool(source.constants or source.names or self.given)

    def both(self, *, replaceable: bool) -> Compiled:
        if is_module(self.reference):
            alone = self._compile(None)
        else:
            # The text as it is where possible: the scaffolding needs a tree, which takes twice the time.
            alone = self._in_text() or self._in_scaffold()
        made = {f"{self.qualname}.<locals>.{inner.co_name}" for inner in alone.co_consts if is_code(inner)}
        given = {name: self.given[name] for name in made & set(self.given)}
        if not replaceable:
            return Compiled(alone, alone, given)
        return Compiled(alone, self.restored(None if self.needs_table else alone, all_locals=False), given)

    def _in_text(self) -> Optional[Code]:
        """Return the code object of the function in the compiled text, which takes half the time; ``None`` if it needs
        surroundings."""
        text = with_marked_name(self.source.text, self.reference)
        module = None if text is None else self._compile(text)
        for each in module.co_consts if module is not None else ():
            if is_code(each) and each.co_name == NAME:  # others are lambdas for defaults, or annotations
                return Restoration().within(NAME, self.qualname, respelled=False).restore(each)
        return None

    def _in_scaffold(self) -> Code:
        target = self._target()
        code = self._dug(self._scaffold(target), Restoration())
        return code.replace(co_flags=code.co_flags | marks(target))

    def _target(self, stand_ins: Optional[StandIns] = None) -> Target:
        tree = self.source.tree
        return target_of(tree if stand_ins is None else stand_ins.put_in(tree), self.reference)

    def restored(self, alone: Optional[Code], *, all_locals: bool) -> Code:
        """Return a replacement for the original; ``alone`` is the compiled text if that needs only other flags."""
        reference = self.reference
        stand_ins = StandIns(self.source.constants)
        own = Restoration(self.source.names, stand_ins, self.flags, self.given)
        if is_module(reference):
            code = alone or self._compile(stand_ins.put_in(self.source.tree) if self.source.constants else None)
            changed = self.needs_table or self.flags or RESPELLED in self.source.text
            return stand_in_for(reference, own.restore(code) if changed else code)
        # Each further compilation adds what the last one lacked: cells that only dead code captured, unused variables,
        # then the order of cells and free variables.
        if alone is None:
            code = self._dug(self._scaffold(self._target(stand_ins)), own)
        else:
            code = own.restore(alone) if self.flags else alone
        if version_of(reference) != version_of(code):
            return stand_in_for(reference, code)  # to be compared, and never to run: its variables need no order
        cells = set(code.co_cellvars)
        missing = [cell for cell in reference.co_cellvars if cell not in cells]
        # Code made by hand may have a local variable with the name of a free one; source can't, and no code uses it.
        known = {*code.co_varnames, *reference.co_freevars}
        unused = [name for name in reference.co_varnames if name not in known] if all_locals else []
        if unused:  # variables of a comprehension without bytecode (3.12) may have the names of globals
            loaded = _loaded_by_name(code)
            unused = [name for name in unused if name not in loaded]
        if missing or unused:
            code = self._dug(self._scaffold(self._target(stand_ins), missing, unused), own)
        if _out_of_order(code, reference):
            spelled = self._scaffold(self._target(stand_ins), missing, unused, sorted_spellings(reference))
            code = self._dug(spelled, own, respelled=True)
        return stand_in_for(reference, _with_locals(code, unused))

    def _names_in_text(self, names: Sequence[str]) -> List[str]:
        in_text = {original: name for name, original in self.source.names.items()}
        return [in_text.get(name, name) for name in names]

    def _scaffold(
        self,
        target: Target,
        missing: Sequence[str] = (),
        unused: Sequence[str] = (),
        spellings: Optional[Mapping[str, str]] = None,
    ) -> Scaffolded:
        """Return ``target`` with ``missing`` cells and ``unused`` variables, in the order of ``spellings``."""
        lists = [self._names_in_text(each) for each in (self.reference.co_freevars, missing, unused)]
        if spellings is not None:
            by_text = dict(zip(self._names_in_text(list(spellings)), spellings.values()))
            target = respell(target, by_text)
            lists = [[by_text.get(name, name) for name in names] for names in lists]
        return scaffold(target, self.reference, *lists)

    def _dug(self, scaffolded: Scaffolded, restoration: Restoration, *, respelled: bool = False) -> Code:
        """Return the code object of the target with its original name, after ``restoration``."""
        code = dig(self._compile(scaffolded.tree), scaffolded)
        return restoration.within(scaffolded.qualname, self.qualname, respelled=respelled).restore(code)

    def _compile(self, changed: Union[ast.Module, str, None]) -> Code:
        """Compile a ``changed`` tree or text; without one the text as it is. A tree takes more time."""
        # With asserts and docstrings, regardless of the interpreter's flags: the source contains what was compiled.
        # Annotations are evaluated unless the text itself postpones them.
        source, mode, flags = self.source, self.source.mode, flags_of(self.reference)
        compiled: Union[ast.AST, str] = changed or source.text  # which sets the flags that it imports
        if isinstance(changed, ast.Module) or mode is not Mode.EXEC:
            tree = changed if isinstance(changed, ast.Module) else source.tree
            compiled, flags = in_mode(tree, mode), flags | imported_flags(source.tree)
        if self.interpreter is not None:
            return self.interpreter.compile(compiled, self.filename, mode.value, flags)
        arguments: Any = (compiled, self.filename, mode.value, flags, True, 0)
        # The compiler's warnings were given for the original; and it warns of a replacement constant that is called or
        # compared by identity.
        with without_warnings():
            code: CodeType = compile(*arguments)
            return code
