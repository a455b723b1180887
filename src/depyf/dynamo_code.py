"""Recognises the code that TorchDynamo writes by what it loads, and says what is known about such code.

Nothing but the code object is needed, so that ``decompile`` gives the same answer wherever it is called. What is
known beyond that of a frame that has just been compiled (its globals, its original) is added in ``dynamo/hints.py``.

The hints rest on what Dynamo does, and are given for no other code:

- Dynamo binds ``__compiled_fn_*`` and ``__resume_at_*`` to names that it makes up and numbers, ``__import_*`` to
  modules, ``__builtins_dict__*`` to the builtins, in the globals of the function, before the code that loads them runs
  for the first time. It never binds them to something else or unbinds them while that code is in use.
- Its own local variables are ``graph_out_*`` and ``tmp_*``, numbered from 0, and ``___context_manager_*_*``. In
  ``co_varnames`` they stand behind those of the function.
- What it adds has no columns, which all code has that CPython (since 3.11) compiled from text: a user's function that
  is called with such a name, or has such variables, is not taken for Dynamo's. Before 3.11, and with
  ``-X no_debug_ranges``, the names decide alone.
"""

from __future__ import annotations

import re
from typing import AbstractSet, FrozenSet, Optional, Sequence

from depyf.bytecode.code import Code
from depyf.normal.lowering import lower
from depyf.normal.ops import Op
from depyf.result import Hints

RESUME_PREFIX = "__resume_at_"
"""How the globals begin that transformed code goes on in."""

_GRAPH = r"__compiled_fn_\d+(_[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12})?"
_WRITTEN_BY_DYNAMO = re.compile(rf"({_GRAPH}|{RESUME_PREFIX}\d+_\d+|__import_torch_dot__dynamo_\w+)$")
_INSTALLED = ("__compiled_fn_", RESUME_PREFIX, "__import_", "__builtins_dict__")
_CONTEXT_MANAGER = re.compile(r"___context_manager_\d+_\d+$")
_OWN_VARIABLE = re.compile(r"(?:graph_out|tmp)_(\d+)$")


def hints_of(code: Code) -> Optional[Hints]:
    """The hints for ``code`` if Dynamo wrote it, ``None`` for any other code."""
    names = frozenset(filter(_WRITTEN_BY_DYNAMO.match, code.co_names))
    if not names or not _loaded_without_columns(code, names):
        return None
    return Hints(droppable=_own_variables(code), stable_globals=installed_globals(code))


def _loaded_without_columns(code: Code, names: AbstractSet[str]) -> bool:
    """Whether ``names`` are globals that ``code`` only loads, and no compiler wrote that: it says in which columns."""
    ops = lower(code).ops
    if any(instr.op in (Op.STORE, Op.DELETE) and instr.arg[1] in names for instr in ops):
        return False
    spans = [instr.span for instr in ops if instr.op is Op.LOAD and instr.arg[0] == "global" and instr.arg[1] in names]
    return any(span is None or span.column is None for span in spans)


def installed_globals(code: Code) -> FrozenSet[str]:
    """The globals that Dynamo installs once for ``code``, which it wrote, and never changes."""
    return frozenset(name for name in code.co_names if name.startswith(_INSTALLED))


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
