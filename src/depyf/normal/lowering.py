"""Lower bytecode of any supported version to the normal form.

A version is a ``Dialect`` (``v311.py`` ...): a table from opcode names to rules, each of which turns one instruction
into a few drafts, and the steps that merge the sequences that this compiler emits for one operation. The rest is the
same for all versions: resolve jumps, attach handlers, drop unreachable operations.
"""

from __future__ import annotations

import importlib
from typing import Dict, List, Optional, Tuple

from depyf.bytecode.code import Code
from depyf.bytecode.instructions import Decoded, ExceptionRange, decode
from depyf.bytecode.opcode_table import Version
from depyf.normal.conventions import check_conventions
from depyf.normal.draft import Dialect, Draft, IndexOf, Lowering
from depyf.normal.inlined import InlinedCode
from depyf.normal.ops import ENDS, Handler, Instr, NormalCode, Op
from depyf.normal.stack_check import stack_depths


def lower(code: Code) -> NormalCode:
    """Return the normal form of ``code``, whichever version compiled it.

    Raises ``ValueError`` when the bytecode is malformed and ``NotImplementedError`` for an unsupported version.
    """
    if isinstance(code, InlinedCode):
        return NormalCode(code, code.ops, dialect_of(code.version).copies_loop_tests)
    decoded = decode(code)
    check_conventions(decoded)
    dialect = dialect_of(decoded.version)
    lowering = _draft(decoded, dialect)
    drafts = lowering.drafts
    for step in dialect.steps:
        drafts = step(drafts)
    normal = NormalCode(
        code,
        _resolve(code, drafts),
        dialect.copies_loop_tests,
        dialect.forgets_behind_jumps,
        tuple(lowering.idle),
    )
    stack_depths(normal)  # raises where the stack is used as no compiler would
    return normal


def dialect_of(version: Version) -> Dialect:
    """Return the dialect of CPython ``version``. Raises ``NotImplementedError`` for an unsupported one."""
    try:
        module = importlib.import_module(f"depyf.normal.v{version[0]}{version[1]}")
    except ModuleNotFoundError:
        raise NotImplementedError(f"depyf can't lower bytecode of CPython {version[0]}.{version[1]} yet") from None
    dialect: Dialect = module.DIALECT
    return dialect


def _draft(decoded: Decoded, dialect: Dialect) -> Lowering:
    lowering = Lowering(decoded)
    ranges = sorted(decoded.exceptions, key=lambda entry: entry.start)
    position = 0
    inherited: Optional[ExceptionRange] = None
    for lowering.index, instruction in enumerate(decoded.instructions):
        rule = dialect.rules.get(instruction.name)
        if rule is None:
            raise ValueError(
                f"{decoded.code.co_name}: no rule for {instruction.name} at offset {instruction.offset} "
                f"(CPython {decoded.version[0]}.{decoded.version[1]})"
            )
        while position < len(ranges) and ranges[position].end <= instruction.offset:
            position += 1
        covering = ranges[position] if position < len(ranges) and ranges[position].start <= instruction.offset else None
        handler = inherited if lowering.left_to_next else covering
        lowering.left_to_next = False
        try:
            made = rule(lowering, instruction)
        except IndexError:  # rules look up names, constants and variables by the argument
            raise ValueError(
                f"{decoded.code.co_name}: {instruction.name} at offset {instruction.offset} has the argument "
                f"{instruction.arg}, which stands for nothing"
            ) from None
        if not made and instruction.span is not None:
            lowering.idle.append(instruction.span)
        for draft in made:
            draft.offset, draft.span, draft.handler = instruction.offset, instruction.span, handler
            lowering.drafts.append(draft)
        inherited = covering
    return lowering


def _resolve(code: Code, drafts: List[Draft]) -> Tuple[Instr, ...]:
    """Resolve byte offsets to indices; keep only reachable operations."""
    index_of = IndexOf(drafts)
    reached = _reachable(code, drafts, index_of)
    new_index: Dict[int, int] = {}
    for index in range(len(drafts)):
        if index in reached:
            new_index[index] = len(new_index)
    handlers: Dict[Tuple[int, int, bool], Handler] = {}
    ops: List[Instr] = []
    for index, draft in enumerate(drafts):
        if index not in reached:
            continue
        handler = None
        if draft.handler is not None:
            entry = draft.handler
            key = entry.target, entry.depth, entry.lasti
            if key not in handlers:
                handlers[key] = Handler(new_index[index_of(entry.target)], entry.depth, entry.lasti)
            handler = handlers[key]
        target = None if draft.target is None else new_index[index_of(draft.target)]
        ops.append(Instr(draft.op, draft.arg, draft.offset, draft.span, target, handler))
    return tuple(ops)


def _reachable(code: Code, drafts: List[Draft], index_of: IndexOf) -> set[int]:
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
