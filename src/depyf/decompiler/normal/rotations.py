"""SWAPs that permute the stack, and calls that only do that.

Python 3.8 and 3.9 have no instruction that rotates more than four values. Dynamo puts them into a tuple, calls a
function in the constants with it, ``lambda a, b, c, d, e: (b, c, d, e, a)``, and unpacks the result. No compiler puts
functions into its constants; the bytecode of the function shows whether it only permutes its arguments.
"""

from __future__ import annotations

from types import FunctionType
from typing import Hashable, List, Optional, Sequence

from depyf.decompiler.bytecode.instructions import decode
from depyf.decompiler.normal.draft import Draft
from depyf.decompiler.normal.ops import Op

_VARIABLE_ARGUMENTS = 0x4 | 0x8


def undo_rotations(drafts: List[Draft]) -> List[Draft]:
    """Replace ``BUILD tuple; CONST function; SWAP 2; CALL_EX; UNPACK`` with SWAPs."""
    if not any(draft.op is Op.CONST and isinstance(draft.arg, FunctionType) for draft in drafts):
        return drafts
    targets = {draft.target for draft in drafts}
    targets.update(draft.handler.target for draft in drafts if draft.handler is not None)
    result: List[Draft] = []
    index = 0
    while index < len(drafts):
        call = drafts[index : index + 5]
        # A jump into the middle of the five would find other values on the stack.
        order = None if any(draft.offset in targets for draft in call[1:]) else _order(call)
        if order is None:
            result.append(drafts[index])
            index += 1
        else:
            result += [call[0].changed(op=Op.SWAP, arg=depth) for depth in swaps_between(range(len(order)), order)]
            index += len(call)
    return result


def _order(call: List[Draft]) -> Optional[List[int]]:
    """Return the permutation that ``call`` applies, counted from the bottom; ``None`` if it does more."""
    # BUILD tuple n; CONST function; SWAP 2; CALL_EX; UNPACK n: the first element of the tuple is the lowest value, and
    # UNPACK leaves the first element of the result on top.
    if [draft.op for draft in call] != [Op.BUILD, Op.CONST, Op.SWAP, Op.CALL_EX, Op.UNPACK]:
        return None
    build, function, swap, called, unpack = (draft.arg for draft in call)
    if build[0] != "tuple" or swap != 2 or called[0] or build[1] != unpack or len({each.handler for each in call}) > 1:
        return None
    returned = _returned_arguments(function)
    return None if returned is None or sorted(returned) != list(range(unpack)) else returned[::-1]


def _returned_arguments(function: object) -> Optional[List[int]]:
    """Return the indices of the arguments that ``function`` returns as a tuple, if it does nothing else."""
    if not isinstance(function, FunctionType) or function.__defaults__ or function.__kwdefaults__:
        return None
    code = function.__code__
    if code.co_flags & _VARIABLE_ARGUMENTS or code.co_kwonlyargcount or code.co_freevars or code.co_cellvars:
        return None
    *loads, build, end = decode(code).instructions
    names = [instruction.name for instruction in loads]
    if names != ["LOAD_FAST"] * code.co_argcount or (build.name, build.arg) != ("BUILD_TUPLE", code.co_argcount):
        return None
    return [instruction.arg for instruction in loads] if end.name == "RETURN_VALUE" else None


def swaps_between(now: Sequence[Hashable], wanted: Sequence[Hashable]) -> List[int]:
    """Return the depths of SWAPs that permute distinct values from ``now`` to ``wanted``; the last is the topmost."""
    values, made = list(now), []
    while values != list(wanted):
        # A SWAP exchanges the top with a deeper value. Each puts the top where it belongs; if it is there already,
        # another cycle of the permutation is left: exchange the top with the first value that is not.
        index = wanted.index(values[-1])
        if index == len(values) - 1:
            index = next(at for at, value in enumerate(values) if value != wanted[at])
        values[index], values[-1] = values[-1], values[index]
        made.append(len(values) - index)
    return made
