"""Reject bytecode that breaks the interpreter's assumptions, before rules give it another meaning.

A lowering rule gives an instruction the meaning that it has where compilers emit it. Handmade bytecode can have the
instruction elsewhere: a generator that is made in the middle of its code, a cell for a variable that is no cell
variable, a test of a value that is no bool. The normal form would then differ from what the interpreter does.
"""

from __future__ import annotations

import inspect
from typing import AbstractSet, Dict, FrozenSet, List, Optional, Set, Tuple

from depyf.decompiler.bytecode.code import Code, fast_slots, version_of
from depyf.decompiler.bytecode.instructions import Decoded, Instruction

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_ENDS = frozenset({
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT", "INTERPRETER_EXIT",
})  # fmt: skip
_TRUTH_TESTS = frozenset({"POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT"})
_TRUTHS = frozenset({
    "TO_BOOL", "IS_OP", "CONTAINS_OP", "UNARY_NOT", "CHECK_EXC_MATCH", "MATCH_MAPPING", "MATCH_SEQUENCE",
})  # fmt: skip
_NEVER_RAISE = frozenset({
    "NOP", "RESUME", "NOT_TAKEN", "POP_TOP", "COPY", "SWAP", "PUSH_NULL", "LOAD_CONST", "LOAD_SMALL_INT",
    "LOAD_COMMON_CONSTANT", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "RETURN_VALUE",
    "RETURN_CONST", "END_FOR", "POP_ITER", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE",
})  # fmt: skip
_LENGTHS = (["GET_LEN", "LOAD_SMALL_INT"], ["GET_LEN", "LOAD_CONST"])
"""Two numbers, whose comparison is a bool."""
_FORMATS = (["LOAD_FAST", "LOAD_SMALL_INT"], ["LOAD_FAST_BORROW", "LOAD_SMALL_INT"])
"""Also two numbers, for the compiler: the first is the requested format of annotations."""
_STOP_ITERATION = "STOPITERATION_ERROR"


def check_conventions(decoded: Decoded) -> Optional[Tuple[int, ...]]:
    """Raise ``ValueError`` where ``decoded`` uses an instruction as no compiler of its version would. Return the
    offsets of the tests that may let a StopIteration out of a generator; ``None`` if all operations may."""
    opcodes = decoded.table.opcodes
    names = decoded.names
    if "RETURN_GENERATOR" in opcodes:
        _check_beginning(decoded, names)
    elif "MAKE_FUNCTION" in names:
        _check_names_of_functions(decoded)
    if "KW_NAMES" not in names and "END_FOR" not in opcodes and "TO_BOOL" not in opcodes:
        return ()
    left_out: Optional[Tuple[int, ...]] = ()
    jumps = [instruction.target for instruction in decoded.instructions if instruction.target is not None]
    targets = frozenset(jumps + [entry.target for entry in decoded.exceptions])
    if "KW_NAMES" in names:
        _check_keyword_names(decoded, targets)
    if "END_FOR" in opcodes:
        _check_ends_of_loops(decoded, targets)
        left_out = _check_stop_iteration(decoded)
    if "TO_BOOL" in opcodes:
        _check_truths(decoded, targets)
    return left_out


def _refused(code: Code, instruction: Instruction, why: str) -> ValueError:
    return ValueError(f"{code.co_name}: {instruction.name} at offset {instruction.offset} {why}")


def _check_beginning(decoded: Decoded, names: AbstractSet[str]) -> None:
    """Check that code makes its cells first, and then its generator if it is one (3.11 and later)."""
    # COPY_FREE_VARS n; MAKE_CELL x; ...; RETURN_GENERATOR; POP_TOP; RESUME
    code, instructions = decoded.code, decoded.instructions
    start = 0
    cells = []
    variables = fast_slots(code) if "MAKE_CELL" in names else ()
    while start < len(instructions) and instructions[start].name in ("MAKE_CELL", "COPY_FREE_VARS", "NOP"):
        if instructions[start].name == "MAKE_CELL":
            if instructions[start].arg >= len(variables):
                raise _refused(
                    code, instructions[start], f"has the argument {instructions[start].arg}, which is out of range"
                )
            cells.append(variables[instructions[start].arg])
        start += 1
    if sorted(cells) != sorted(code.co_cellvars):
        raise ValueError(
            f"{code.co_name}: the bytecode makes cells for {', '.join(cells) or 'no variables'}, and the cell "
            f"variables are {', '.join(code.co_cellvars) or 'none'}"
        )
    late = [each for each in instructions[start:] if each.name == "MAKE_CELL"] if "MAKE_CELL" in names else []
    if late:  # resume functions of Dynamo jump over the start of the code that they continue
        reached = _reached(decoded)
        late = [instruction for instruction in late if instruction.offset in reached]
    if late and "LOAD_FAST_AND_CLEAR" not in decoded.table.opcodes:  # inlined comprehensions make theirs in the middle
        raise _refused(code, late[0], "is not at the start")
    # The generator is made exactly once, and only in code whose flags say so.
    made: List[int] = []
    if "RETURN_GENERATOR" in names:
        made = [index for index, instruction in enumerate(instructions) if instruction.name == "RETURN_GENERATOR"]
    if not code.co_flags & _GENERATORS:
        if made:
            raise _refused(code, instructions[made[0]], "is in a function that is not a generator")
    elif made != [_generator_starts(decoded, start)]:
        raise ValueError(f"{code.co_name}: the generator is not made at the start of the code")


