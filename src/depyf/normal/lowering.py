"""Bytecode of any supported version to the normal form.

A version is a table from opcode names to rules (``v311.py`` ...). A rule turns one instruction into a few drafts. What
remains is the same for all versions: undo what the compiler spread over several instructions, resolve jumps,
attach handlers, drop what can't be reached.
"""

from __future__ import annotations

import importlib
from bisect import bisect_left
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, Callable, Dict, List, Optional, Tuple

from depyf.bytecode.instructions import Decoded, ExceptionRange, Instruction, decode
from depyf.bytecode.opcode_table import Version
from depyf.normal.ops import ENDS, Handler, Instr, NormalCode, Op
from depyf.normal.undo import join_async_for, join_send_loops, skip_cleanup_handlers


@dataclass
class Draft:
    """An operation whose jump and handler are still byte offsets. ``op`` may be a helper name that a step undoes."""

    op: Any
    arg: Any = None
    target: Optional[int] = None
    offset: int = -1
    line: Optional[int] = None
    handler: Optional[ExceptionRange] = None


class Lowering:
    """What a rule may look at: the code object's names, and the little state that prefixes leave behind."""

    def __init__(self, decoded: Decoded) -> None:
        code = decoded.code
        self.code = code
        self.table = decoded.table
        cells = [name for name in code.co_cellvars if name not in code.co_varnames]
        self.locals_plus: Tuple[str, ...] = (*code.co_varnames, *cells, *code.co_freevars)
        self.cells = frozenset((*code.co_cellvars, *code.co_freevars))
        self.keyword_names: Tuple[str, ...] = ()

    def take_keyword_names(self) -> Tuple[str, ...]:
        names, self.keyword_names = self.keyword_names, ()
        return names


Rule = Callable[[Lowering, Instruction], List[Draft]]


def lower(code: CodeType, version: Optional[Version] = None) -> NormalCode:
    """The normal form of ``code`` (bytecode of ``version``, default: the running interpreter's).

    Raises ``ValueError`` when the bytecode is malformed and ``NotImplementedError`` for an unsupported version.
    """
    decoded = decode(code, version)
    drafts = _draft(decoded)
    drafts = join_send_loops(drafts)
    drafts = join_async_for(drafts)
    drafts = skip_cleanup_handlers(drafts)
    return NormalCode(code, _resolve(code, drafts), _module(decoded.version).COPIES_LOOP_TESTS)


def _module(version: Version) -> Any:
    try:
        return importlib.import_module(f"depyf.normal.v{version[0]}{version[1]}")
    except ModuleNotFoundError:
        raise NotImplementedError(f"depyf can't lower bytecode of CPython {version[0]}.{version[1]} yet") from None


def _draft(decoded: Decoded) -> List[Draft]:
    rules: Dict[str, Rule] = _module(decoded.version).RULES
    lowering = Lowering(decoded)
    drafts: List[Draft] = []
    ranges = sorted(decoded.exceptions, key=lambda entry: entry.start)
    position = 0
    for instruction in decoded.instructions:
        rule = rules.get(instruction.name)
        if rule is None:
            raise ValueError(
                f"{decoded.code.co_name}: no rule for {instruction.name} at offset {instruction.offset} "
                f"(CPython {decoded.version[0]}.{decoded.version[1]})"
            )
        while position < len(ranges) and ranges[position].end <= instruction.offset:
            position += 1
        covering = ranges[position] if position < len(ranges) and ranges[position].start <= instruction.offset else None
        for draft in rule(lowering, instruction):
            draft.offset, draft.line, draft.handler = instruction.offset, instruction.line, covering
            drafts.append(draft)
    return drafts


def _resolve(code: CodeType, drafts: List[Draft]) -> Tuple[Instr, ...]:
    """Byte offsets to indices; only what can be reached stays."""
    first_at: Dict[int, int] = {}
    for index in range(len(drafts) - 1, -1, -1):
        first_at[drafts[index].offset] = index
    offsets = sorted(first_at)
    index_of = _IndexOf(code, first_at, offsets, len(drafts))
    reached = _reachable(code, drafts, index_of)
    new_index: Dict[int, int] = {}
    for index in range(len(drafts)):
        if index in reached:
            new_index[index] = len(new_index)
    handlers: Dict[ExceptionRange, Handler] = {}
    ops: List[Instr] = []
    for index, draft in enumerate(drafts):
        if index not in reached:
            continue
        handler = None
        if draft.handler is not None:
            entry = draft.handler
            key = replace(entry, start=0, end=0)
            if key not in handlers:
                handlers[key] = Handler(new_index[index_of(entry.target)], entry.depth, entry.lasti)
            handler = handlers[key]
        target = None if draft.target is None else new_index[index_of(draft.target)]
        ops.append(Instr(draft.op, draft.arg, draft.offset, draft.line, target, handler))
    return tuple(ops)


class _IndexOf:
    """The index of the first draft at or behind a byte offset (an instruction may lower to nothing)."""

    def __init__(self, code: CodeType, first_at: Dict[int, int], offsets: List[int], count: int) -> None:
        self.code, self.first_at, self.offsets, self.count = code, first_at, offsets, count

    def __call__(self, offset: int) -> int:
        found = self.first_at.get(offset)
        if found is not None:
            return found
        position = bisect_left(self.offsets, offset)
        if position == len(self.offsets):
            raise ValueError(f"{self.code.co_name}: control runs off the end of the bytecode at offset {offset}")
        return self.first_at[self.offsets[position]]


def _reachable(code: CodeType, drafts: List[Draft], index_of: _IndexOf) -> set[int]:
    seen: set[int] = set()
    todo = [0]
    while todo:
        index = todo.pop()
        while index not in seen:
            if index >= len(drafts):
                raise ValueError(f"{code.co_name}: control runs off the end of the bytecode")
            seen.add(index)
            draft = drafts[index]
            if not isinstance(draft.op, Op):
                raise ValueError(
                    f"{code.co_name}: {draft.op} at offset {draft.offset} stands outside its usual pattern"
                )
            if draft.target is not None:
                todo.append(index_of(draft.target))
            if draft.handler is not None:
                todo.append(index_of(draft.handler.target))
            if draft.op in ENDS:
                break
            index += 1
    return seen
