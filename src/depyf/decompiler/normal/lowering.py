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
from typing import Callable, Dict, NoReturn, Optional, Sequence, Tuple

from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.bytecode.instructions import Decoded, ExceptionRange, Instruction, decode
from depyf.decompiler.bytecode.opcode_table import Version
from depyf.decompiler.normal.conventions import check_conventions
from depyf.decompiler.normal.draft import Dialect, Draft, IndexOf, Lowering, Source, Template
from depyf.decompiler.normal.inlined import InlinedCode
from depyf.decompiler.normal.ops import Handler, Instr, NormalCode
from depyf.decompiler.normal.stack_check import checked_depths


def lower(code: Code) -> NormalCode:
    """Return the normal form of ``code``, whichever version compiled it.

    Raises ``ValueError`` when the bytecode is malformed and ``NotImplementedError`` for an unsupported version.
    """
    if isinstance(code, InlinedCode):  # made of operations: there is nothing to decode
        dialect = dialect_of(code.version)
        return NormalCode(
            code,
            code.ops,
            dialect.copies_loop_tests,
            threads_tests=dialect.threads_tests,
            threads_operands=dialect.threads_operands,
            open_tests=code.open_tests,
        )
    # Decode; reject what no compiler emits; one rule for each instruction; then the steps that merge several, skipped
    # where the code has none of the instructions that they are for.
    decoded = decode(code)
    open_tests = check_conventions(decoded)
    dialect = dialect_of(decoded.version)
    lowering = _draft(decoded, dialect)
    drafts = lowering.drafts
    for step, needed in dialect.steps:
        if needed is None or not needed.isdisjoint(decoded.names):
            drafts = step(drafts)
    _renumber(drafts, IndexOf(drafts))  # byte offsets become indices, and the drafts the operations
    normal = NormalCode(
        code,
        tuple(drafts),
        dialect.copies_loop_tests,
        dialect.forgets_after_jumps,
        tuple(lowering.idle),
        dialect.threads_tests,
        dialect.threads_operands,
        open_tests,
    )
    # Reject what uses the stack as no compiler would; drop unreachable operations.
    depths = checked_depths(normal)
    if -1 not in depths:
        return normal
    return replace(normal, ops=_only(normal.ops, [index for index, depth in enumerate(depths) if depth >= 0]))


@lru_cache(maxsize=None)
def dialect_of(version: Version) -> Dialect:
    """Return the dialect of CPython ``version``. Raises ``NotImplementedError`` for an unsupported one."""
    try:
        module = importlib.import_module(f"depyf.decompiler.normal.v{version[0]}{version[1]}")
    except ModuleNotFoundError:
        raise NotImplementedError(f"depyf can't lower bytecode of CPython {version[0]}.{version[1]} yet") from None
    dialect: Dialect = module.DIALECT
    return dialect


def _draft(decoded: Decoded, dialect: Dialect) -> Lowering:
    """Apply the rules of ``dialect``: this runs for each instruction, so that templates are expanded here."""
    lowering = Lowering(decoded)
    rules, drafts, tables = dialect.rules, lowering.drafts, lowering.tables
    handlers = _Handlers(decoded.exceptions)
    handler, until = handlers.of(0, inherited=False)
    instruction = None
    try:
        for index, instruction in enumerate(decoded.instructions):
            offset, _, name, number, target, span = instruction
            if offset >= until:  # another handler, or none, from here on
                handler, until = handlers.of(offset, inherited=lowering.left_to_next)
                lowering.left_to_next = False
            rule = rules[name]
            if isinstance(rule, Template):  # one operation, whose argument comes from where ``source`` says
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
                if lowering.left_to_next:  # the next instruction gets the handler of this one: look that up again
                    until = offset
            elif name == "NOP" and span is not None:
                # The ``None`` of ``a is None`` on a line of its own also leaves a NOP: the jump compares with None.
                lowering.index = index
                following = lowering.neighbour(1)
                if not (following.startswith("POP_JUMP") and following.endswith("NONE")):
                    lowering.idle.append(span)
    except (IndexError, KeyError) as error:  # rules look up names, constants and variables by the argument
        assert instruction is not None
        _refuse(decoded, instruction, error)
    return lowering


def _refuse(decoded: Decoded, instruction: Instruction, error: LookupError) -> NoReturn:
    where = f"{instruction.name} at offset {instruction.offset}"
    if isinstance(error, IndexError):
        raise ValueError(
            f"{decoded.code.co_name}: {where} has the argument {instruction.arg}, which is out of range"
        ) from None
    version = ".".join(map(str, decoded.version))
    raise ValueError(f"{decoded.code.co_name}: no rule for {where} (CPython {version})") from None


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
        # The ranges are sorted and disjoint, and offsets increase from call to call: one pass over both.
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


def _renumber(ops: Sequence[Instr], number: Callable[[int], int]) -> None:
    """Replace the targets of ``ops`` and of their handlers by their numbers."""
    for instr in [instr for instr in ops if instr.target is not None]:
        assert instr.target is not None
        instr.target = number(instr.target)
    handlers: Dict[Tuple[int, int, bool], Handler] = {}
    entry: Optional[Handler] = None
    handler: Optional[Handler] = None
    for instr in [instr for instr in ops if instr.handler is not None]:
        if instr.handler is not entry:  # equal handlers stay one object
            entry = instr.handler
            assert entry is not None
            key = entry.target, entry.depth, entry.lasti
            handler = handlers.get(key)
            if handler is None:
                handler = handlers[key] = Handler(number(entry.target), entry.depth, entry.lasti)
        instr.handler = handler


def _only(ops: Tuple[Instr, ...], kept: Sequence[int]) -> Tuple[Instr, ...]:
    """Return the operations with the indices ``kept``, the reachable ones; change their targets to the new indices."""
    new_index = dict(zip(kept, range(len(kept))))
    found = tuple([ops[index] for index in kept])
    _renumber(found, new_index.__getitem__)
    return found