def _reached(decoded: Decoded) -> Set[int]:
    """Return the offsets of the reachable instructions."""
    index_of = {instruction.offset: index for index, instruction in enumerate(decoded.instructions)}
    seen: Set[int] = set()
    todo = [0, *(entry.target for entry in decoded.exceptions)]
    while todo:
        for index in range(index_of[todo.pop()], len(decoded.instructions)):
            instruction = decoded.instructions[index]
            if instruction.offset in seen:
                break
            seen.add(instruction.offset)
            if instruction.target is not None:
                todo.append(instruction.target)
            if instruction.name in _ENDS:
                break
    return seen


def _generator_starts(decoded: Decoded, start: int) -> int:
    """Return where RETURN_GENERATOR belongs. Since 3.15 a generator expression gets its iterator before it."""
    if "GET_YIELD_FROM_ITER" in decoded.table.opcodes or decoded.code.co_varnames[:1] != (".0",):
        return start
    names = [instruction.name for instruction in decoded.instructions[start : start + 3]]
    first = start + (names[:1] == ["RESUME"])
    load, make = decoded.instructions[first : first + 2]
    asks = load.name.startswith("LOAD_FAST") and load.arg == 0 and make.name in ("GET_ITER", "GET_AITER")
    return first + 2 if asks else start


def _check_names_of_functions(decoded: Decoded) -> None:
    """Check that a function's name follows its code object, and that one code object has one name. Before 3.11 a
    function gets its name where it is made, and ``bytecode.nesting`` reads it there."""
    code, instructions = decoded.code, decoded.instructions
    names: Dict[int, object] = {}
    for index, instruction in enumerate(instructions):
        if instruction.name == "MAKE_FUNCTION":
            before = instructions[max(index - 2, 0) : index]
            if [part.name for part in before] != ["LOAD_CONST", "LOAD_CONST"]:
                raise _refused(code, instruction, "has no code object and no name just before it")
            if any(part.arg >= len(code.co_consts) for part in before):
                raise _refused(code, instruction, "has constants before it that are out of range")
            made, name = (code.co_consts[part.arg] for part in before)
            if names.setdefault(id(made), name) != name:
                raise _refused(code, instruction, f"gives another name to the function {names[id(made)]}")


def _check_keyword_names(decoded: Decoded, targets: FrozenSet[int]) -> None:
    """Check that KW_NAMES belongs to the call that follows it (3.11 and 3.12)."""
    for index, instruction in enumerate(decoded.instructions):
        if instruction.name == "KW_NAMES":
            # KW_NAMES; PRECALL; CALL in 3.11, KW_NAMES; CALL in 3.12
            after = [later for later in decoded.instructions[index + 1 : index + 3] if later.name != "RESUME"]
            calls = after[: 2 if after and after[0].name == "PRECALL" else 1]
            if not calls or calls[-1].name != "CALL" or any(call.offset in targets for call in calls):
                raise _refused(decoded.code, instruction, "is not followed by a call")


_POPS_AFTER_LOOPS = (3, 13)
"""Since then the iterator is popped after END_FOR. In 3.12 a POP_TOP there is the ``break`` of an outer loop."""


def _check_ends_of_loops(decoded: Decoded, targets: FrozenSet[int]) -> None:
    """Check that only FOR_ITER reaches END_FOR, and that it jumps nowhere else. Since 3.12 FOR_ITER skips the END_FOR
    that it jumps to (since 3.13 the POP_TOP after it, too)."""
    if decoded.names.isdisjoint(("FOR_ITER", "END_FOR")):
        return
    # FOR_ITER -> 1; ... the body ...; JUMP_BACKWARD; 1: END_FOR; (POP_TOP or POP_ITER since 3.13)
    code, instructions = decoded.code, decoded.instructions
    ends = {instruction.offset for instruction in instructions if instruction.name == "END_FOR"}
    for jump in [instruction for instruction in instructions if instruction.target is not None]:
        if jump.name == "FOR_ITER" and jump.target not in ends:
            raise _refused(code, jump, "does not jump to an END_FOR")
        if jump.target in ends and jump.name != "FOR_ITER":
            raise _refused(code, jump, "jumps to an END_FOR")
    for index in [index for index, instruction in enumerate(instructions) if instruction.name == "END_FOR"]:
        if index == 0 or instructions[index - 1].name not in _ENDS:
            raise _refused(code, instructions[index], "is reached by falling through")
        after = instructions[index + 1 : index + 2] if version_of(code) >= _POPS_AFTER_LOOPS else []
        if after and after[0].name in ("POP_TOP", "POP_ITER") and after[0].offset in targets:
            raise _refused(code, after[0], "belongs to the END_FOR before it, but is a jump target")
    for entry in decoded.exceptions:
        if entry.target in ends:
            raise ValueError(f"{code.co_name}: the END_FOR is an exception handler at offset {entry.target}")


