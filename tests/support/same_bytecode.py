"""Whether the compiler wrote the same for two sources, up to what is never reached and to lines.

This is what tells a mutant from a change that was compiled away. It shares nothing with the decompiler: instructions
come from ``dis``, and two code objects are only the same here if they list the same ones.
"""

from __future__ import annotations

import dis
import inspect
from types import CodeType
from typing import Any, Dict, Hashable, List, Optional, Set, Tuple

_ENDS = frozenset({
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_ABSOLUTE", "JUMP_FORWARD", "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
})  # fmt: skip
_NOTHING = frozenset({"NOP", "CACHE", "EXTENDED_ARG", "NOT_TAKEN"})
_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs, *getattr(dis, "hasjump", ())])
_NAMED = frozenset([*dis.hasname, *dis.haslocal, *dis.hasfree, *dis.hasconst, *dis.hascompare])

Handler = Optional[Tuple[int, int, bool]]


def same_bytecode(one: CodeType, other: CodeType) -> bool:
    return shape(one) == shape(other)


def shape(code: CodeType) -> Hashable:
    """All that counts in a code object, for comparison."""
    arguments = code.co_argcount + code.co_kwonlyargcount
    arguments += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    documented = bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")
    first = code.co_consts[0] if documented and code.co_consts else None
    return (
        code.co_name,
        getattr(code, "co_qualname", None),
        code.co_flags,
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        code.co_varnames[:arguments],
        code.co_freevars,
        code.co_cellvars,
        first if isinstance(first, str) else None,
        _instructions(code),
    )


def _instructions(code: CodeType) -> Hashable:
    listed: List[dis.Instruction] = []
    position: Dict[int, int] = {}
    for instruction in dis.get_instructions(code):
        position[instruction.offset] = len(listed)  # that of the next real one, if it is none
        if instruction.opname not in _NOTHING:
            listed.append(instruction)
    handlers = _handlers(code, listed, position)
    reached = _reached(listed, position, handlers)
    number = {index: at for at, index in enumerate(sorted(reached))}
    shown: List[Hashable] = []
    for index in sorted(reached):
        handler = handlers[index]
        guarded = None if handler is None else (number[handler[0]], *handler[1:])
        shown.append((listed[index].opname, _argument(listed[index], position, number), guarded))
    return tuple(shown)


def _argument(instruction: dis.Instruction, position: Dict[int, int], number: Dict[int, int]) -> Hashable:
    if instruction.opcode in _JUMPS:
        return number[position[instruction.argval]]
    return _constant(instruction.argval) if instruction.opcode in _NAMED else instruction.arg


def _handlers(code: CodeType, listed: List[dis.Instruction], position: Dict[int, int]) -> List[Handler]:
    """Where each instruction goes when it raises (3.11: before, that is told by instructions)."""
    handlers: List[Handler] = [None] * len(listed)
    parse: Any = getattr(dis, "_parse_exception_table", lambda code: [])
    for entry in parse(code):
        for index, instruction in enumerate(listed):
            if entry.start <= instruction.offset < entry.end:
                handlers[index] = (position[entry.target], entry.depth, entry.lasti)
    return handlers


def _reached(listed: List[dis.Instruction], position: Dict[int, int], handlers: List[Handler]) -> Set[int]:
    reached: Set[int] = set()
    todo = [0]
    while todo:
        index = todo.pop()
        if index in reached or index >= len(listed):
            continue
        reached.add(index)
        instruction, handler = listed[index], handlers[index]
        if instruction.opname not in _ENDS:
            todo.append(index + 1)
        if instruction.opcode in _JUMPS:
            todo.append(position[instruction.argval])
        if handler is not None:
            todo.append(handler[0])
    return reached


def _constant(value: Any) -> Hashable:
    """``repr`` and type tell apart what ``==`` does not; sets count in the order in which they are gone through."""
    if isinstance(value, CodeType):
        return shape(value)
    if isinstance(value, (tuple, frozenset)):
        return (type(value), tuple(_constant(item) for item in value))
    return (type(value), repr(value))
