"""Recognises the code that TorchDynamo writes by what it loads, and says what is known about such code.

Nothing but the code object is needed, so that ``decompile`` gives the same answer wherever it is called. What is
known beyond that of a frame that has just been compiled (its globals, its original) is added in
``dynamo/entries/hints.py``.

The hints rest on what Dynamo does, and are given for no other code:

- Dynamo binds the globals ``__compiled_fn_<n>`` and ``__resume_at_<offset>_<n>``, which it numbers,
  ``__import_<module>`` to modules and ``__builtins_dict___<n>`` to the builtins, before the code that loads them runs
  for the first time. It never binds them to something else or unbinds them while that code is in use. A global that the
  code itself binds, or a function in it, is the user's.
- Its own local variables are ``graph_out_*`` and ``tmp_*``, numbered from 0, and ``___context_manager_*_*``. In
  ``co_varnames`` they stand behind those of the function.
- What it adds has no columns, which all code has that CPython (since 3.11) compiled from text: a user's function that
  is called with such a name, or has such variables, is not taken for Dynamo's. Before 3.11, and with
  ``-X no_debug_ranges``, only the names are left, and they are no evidence: ``shown_by_columns`` says which it is.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import AbstractSet, FrozenSet, Iterator, Optional, Sequence, Set

from depyf.bytecode.code import Code, is_code, may_bind_globals
from depyf.lazy_pattern import re_compile
from depyf.normal.lowering import lower
from depyf.normal.ops import Instr, Op
from depyf.result import Hints

RESUME_PREFIX = "__resume_at_"
"""How the globals begin that transformed code goes on in."""

_GRAPH = r"__compiled_fn_\d+(_[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12})?"
_RESUME = rf"{RESUME_PREFIX}\d+_\d+"
_WRITTEN_BY_DYNAMO = re_compile(rf"({_GRAPH}|{_RESUME}|__import_torch_dot__dynamo_\w+)\Z")
_INSTALLED = re_compile(rf"({_GRAPH}|{_RESUME}|__builtins_dict___\d+(_c\w+)?)\Z")
_IMPORTED = "__import_"
_CONTEXT_MANAGER = re_compile(r"___context_manager_\d+_\d+\Z")
_OWN_VARIABLE = re_compile(r"(?:graph_out|tmp)_(\d+)\Z")


def hints_of(code: Code) -> Optional[Hints]:
    """The hints for ``code`` if Dynamo wrote it, ``None`` for any other code."""
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


def shown_by_columns(code: Code) -> bool:
    """Whether it is sure that no compiler wrote what has no columns in ``code``: it writes columns.

    Either other instructions of ``code`` have them, or what this process compiles has them and ``code`` stands on
    a single line, as code does that Dynamo made as a whole.
    """
    if not isinstance(code, CodeType):
        return False
    spans = [instr.span for instr in lower(code).ops]
    if any(span is not None and span.column is not None for span in spans):
        return True
    one_line = len({span.line for span in spans if span is not None}) <= 1
    return one_line and any(map(_has_columns, lower(compile("a", "<probe>", "eval")).ops))


def installed_globals(code: Code) -> FrozenSet[str]:
    """The globals that Dynamo installs once for ``code``, which it wrote, and never changes."""
    names = {name for name in code.co_names if _INSTALLED.match(name) or _is_module(name)}
    return frozenset(names - _bound_globals(code) if names else ())


def loaded_globals(code: Code, names: AbstractSet[str]) -> Set[str]:
    """Those of ``names`` that ``code`` loads as globals."""
    return {instr.arg[1] for instr in lower(code).ops if _loads_global(instr, names)}


def _is_module(name: str) -> bool:
    """Whether ``name`` is what Dynamo calls a module that is there: ``__import_torch_dot_nn`` is ``torch.nn``."""
    module = name[len(_IMPORTED) :].replace("_dot_", ".") if name.startswith(_IMPORTED) else ""
    return module in sys.modules or module.partition(".")[0] == "torch"


def _bound_globals(code: Code) -> Set[str]:
    """The globals that ``code`` or code nested in it stores or deletes."""
    return {
        instr.arg[1]
        for each in _walk(code)
        if may_bind_globals(each)
        for instr in lower(each).ops
        if instr.op in (Op.STORE, Op.DELETE) and instr.arg[0] == "global"
    }


def _walk(code: Code) -> Iterator[Code]:
    yield code
    for constant in code.co_consts:
        if is_code(constant):
            yield from _walk(constant)


def _loads_global(instr: Instr, names: AbstractSet[str]) -> bool:
    return instr.op is Op.LOAD and instr.arg[0] == "global" and instr.arg[1] in names


def _has_columns(instr: Instr) -> bool:
    return instr.span is not None and instr.span.column is not None


def _own_variables(code: Code) -> FrozenSet[str]:
    """The variables that Dynamo made for itself: the last ones, as far as they are numbered from 0.

    One counter numbers them all; in older versions of PyTorch each name has its own.
    """
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
    """Where the numbers begin that are 0, 1, 2 and so on up to the end."""
    first = len(numbers) - 1 - numbers[-1] if numbers else -1
    return first if first >= 0 and list(numbers[first:]) == list(range(len(numbers) - first)) else None