def _check_stop_iteration(decoded: Decoded) -> Optional[Tuple[int, ...]]:
    """Check that generators, and only generators, have the handler that makes a StopIteration a RuntimeError (3.12 and
    later). Return the offsets of the tests that the compiler leaves out of it; ``None`` for a lambda, which has no such
    handler."""
    code, table = decoded.code, decoded.table
    if not code.co_flags & _GENERATORS and "CALL_INTRINSIC_1" not in decoded.names:
        return ()
    handlers = {
        instruction.offset
        for instruction in decoded.instructions
        if instruction.name == "CALL_INTRINSIC_1"
        and table.unary_intrinsics[instruction.arg : instruction.arg + 1] == [_STOP_ITERATION]
    }
    # No generator: no handler. A lambda that yields, and a module that awaits, have none either.
    if not code.co_flags & _GENERATORS:
        if handlers:
            raise ValueError(
                f"{code.co_name}: a function that is not a generator turns a StopIteration into another error"
            )
        return ()
    if code.co_name == "<lambda>" and not handlers:
        return None
    if not code.co_flags & inspect.CO_OPTIMIZED:
        if handlers:
            raise ValueError(f"{code.co_name}: a module turns a StopIteration into another error")
        return ()
    # Any other generator: all that may raise between its start and the handler has to be covered.
    started = False
    guarded, left_out = _guarded(decoded), []
    for index, instruction in enumerate(decoded.instructions):
        if not started:
            started = decoded.instructions[index - 1].name == "RETURN_GENERATOR"
            continue  # the POP_TOP after it is as silent as the code before it
        if instruction.offset in handlers or decoded.instructions[index - 1].offset in handlers:
            continue
        silent = "TO_BOOL" in decoded.table.opcodes and instruction.name in _TRUTH_TESTS  # since 3.13: of a bool
        if instruction.name not in _NEVER_RAISE and not silent:
            if instruction.offset not in guarded:
                if not _is_threaded_test(decoded, index):
                    raise _refused(code, instruction, "may let a StopIteration out of a generator")
                left_out.append(decoded.instructions[index + 1].offset)
    return tuple(left_out)


def _is_threaded_test(decoded: Decoded, index: int) -> bool:
    """Return whether the instruction at ``index`` tests an operand of ``and`` or ``or`` outside of the handler around.

    Since 3.14 the compiler splits one instruction into COPY, TO_BOOL and POP_JUMP_IF at the end. Where it has
    redirected the jump before, as in ``a and (b or c) or d``, the three are in no handler.
    """
    around = decoded.instructions[index - 1 : index + 2]
    names = [instruction.name for instruction in around]
    is_operand = names in _TESTS_OF_OPERANDS and around[0].arg == 1
    return is_operand and version_of(decoded.code) >= _JUMPS_ON_OPERANDS


_TESTS_OF_OPERANDS = (["COPY", "TO_BOOL", "POP_JUMP_IF_TRUE"], ["COPY", "TO_BOOL", "POP_JUMP_IF_FALSE"])
_JUMPS_ON_OPERANDS = (3, 14)
"""Since then the compiler has one instruction for ``COPY; TO_BOOL; POP_JUMP_IF`` until all others are made."""


def _guarded(decoded: Decoded) -> Set[int]:
    """Return the offsets of the instructions that some handler covers; the ranges do not overlap."""
    ranges = sorted((entry.start, entry.end) for entry in decoded.exceptions)
    guarded: Set[int] = set()
    position = 0
    for instruction in decoded.instructions:
        while position < len(ranges) and ranges[position][1] <= instruction.offset:
            position += 1
        if position < len(ranges) and ranges[position][0] <= instruction.offset:
            guarded.add(instruction.offset)
    return guarded


def _check_truths(decoded: Decoded, targets: FrozenSet[int]) -> None:
    """Check that tests get True or False: since 3.13 they are undefined for other values."""
    instructions = decoded.instructions
    for index in [index for index, instruction in enumerate(instructions) if instruction.name in _TRUTH_TESTS]:
        if instructions[index].offset in targets or not _is_truth(decoded, index - 1, targets):
            raise _refused(decoded.code, instructions[index], "tests a value that may not be True or False")


def _is_truth(decoded: Decoded, index: int, targets: FrozenSet[int]) -> bool:
    """Return whether the instruction at ``index`` pushes True or False."""
    instruction = decoded.instructions[index]
    if instruction.name != "COMPARE_OP":
        return instruction.name in _TRUTHS
    if instruction.arg & 16:  # the comparison converts its result to a bool
        return True
    # Comparisons of two numbers need no conversion: ``len(subject) == 2`` in a pattern, ``format > 2`` in the function
    # that makes annotations.
    before = decoded.instructions[max(index - 2, 0) : index]
    names = [part.name for part in before]
    if names in _FORMATS and decoded.code.co_posonlyargcount:
        names = _LENGTHS[0] if decoded.code.co_varnames[0] in ("format", ".format") and not before[0].arg else names
    return names in _LENGTHS and not targets & {before[1].offset, instruction.offset}
