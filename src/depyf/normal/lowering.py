"""Lower bytecode of any supported version to the normal form.

A version is a ``Dialect`` (``v311.py`` ...): a table from opcode names to rules, each of which turns one instruction
into a few drafts, and the steps that merge the sequences that this compiler emits for one operation. The rest is the
same for all versions: resolve jumps, attach handlers, drop unreachable operations.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from functools import lru_cache
from typing import Callable, Dict, List, NoReturn, Optional, Sequence, Tuple

from depyf.bytecode.code import Code
from depyf.bytecode.instructions import Decoded, ExceptionRange, Instruction, decode
from depyf.bytecode.opcode_table import Version
from depyf.normal.conventions import check_conventions
from depyf.normal.draft import Dialect, Draft, IndexOf, Lowering, Source, Template
from depyf.normal.inlined import InlinedCode
from depyf.normal.ops import Handler, Instr, NormalCode
from depyf.normal.stack_check import checked_depths


def lower(code: Code) -> NormalCode:
    """Return the normal form of ``code``, whichever version compiled it.

    Raises ``ValueError`` when the bytecode is malformed and ``NotImplementedError`` for an unsupported version.
    """
    if isinstance(code, InlinedCode):
        dialect = dialect_of(code.version)
        return NormalCode(
            code,
            code.ops,
            dialect.copies_loop_tests,
            threads_tests=dialect.threads_tests,
            threads_operands=dialect.threads_operands,
            open_tests=code.open_tests,
        )
    decoded = decode(code)
    open_tests = check_conventions(decoded)
    dialect = dialect_of(decoded.version)
    lowering = _draft(decoded, dialect)
    drafts = lowering.drafts
    for step, needed in dialect.steps:
        if needed is None or not needed.isdisjoint(decoded.names):
            drafts = step(drafts)
    normal = NormalCode(
        code,
        _resolve(drafts),
        dialect.copies_loop_tests,
        dialect.forgets_behind_jumps,
        tuple(lowering.idle),
        dialect.threads_tests,
        dialect.threads_operands,
        open_tests,
    )
    depths = checked_depths(normal)  # raises where the stack is used as no compiler would
    if -1 not in depths:
        return normal
    return replace(normal, ops=_only(normal.ops, [index for index, depth in enumerate(depths) if depth >= 0]))


@lru_cache(maxsize=None)
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
    rules, drafts, tables = dialect.rules, lowering.drafts, lowering.tables
    handlers = _Handlers(decoded.exceptions)
    handler, until = handlers.of(0, inherited=False)
    instruction = None
    try:
        for index, instruction in enumerate(decoded.instructions):
            offset, _, name, number, target, span = instruction
            if offset >= until:
                handler, until = handlers.of(offset, inherited=lowering.left_to_next)
                lowering.left_to_next = False
            rule = rules[name]
            if isinstance(rule, Template):
                op, source, arg = rule
                if source is not Source.GIVEN:
                    if source is Source.VARIABLES:
                        op, arg = (tables.get(arg) or lowering.table_of(arg))[number]
                    elif source is Source.TABLE:
                        arg = (tables.get(arg) or lowering.table_of(arg))[number]
                    else:
                        arg = number if source is Source.OWN else (arg, number)
                drafts.append(Draft(op, arg, offset, span, target, handler))
            elif rule is not None:
                lowering.index = index
                for draft in rule(lowering, instruction):
                    draft.offset, draft.span, draft.handler = offset, span, handler
                    drafts.append(draft)
                if lowering.left_to_next:
                    until = offset
            elif name == "NOP" and span is not None:
                lowering.index = index
                if not _is_compared_none(lowering):
                    lowering.idle.append(span)
    except (IndexError, KeyError) as error:  # rules look up names, constants and variables by the argument
        assert instruction is not None
        _refuse(decoded, instruction, error)
    return lowering


def _is_compared_none(lowering: Lowering) -> bool:
    """Return whether a NOP is the ``None`` of ``a is None`` on a line of its own, which the jump compares with."""
    following = lowering.neighbour(1)
    return following.startswith("POP_JUMP") and following.endswith("NONE")


def _refuse(decoded: Decoded, instruction: Instruction, error: LookupError) -> NoReturn:
    place = f"{instruction.name} at offset {instruction.offset}"
    if isinstance(error, IndexError):
        raise ValueError(
            f"{decoded.code.co_name}: {place} has the argument {instruction.arg}, which is out of range"
        ) from None
    version = ".".join(map(str, decoded.version))
    raise ValueError(f"{decoded.code.co_name}: no rule for {place} (CPython {version})") from None


class _Handlers:
    """The handlers of instructions, which are looked up in order. Targets are byte offsets."""

    def __init__(self, entries: Sequence[ExceptionRange]) -> None:
        self._entries = sorted(entries, key=lambda entry: entry.start)
        known: Dict[Tuple[int, int, bool], Handler] = {}
        keys = [(entry.target, entry.depth, entry.lasti) for entry in self._entries]
        self._handlers = [known.setdefault(key, Handler(*key)) for key in keys]
        self._position = 0
        self._before: Optional[Handler] = None

    def of(self, offset: int, *, inherited: bool) -> Tuple[Optional[Handler], int]:
        """Return the handler of the instruction at ``offset``, or of the one before it, and the offset up to which
        instructions have it."""
        entries, position = self._entries, self._position
        while position < len(entries) and entries[position].end <= offset:
            position += 1
        self._position = position
        before, self._before, until = self._before, None, sys.maxsize
        if position < len(entries):
            until = entries[position].start
            if until <= offset:
                self._before, until = self._handlers[position], entries[position].end
        return (before, offset + 1) if inherited else (self._before, until)


def _resolve(drafts: List[Draft]) -> Tuple[Instr, ...]:
    """Resolve byte offsets to indices. The drafts become the operations."""
    _renumber(drafts, IndexOf(drafts))
    return tuple(drafts)


def _renumber(ops: Sequence[Instr], number: Callable[[int], int]) -> None:
    """Replace the targets of ``ops`` and of their handlers by their numbers."""
    for instr in [instr for instr in ops if instr.target is not None]:
        assert instr.target is not None
        instr.target = number(instr.target)
    handlers: Dict[Tuple[int, int, bool], Handler] = {}
    entry: Optional[Handler] = None
    handler: Optional[Handler] = None
    for instr in [instr for instr in ops if instr.handler is not None]:
        if instr.handler is not entry:
            entry = instr.handler
            assert entry is not None
            key = entry.target, entry.depth, entry.lasti
            handler = handlers.get(key)
            if handler is None:
                handler = handlers[key] = Handler(number(entry.target), entry.depth, entry.lasti)
        instr.handler = handler


def _only(ops: Tuple[Instr, ...], kept: Sequence[int]) -> Tuple[Instr, ...]:
    """Return the operations with the indices ``kept``; control reaches no others. They are renumbered in place."""
    new_index = dict(zip(kept, range(len(kept))))
    found = tuple([ops[index] for index in kept])
    _renumber(found, new_index.__getitem__)
    return found
