"""Facts of a code object that its operations don't show: its signature, its kind, its docstring."""

from __future__ import annotations

import inspect
from typing import List, Mapping, Optional, Sequence, Tuple

from depyf.decompiler.bytecode.code import HANDS_ON_FUTURES, Code, future_flags, parameter_names, version_of
from depyf.decompiler.bytecode.nesting import Names
from depyf.decompiler.verify.constants import nan_objects
from depyf.decompiler.verify.program import Program, relative_name

Fact = Tuple[str, object, object]

KIND_FLAGS = (
    inspect.CO_OPTIMIZED
    | inspect.CO_NEWLOCALS
    | inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ITERABLE_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)


def signature_difference(original: Code, candidate: Code, renamed: Mapping[str, str]) -> Optional[str]:
    """Describe the first fact in which the two disagree; ``None`` if they agree."""
    facts: List[Fact] = [
        ("positional arguments", original.co_argcount, candidate.co_argcount),
        ("positional-only arguments", original.co_posonlyargcount, candidate.co_posonlyargcount),
        ("keyword-only arguments", original.co_kwonlyargcount, candidate.co_kwonlyargcount),
        ("kind flags", original.co_flags & KIND_FLAGS, candidate.co_flags & KIND_FLAGS),
        ("argument names", parameter_names(original), _mapped(parameter_names(candidate), renamed)),
        ("variables of functions around", *_whose_cells(original, candidate, renamed)),
    ]
    return _first_difference(facts)


def _whose_cells(original: Code, candidate: Code, renamed: Mapping[str, str]) -> Tuple[List[str], List[str]]:
    """Return, for either side, the names among the cells of both that belong to the enclosing code."""
    free, cells = set(original.co_freevars), set(original.co_cellvars)
    their_free, their_cells = set(_mapped(candidate.co_freevars, renamed)), set(_mapped(candidate.co_cellvars, renamed))
    both = (free | cells) & (their_free | their_cells)
    return sorted(free & both), sorted(their_free & both)


def nested_difference(
    original: Code, candidate: Code, around: Tuple[Names, Names], renamed: Mapping[str, str]
) -> Optional[str]:
    """Describe the first difference that matters only for code that a program makes a function from at run time.

    ``around`` are the names of the two enclosing code objects.
    """
    mine, theirs = (
        relative_name(names.within(code), code, names) for code, names in zip((original, candidate), around)
    )
    if original.co_name == "__annotate__" and version_of(original) != version_of(candidate):
        theirs = mine  # since 3.15 it is that of the annotated function, and no source changes it
    facts: List[Fact] = [
        ("qualified names", mine, theirs),
        ("names", original.co_name, candidate.co_name),
        ("free variables", sorted(original.co_freevars), sorted(_mapped(candidate.co_freevars, renamed))),
    ]
    return _first_difference(facts)


def _mapped(names: Tuple[str, ...], renamed: Mapping[str, str]) -> Tuple[str, ...]:
    return tuple(renamed.get(name, name) for name in names)


def _first_difference(facts: Sequence[Fact]) -> Optional[str]:
    for what, mine, theirs in facts:
        if mine != theirs:
            return f"the {what} differ: {mine!r} in the original, {theirs!r} in the candidate"
    return None


def visible_futures(original: Program, candidate: Program) -> Optional[str]:
    """Describe a ``__future__`` import that only one side hands on to code that it compiles."""
    asked = sorted(HANDS_ON_FUTURES & original.names)
    mine, theirs = original.code, candidate.code
    # Flags have other bits in other versions, and the newer version implies what the older requires.
    if not asked or version_of(mine) != version_of(theirs):
        return None
    if (mine.co_flags ^ theirs.co_flags) & future_flags(version_of(mine)):
        return f"{asked[0]} is used, which passes on a from __future__ import that only one side has"
    return None


LOOKS_AT_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"})


def visible_names(original: Program, candidate: Program) -> Optional[str]:
    """Describe how ``locals()`` would differ in the candidate, if the original calls it: other names or another order.

    Elsewhere names that only the candidate has are not observable.
    """
    # Any of these names may be a call of the builtin, also as an attribute (``builtins.locals``).
    asked = sorted(LOOKS_AT_LOCALS & original.names)
    if not asked or not original.code.co_flags & inspect.CO_OPTIMIZED:
        return None
    extra = sorted(candidate.locals - original.locals)
    if extra:
        return f"{asked[0]} is used, which can see the temporaries {', '.join(extra)}"
    mine, theirs = original.code.co_varnames, candidate.code.co_varnames
    if version_of(original.code) != version_of(candidate.code):  # since 3.12 with those of inlined comprehensions
        theirs = tuple(name for name in theirs if name in mine)
    if mine != theirs and len(original.locals) > 1:
        return f"{asked[0]} is used, which can see that the variables have another order"
    return None


def visible_nans(original: Program, candidate: Program) -> Optional[str]:
    """Report several NaN objects on either side: a program can distinguish them, the proof can't."""
    if all(len(set(nan_objects(program.ops))) < 2 for program in (original, candidate)):
        return None
    return "it has several NaN, and which of these are one object is not tracked"
