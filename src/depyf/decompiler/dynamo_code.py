"""Recognise the code that TorchDynamo writes by what it loads, and return facts about it.

Only the code object is needed, so that ``decompile`` returns the same wherever it is called. Further facts about a
frame that has just been compiled (its globals, its original) are added in ``dynamo/entries/hints.py``.

The hints rely on what Dynamo does, and are given for no other code:

- Dynamo binds the globals ``__compiled_fn_<n>`` and ``__resume_at_<offset>_<n>``, which it numbers,
  ``__import_<module>`` to modules and ``__builtins_dict___<n>`` to the builtins, before the code that loads them runs
  for the first time. It never binds them to another object or unbinds them while that code is in use. A global that the
  code itself binds, or a function in it, is the user's.
- Its own local variables are ``graph_out_*`` and ``tmp_*``, numbered from 0, and ``___context_manager_*_*``. In
  ``co_varnames`` they follow those of the function.
- Its additions have no columns, which all code has that CPython (since 3.11) compiled from text: a user's function with
  such a name, or with such variables, is not taken for Dynamo's. Before 3.11, and with ``-X no_debug_ranges``, there
  are only the names, and they are no evidence: ``shown_by_columns`` says which applies.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import AbstractSet, FrozenSet, Optional, Sequence, Set

from depyf.base.late_regex import regex
from depyf.decompiler.bytecode.code import Code, may_bind_globals, nested_codes
from depyf.decompiler.hints import Hints
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import Instr, Op

RESUME_PREFIX = "__resume_at_"
"""The prefix of the globals in which transformed code resumes."""

_GRAPH = r"__compiled_fn_\d+(_[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12})?"
_RESUME = rf"{RESUME_PREFIX}\d+_\d+"
_WRITTEN_BY_DYNAMO = regex(rf"({_GRAPH}|{_RESUME}|__import_torch_dot__dynamo_\w+)\Z")
_INSTALLED = regex(rf"({_GRAPH}|{_RESUME}|__builtins_dict___\d+(_c\w+)?)\Z")
_IMPORTED = "__import_"
_CONTEXT_MANAGER = regex(r"___context_manager_\d+_\d+\Z")
_OWN_VARIABLE = regex(r"(?:graph_out|tmp)_(\d+)\Z")


def hints_of(code: Code) -> Optional[Hints]:
    """Return the hints for ``code`` if Dynamo wrote it; ``None`` for other code."""
    names = frozenset(filter(_WRITTEN_BY_DYNAMO.match, code.co_names))
    if not names:
        return None
    installed = installed_globals(code)
    ops = lower(code).ops
    loads = [instr for instr in ops if _loads_global(instr, names & installed)]
    if not loads or any(map(_has_columns, loads)):
        return None
    users = {instr.arg[1] for instr in ops if _loads_global(instr, installed) and _has_columns(instr)}
    return Hints(droppable=_own_variables(code), stable_globals=installed - users)


def line_resumed_at(code: Code) -> Optional[int]:
    """Return the line at which a resume function goes on; ``None`` if that is not known.

    It has the whole code of the function that it resumes, and begins with a jump to where it goes on. The
    offset in the names of resume functions is of Dynamo's own list of instructions, which has no prefixes of arguments.
    """
    ops = lower(code).ops
    jump = next((instr for instr in ops if instr.op is Op.JUMP), None)
    if jump is None or jump.target is None:
        return None
    span = ops[jump.target].span
    return None if span is None else span.line


def shown_by_columns(code: Code) -> bool:
    """Return whether instructions without columns in ``code`` certainly come from no compiler, since it writes columns.
    Either other instructions of ``code`` have them, or code compiled by this process has them and ``code`` is on a
    single line, like code that Dynamo made as a whole."""
    if not isinstance(code, CodeType):
        return False
    spans = [instr.span for instr in lower(code).ops]
    if any(span is not None and span.column is not None for span in spans):
        return True
    one_line = len({span.line for span in spans if span is not None}) <= 1
    return one_line and any(map(_has_columns, lower(compile("a", "<probe>", "eval")).ops))


def installed_globals(code: Code) -> FrozenSet[str]:
    """Return the globals that Dynamo installs once for ``code``, which it wrote, and never changes."""
    names = {name for name in code.co_names if _INSTALLED.match(name) or _is_module(name)}
    return frozenset(names - _bound_globals(code) if names else ())


def loaded_globals(code: Code, names: AbstractSet[str]) -> Set[str]:
    """Return the names of ``names`` that ``code`` loads as globals."""
    return {instr.arg[1] for instr in lower(code).ops if _loads_global(instr, names)}


def _is_module(name: str) -> bool:
    """Return whether ``name`` is Dynamo's name of an existing module: ``__import_torch_dot_nn`` is ``torch.nn``."""
    module = name[len(_IMPORTED) :].replace("_dot_", ".") if name.startswith(_IMPORTED) else ""
    return module in sys.modules or module.partition(".")[0] == "torch"


def _bound_globals(code: Code) -> Set[str]:
    """Return the globals that ``code`` or code nested in it stores or deletes."""
    return {
        instr.arg[1]
        for each in nested_codes(code)
        if may_bind_globals(each)
        for instr in lower(each).ops
        if instr.op in (Op.STORE, Op.DELETE) and instr.arg[0] == "global"
    }


def _loads_global(instr: Instr, names: AbstractSet[str]) -> bool:
    return instr.op is Op.LOAD and instr.arg[0] == "global" and instr.arg[1] in names


def _has_columns(instr: Instr) -> bool:
    return instr.span is not None and instr.span.column is not None


def _own_variables(code: Code) -> FrozenSet[str]:
    """Return the variables that Dynamo made for its own use: the last ones, as far as they are numbered from 0. One
    counter numbers them all; in older versions of PyTorch each name has its own."""
    parameters = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[parameters:])
    managers = []
    while names and _CONTEXT_MANAGER.match(names[-1]):
        managers.append(names.pop())
    start = len(names)
    while start and _OWN_VARIABLE.match(names[start - 1]):
        start -= 1
    last = names[start:]
    numbers = [int(name.rsplit("_", 1)[1]) for name in last]
    first = _first_of_one_count(numbers)
    if first is None:
        first = numbers.index(0) if 0 in numbers else len(numbers)
    if first and last[first - 1] == "graph_out_0":
        first -= 1
    return frozenset([*last[first:], *managers])


def _first_of_one_count(numbers: Sequence[int]) -> Optional[int]:
    """Return the index from which the numbers are 0, 1, 2, ... up to the end; else ``None``."""
    first = len(numbers) - 1 - numbers[-1] if numbers else -1
    return first if first >= 0 and list(numbers[first:]) == list(range(len(numbers) - first)) else None
